/* The emulator, part 3: the threads of one block take turns; whoever has to wait gives way to the next that can go on. */

static void sc_switch_to(sc_worker *worker, sc_full_thread *from) {
    void **own = from ? &from->context : &worker->context;
    if (worker->n_ready) {
        sc_full_thread *next = &worker->threads[worker->ready[worker->ready_start]];
        worker->ready_start = (worker->ready_start + 1) % SC_MOST_THREADS;
        worker->n_ready--;
        next->state = SC_RUNNING;
        worker->current = next;
        sc_switch(own, next->context);
    } else if (from) {
        worker->current = 0;
        sc_switch(own, worker->context);
    }
}

static void sc_make_ready(sc_worker *worker, sc_full_thread *thread) {
    thread->state = SC_READY;
    worker->ready[(worker->ready_start + worker->n_ready++) % SC_MOST_THREADS] = thread->number;
}

static void sc_wait(sc_full_thread *thread, int state) {
    thread->state = state;
    sc_switch_to(thread->worker, thread);
}

static void sc_check_other_line(sc_full_thread *thread, int line, int other_line, const char *what) {
    if (line != other_line)
        sc_fail(thread, line, "a divergent barrier: this thread has come to %s in line %d, others wait at one in line %d",
                what, line, other_line);
}

static void sc_at_barrier(sc_thread *shown, int line) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    sc_worker *worker = thread->worker;
    thread->line = line;
    sc_check_time(thread, line);
    if (worker->n_at_barrier) sc_check_other_line(thread, line, worker->barrier_line, "a block barrier");
    worker->barrier_line = line;
    if (++worker->n_at_barrier < worker->n_threads) {
        sc_wait(thread, SC_AT_BARRIER);
        return;
    }
    worker->n_at_barrier = 0;
    worker->epoch++;
    for (int i = 0; i < worker->n_threads; i++)
        if (worker->threads[i].state == SC_AT_BARRIER) sc_make_ready(worker, &worker->threads[i]);
}

static void sc_at_warp(sc_thread *shown, int line, int orders_memory, int whole, sc_warp_work work, void *lane) {
    sc_full_thread *thread = (sc_full_thread *)shown;
    sc_worker *worker = thread->worker;
    sc_warp_state *warp = &worker->warps[thread->number / SC_WARP];
    sc_full_thread *first = &worker->threads[thread->number / SC_WARP * SC_WARP];
    thread->line = line;
    sc_check_time(thread, line);
    if (whole && warp->n_lanes < SC_WARP) sc_fail(thread, line, "a warp of %d threads at an operation of 32", warp->n_lanes);
    if (warp->n_here) sc_check_other_line(thread, line, warp->line, "a warp operation");
    if (warp->n_here && warp->work != work) sc_fail(thread, line, "the lanes of a warp are at different operations of one line");
    warp->line = line;
    warp->work = work;
    warp->lanes[thread->number % SC_WARP] = lane;
    if (++warp->n_here < warp->n_lanes) {
        sc_wait(thread, SC_AT_WARP);
        return;
    }
    warp->n_here = 0;
    work(warp->lanes, warp->n_lanes);
    for (int i = 0; i < warp->n_lanes; i++) {
        first[i].warp_epoch += (uint32_t)orders_memory;
        if (&first[i] != thread) sc_make_ready(worker, &first[i]);
    }
}

/* The main function of every stack: CUDA threads that have not begun, one after the other. */
static void sc_start_threads(void) {
    char here, *stack = (char *)((uintptr_t)&here & ~(SC_STACK_BYTES - 1));
    sc_worker *worker = (*sc_stack_owner(stack))->worker;
    for (;;) {
        sc_full_thread *thread = *sc_stack_owner(stack);
        worker->run->entry(worker->run->arguments);
        thread->state = SC_ENDED;
        worker->n_ended++;
        if (worker->n_started == worker->n_threads) break;
        sc_full_thread *next = &worker->threads[worker->n_started++];
        *sc_stack_owner(stack) = next;
        next->stack = stack;
        next->state = SC_RUNNING;
        worker->current = next;
    }
    worker->free_stacks[worker->n_free_stacks++] = stack; /* nobody takes it in this block: all have begun */
    for (;;) sc_switch_to(worker, worker->current); /* which never comes back here */
}

