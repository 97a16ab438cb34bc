/* The emulator, part 2: what an access may do.  Two accesses of one place by different threads are ordered if a block barrier
   lies between (another epoch), or a warp barrier for lanes of one warp (another warp epoch); blocks are never ordered. */

static void sc_check_time(sc_full_thread *thread, int line) {
    if ((++thread->worker->ticks & 0xffff) == 0 && sc_now() > thread->worker->run->deadline)
        sc_fail(thread, line, "the kernel has not ended after %.0f seconds", thread->worker->run->launch->seconds);
}

static void sc_check_place(sc_full_thread *thread, const sc_buffer *buffer, const char *at, size_t bytes, size_t alignment,
                           int line, const char *what) {
    thread->line = line;
    sc_check_time(thread, line);
    if (at < buffer->begin || at + bytes > buffer->end)
        sc_fail(thread, line, "%s of %d bytes at byte %td of %s, which has %td bytes", what, (int)bytes, at - buffer->begin,
                buffer->name, buffer->end - buffer->begin);
    if ((uintptr_t)at % alignment)
        sc_fail(thread, line, "%s of %d bytes at byte %td of %s: its address is not a multiple of %d", what, (int)bytes,
                at - buffer->begin, buffer->name, (int)alignment);
}

static int sc_unordered(const sc_full_thread *thread, uint32_t block, uint32_t epoch, int who, uint32_t warp_epoch) {
    if (block != thread->worker->block_number) return 1;
    if (epoch != thread->worker->epoch || who == thread->number) return 0;
    return who / SC_WARP != thread->number / SC_WARP || warp_epoch == thread->warp_epoch;
}

/* Whether somebody else may have written the place at the same time; of atomic updates by several threads the last is not the only one. */
static int sc_is_being_written(const sc_full_thread *thread, const sc_cell *cell) {
    if (cell->write_block == UINT32_MAX) return 0;
    if (sc_unordered(thread, cell->write_block, cell->write_epoch, cell->writer, cell->write_warp_epoch)) return 1;
    return cell->several_writers && cell->write_epoch == thread->worker->epoch && cell->write_warp_epoch == thread->warp_epoch;
}

static void sc_race(sc_full_thread *thread, const sc_buffer *buffer, const char *at, int line, const char *what,
                    uint32_t block, int who, int other_line, const char *did) {
    char place[48], other[96];
    sc_place(thread->worker, who, place);
    if (block == thread->worker->block_number) snprintf(other, sizeof other, "thread %s of this block", place);
    else snprintf(other, sizeof other, "thread %s of block number %u", place, block);
    sc_fail(thread, line, "a race: %s of byte %td of %s, which %s %s in line %d without a barrier between",
            what, at - buffer->begin, buffer->name, other, did, other_line);
}

static void sc_check_written(sc_full_thread *thread, sc_buffer *buffer, sc_cell *cell, const char *at, int line) {
    if (cell->is_on_its_way)
        sc_fail(thread, line, "byte %td of %s is read or written before the sc_cp_async of line %d has been waited for",
                at - buffer->begin, buffer->name, cell->write_line);
    if (!cell->is_written)
        sc_fail(thread, line, "byte %td of %s is read, but nobody has written it", at - buffer->begin, buffer->name);
}

static sc_cell *sc_first_cell(const sc_buffer *buffer, const char *at) { return buffer->cells + ((at - buffer->begin) >> buffer->unit_shift); }
static sc_cell *sc_last_cell(const sc_buffer *buffer, const char *at, size_t bytes) { return sc_first_cell(buffer, at + bytes - 1); }

static void sc_note_reader(const sc_full_thread *thread, sc_cell *cell, int line) {
    uint32_t block = thread->worker->block_number, epoch = thread->worker->epoch;
    if (cell->read_block != block) {
        cell->several_blocks = cell->read_block != UINT32_MAX;
        cell->several_warps = cell->several_lanes = 0;
    } else if (cell->read_epoch != epoch) {
        cell->several_warps = cell->several_lanes = 0;
    } else if (cell->reader / SC_WARP != thread->number / SC_WARP) {
        cell->several_warps = 1;
    } else if (cell->read_warp_epoch != thread->warp_epoch) {
        cell->several_lanes = 0;
    } else if (cell->reader != thread->number) {
        cell->several_lanes = 1;
    }
    cell->read_block = block, cell->read_epoch = epoch, cell->read_warp_epoch = thread->warp_epoch;
    cell->reader = (uint16_t)thread->number, cell->read_line = (uint16_t)line;
}

static void sc_read(sc_thread *shown, sc_buffer *buffer, const void *place, size_t bytes, size_t alignment, int line) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    const char *at = place;
    sc_check_place(thread, buffer, at, bytes, alignment, line, "a read");
    for (sc_cell *cell = sc_first_cell(buffer, at), *last = sc_last_cell(buffer, at, bytes); cell <= last; cell++) {
        sc_check_written(thread, buffer, cell, at, line);
        if (sc_is_being_written(thread, cell))
            sc_race(thread, buffer, at, line, "a read", cell->write_block, cell->writer, cell->write_line, "wrote");
        sc_note_reader(thread, cell, line);
    }
}

/* Whether somebody else has read the place since the last barrier. */
static int sc_is_being_read(const sc_full_thread *thread, const sc_cell *cell) {
    if (cell->read_block == UINT32_MAX) return 0;
    if (cell->several_blocks || cell->read_block != thread->worker->block_number) return 1;
    if (cell->read_epoch != thread->worker->epoch) return 0;
    if (cell->several_warps || cell->reader / SC_WARP != thread->number / SC_WARP) return 1;
    return cell->read_warp_epoch == thread->warp_epoch && (cell->reader != thread->number || cell->several_lanes);
}

static void sc_check_writer(sc_full_thread *thread, sc_buffer *buffer, sc_cell *cell, const char *at, int is_atomic, int line) {
    const char *what = is_atomic ? "an atomic update" : "a write";
    if (!(is_atomic && cell->is_atomic) && sc_is_being_written(thread, cell))
        sc_race(thread, buffer, at, line, what, cell->write_block, cell->writer, cell->write_line, "wrote");
    if (sc_is_being_read(thread, cell))
        sc_race(thread, buffer, at, line, what, cell->read_block, cell->reader, cell->read_line, "read");
}

static void sc_note_writer(const sc_full_thread *thread, sc_cell *cell, int is_atomic, int is_on_its_way, int line) {
    if (is_atomic && !cell->is_atomic && cell->writer == thread->number && cell->write_block == thread->worker->block_number
        && cell->write_epoch == thread->worker->epoch && cell->write_warp_epoch == thread->warp_epoch)
        is_atomic = 0; /* the thread's own plain write before still races with the others */
    cell->several_writers = (uint8_t)(is_atomic && cell->is_atomic && sc_is_being_written(thread, cell));
    cell->write_block = thread->worker->block_number, cell->write_epoch = thread->worker->epoch;
    cell->write_warp_epoch = thread->warp_epoch;
    cell->writer = (uint16_t)thread->number, cell->write_line = (uint16_t)line;
    cell->is_atomic = (uint8_t)is_atomic, cell->is_on_its_way = (uint8_t)is_on_its_way, cell->is_written = 1;
}

static void sc_write_cells(sc_full_thread *thread, sc_buffer *buffer, const char *at, size_t bytes, int is_on_its_way, int line) {
    for (sc_cell *cell = sc_first_cell(buffer, at), *last = sc_last_cell(buffer, at, bytes); cell <= last; cell++) {
        if (cell->is_on_its_way) sc_check_written(thread, buffer, cell, at, line);
        sc_check_writer(thread, buffer, cell, at, 0, line);
        sc_note_writer(thread, cell, 0, is_on_its_way, line);
    }
}

static void sc_write(sc_thread *shown, sc_buffer *buffer, const void *place, size_t bytes, size_t alignment, int line) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    sc_check_place(thread, buffer, place, bytes, alignment, line, "a write");
    sc_write_cells(thread, buffer, place, bytes, 0, line);
}

static void sc_atomic(sc_thread *shown, sc_buffer *buffer, const void *place, size_t bytes, int line) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    const char *at = place;
    sc_check_place(thread, buffer, at, bytes, bytes, line, "an atomic update");
    for (sc_cell *cell = sc_first_cell(buffer, at), *last = sc_last_cell(buffer, at, bytes); cell <= last; cell++) {
        sc_check_written(thread, buffer, cell, at, line);
        sc_check_writer(thread, buffer, cell, at, 1, line);
        sc_note_writer(thread, cell, 1, 0, line);
    }
}

/* ---- asynchronous copies: the bytes arrive when their thread waits for them ---- */
static void *sc_grown(void *array, int *room, int wanted, size_t element) {
    if (wanted <= *room) return array;
    *room = wanted * 2;
    return realloc(array, (size_t)*room * element);
}