static void sc_start_on_new_stack(sc_worker *worker) {
    sc_full_thread *thread = &worker->threads[worker->n_started++];
    thread->stack = sc_take_stack(worker);
    *sc_stack_owner(thread->stack) = thread;
    thread->context = sc_fresh_context(thread->stack, sc_start_threads);
    thread->state = SC_RUNNING;
    worker->current = thread;
    sc_switch(&worker->context, thread->context);
}

/* Nobody can go on: who waits for whom. */
static void sc_report_stuck(sc_worker *worker) {
    sc_full_thread *waiting = 0, *missing = 0;
    for (int i = 0; i < worker->n_threads; i++) {
        sc_full_thread *thread = &worker->threads[i];
        if (thread->state == SC_AT_WARP && (!waiting || waiting->state == SC_AT_BARRIER)) waiting = thread;
        if (thread->state == SC_AT_BARRIER && !waiting) waiting = thread;
    }
    int is_warp = waiting->state == SC_AT_WARP, first = is_warp ? waiting->number / SC_WARP * SC_WARP : 0;
    int end = is_warp ? first + worker->warps[waiting->number / SC_WARP].n_lanes : worker->n_threads;
    for (int i = first; i < end && !missing; i++)
        if (worker->threads[i].state != waiting->state) missing = &worker->threads[i];
    char place[48];
    sc_place(worker, missing->number, place);
    const char *what = is_warp ? "a warp operation" : "a block barrier";
    if (missing->state == SC_ENDED)
        sc_note_fault(worker, waiting, waiting->line, "a divergent barrier: this thread waits at %s, but thread %s has ended", what, place);
    else
        sc_note_fault(worker, waiting, waiting->line, "a divergent barrier: this thread waits at %s, but thread %s waits at %s in line %d",
                      what, place, missing->state == SC_AT_WARP ? "a warp operation" : "a block barrier", missing->line);
}

static void sc_prepare_block(sc_worker *worker, uint64_t number) {
    sc_run *run = worker->run;
    sc_uint3 grid = run->launch->grid, size = run->launch->block;
    worker->block = (sc_uint3){(unsigned)(number % grid.x), (unsigned)(number / grid.x % grid.y), (unsigned)(number / ((uint64_t)grid.x * grid.y))};
    worker->block_number = (uint32_t)number;
    worker->n_threads = (int)(size.x * size.y * size.z);
    worker->n_started = worker->n_ended = worker->n_at_barrier = worker->n_ready = worker->ready_start = 0;
    worker->epoch = 0;
    worker->shared_used = 0;
    memset(worker->shared_declared, 0, sizeof worker->shared_declared);
    for (int i = 0; i < worker->n_threads; i++) {
        sc_full_thread *thread = &worker->threads[i];
        thread->shown = (sc_thread){run->services, {i % size.x, i / size.x % size.y, i / (size.x * size.y)}, worker->block, size, grid};
        thread->worker = worker;
        thread->number = i;
        thread->state = SC_READY;
        thread->line = 0;
        thread->warp_epoch = 0;
        thread->n_copies = thread->n_groups = 0;
    }
    for (int warp = 0; warp * SC_WARP < worker->n_threads; warp++) {
        int left = worker->n_threads - warp * SC_WARP;
        worker->warps[warp].n_here = 0;
        worker->warps[warp].n_lanes = left < SC_WARP ? left : SC_WARP;
    }
}

static void sc_finish_copies(sc_worker *worker) {
    for (int i = 0; i < worker->n_threads; i++)
        for (int copy = 0; copy < worker->threads[i].n_copies; copy++) sc_arrive(&worker->threads[i], &worker->threads[i].copies[copy]);
}

static void sc_run_block(sc_worker *worker, uint64_t number) {
    sc_prepare_block(worker, number);
    while (worker->n_ended < worker->n_threads) {
        if (worker->n_ready) sc_switch_to(worker, 0);
        else if (worker->n_started < worker->n_threads) sc_start_on_new_stack(worker);
        else {
            sc_report_stuck(worker);
            return;
        }
    }
    sc_finish_copies(worker);
}