static void sc_copy_start(sc_thread *shown, sc_argument to, sc_argument from, int bytes, int valid, int line) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    if (valid < 0 || valid > bytes) sc_fail(thread, line, "sc_cp_async of %d valid bytes out of %d", valid, bytes);
    if (to.buffer) {
        if (!to.buffer->is_shared) sc_fail(thread, line, "sc_cp_async into %s, which is not shared memory", to.buffer->name);
        if (from.buffer->is_shared) sc_fail(thread, line, "sc_cp_async from %s, which is not global memory", from.buffer->name);
        if (valid) sc_read(shown, from.buffer, from.at, (size_t)valid, 1, line);
        if ((uintptr_t)from.at % (size_t)bytes)
            sc_fail(thread, line, "sc_cp_async from byte %td of %s: its address is not a multiple of %d",
                    from.at - from.buffer->begin, from.buffer->name, bytes);
        sc_check_place(thread, to.buffer, to.at, (size_t)bytes, (size_t)bytes, line, "an sc_cp_async");
        sc_write_cells(thread, to.buffer, to.at, (size_t)bytes, 1, line);
    }
    thread->copies = sc_grown(thread->copies, &thread->copies_room, thread->n_copies + 1, sizeof(sc_copy));
    thread->copies[thread->n_copies++] = (sc_copy){to, from, bytes, valid, line};
}

static void sc_copy_commit(sc_thread *shown) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    thread->group_ends = sc_grown(thread->group_ends, &thread->groups_room, thread->n_groups + 1, sizeof(int));
    thread->group_ends[thread->n_groups++] = thread->n_copies;
}

static void sc_arrive(sc_full_thread *thread, const sc_copy *copy) {
    memset(copy->to.at + copy->valid, 0, (size_t)(copy->bytes - copy->valid));
    memcpy(copy->to.at, copy->from.at, (size_t)copy->valid);
    if (!copy->to.buffer) return;
    sc_cell *last = sc_last_cell(copy->to.buffer, copy->to.at, (size_t)copy->bytes);
    for (sc_cell *cell = sc_first_cell(copy->to.buffer, copy->to.at); cell <= last; cell++)
        sc_note_writer(thread, cell, 0, 0, copy->line);
}

static void sc_copy_wait(sc_thread *shown, int groups_left) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    int n_done = thread->n_groups - groups_left;
    if (n_done <= 0) return;
    int end = thread->group_ends[n_done - 1];
    for (int i = 0; i < end; i++) sc_arrive(thread, &thread->copies[i]);
    memmove(thread->copies, thread->copies + end, (size_t)(thread->n_copies - end) * sizeof(sc_copy));
    thread->n_copies -= end;
    for (int i = n_done; i < thread->n_groups; i++) thread->group_ends[i - n_done] = thread->group_ends[i] - end;
    thread->n_groups -= n_done;
}

/* ---- shared memory: arrays are laid out in the order in which they are first declared ---- */
static void sc_forget(sc_buffer *buffer) {
    size_t n = (size_t)(((buffer->end - buffer->begin) >> buffer->unit_shift) + 1);
    memset(buffer->cells, 0, n * sizeof(sc_cell));
    for (size_t i = 0; i < n; i++) buffer->cells[i].write_block = buffer->cells[i].read_block = UINT32_MAX;
}

static sc_argument sc_declare_shared(sc_thread *shown, int number, size_t bytes, size_t element, const char *name, int line) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    sc_worker *worker = thread->worker;
    int entry = number < 0 ? SC_MOST_SHARED : number;
    if (number < 0) bytes = (size_t)worker->run->launch->shared_bytes;
    if (number >= SC_MOST_SHARED) sc_fail(thread, line, "more than %d shared arrays", SC_MOST_SHARED);
    sc_buffer *buffer = &worker->shared[entry];
    if (!worker->shared_declared[entry]) {
        size_t start = (worker->shared_used + 127) / 128 * 128;
        if (start + bytes > SC_SHARED_LIMIT)
            sc_fail(thread, line, "%zu bytes of shared memory in one block; no device has more than %d", start + bytes, SC_SHARED_LIMIT);
        char *begin = worker->shared_memory + start;
        *buffer = (sc_buffer){name, begin, begin + bytes, element > 1, 1, worker->shared_cells + start};
        worker->shared_used = start + bytes;
        worker->shared_declared[entry] = 1;
        if (worker->run->launch->is_checked) sc_forget(buffer);
    }
    return (sc_argument){buffer->begin, buffer};
}

static void sc_outside(sc_thread *shown, ptrdiff_t index, size_t size, int line) {
    if (size) sc_fail((sc_full_thread *)shown, line, "the index %td is outside a shared array's dimension of size %zu", index, size);
    sc_fail((sc_full_thread *)shown, line, "the index %td is outside an array in registers", index);
}
