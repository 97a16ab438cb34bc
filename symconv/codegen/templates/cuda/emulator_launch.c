/* The emulator, part 4: a launch on several OS threads, and the memory that they keep between launches. */

static const sc_services sc_all_services = {sc_at_barrier, sc_at_warp, sc_read, sc_write, sc_atomic, sc_copy_start, sc_copy_commit,
                                            sc_copy_wait, sc_declare_shared, sc_outside};
static sc_worker *sc_free_workers;
static pthread_mutex_t sc_workers_lock = PTHREAD_MUTEX_INITIALIZER;

static void *sc_map(size_t bytes) {
    void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? 0 : memory;
}

static sc_worker *sc_take_worker(void) {
    pthread_mutex_lock(&sc_workers_lock);
    sc_worker *worker = sc_free_workers;
    if (worker) sc_free_workers = worker->next_free;
    pthread_mutex_unlock(&sc_workers_lock);
    if (worker) return worker;
    worker = sc_map(sizeof *worker);
    if (!worker) return 0;
    worker->region = sc_map(SC_STACK_BYTES * (SC_MOST_THREADS + 1));
    worker->signal_stack = sc_map(65536);
    worker->shared_memory = sc_map(SC_SHARED_LIMIT + SC_GUARD);
    worker->shared_cells = sc_map((SC_SHARED_LIMIT + SC_GUARD) * sizeof(sc_cell));
    if (!worker->region || !worker->signal_stack || !worker->shared_memory || !worker->shared_cells) return 0;
    worker->stacks = (char *)(((uintptr_t)worker->region + SC_STACK_BYTES - 1) & ~(SC_STACK_BYTES - 1));
    return worker;
}

static void sc_give_worker(sc_worker *worker) {
    pthread_mutex_lock(&sc_workers_lock);
    worker->next_free = sc_free_workers;
    sc_free_workers = worker;
    pthread_mutex_unlock(&sc_workers_lock);
}

static void sc_take_all_stacks_back(sc_worker *worker) {
    worker->n_free_stacks = 0;
    for (int i = worker->n_stacks - 1; i >= 0; i--) worker->free_stacks[worker->n_free_stacks++] = worker->stacks + SC_STACK_BYTES * i;
}

/* A signal to this OS thread when the time is over: the only way out of a loop that touches nothing. */
#ifndef SYS_timer_create
static int sc_start_clock(const sc_run *run, int *timer) { return (void)run, (void)timer, 0; }
static void sc_stop_clock(int timer) { (void)timer; }
#else
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
static int sc_start_clock(const sc_run *run, int *timer) {
    struct sigevent event;
    struct itimerspec when = {{0, 0}, {0, 0}};
    double left = run->deadline + 0.05 - sc_now();
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SC_TIME_SIGNAL;
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    if (left < 1e-3) left = 1e-3;
    when.it_value.tv_sec = (time_t)left;
    when.it_value.tv_nsec = (long)((left - (double)when.it_value.tv_sec) * 1e9);
    when.it_interval.tv_nsec = 100000000;
    if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, timer)) return 0;
    syscall(SYS_timer_settime, *timer, 0, &when, 0);
    return 1;
}
static void sc_stop_clock(int timer) { syscall(SYS_timer_delete, timer); }
#endif

/* Runs blocks until none is left. */
static void sc_work(sc_run *run, sc_worker *worker) {
    stack_t own = {.ss_sp = worker->signal_stack, .ss_size = 65536}, before;
    int timer;
    worker->run = run;
    sc_take_all_stacks_back(worker);
    sigaltstack(&own, &before);
    sc_working = worker;
    worker->current = 0;
    const int has_timer = sc_start_clock(run, &timer);
    if (sigsetjmp(worker->escape, 1) == 0)
        for (;;) {
            uint64_t number = __atomic_fetch_add(&run->next_block, 1, __ATOMIC_RELAXED);
            if (number >= run->n_blocks || __atomic_load_n(&run->has_failed, __ATOMIC_RELAXED)) break;
            worker->current = 0;
            sc_run_block(worker, number);
            sc_take_all_stacks_back(worker);
        }
    worker->current = 0;
    if (has_timer) sc_stop_clock(timer);
    sc_working = 0;
    sigaltstack(&before, 0);
}

static void *sc_work_on_thread(void *given) {
    sc_run *run = given;
    sc_worker *worker = sc_take_worker();
    if (worker) {
        sc_work(run, worker);
        sc_give_worker(worker);
    }
    return 0;
}

/* The buffers behind the pointers; arguments for the same memory share one. */
static int sc_set_up(const sc_launch *launch, sc_buffer *buffers, sc_argument *pointers, void **arguments) {
    for (int i = 0; i < launch->n_arguments; i++) {
        const sc_given *given = &launch->given[i];
        arguments[i] = given->scalar;
        if (given->scalar) continue;
        sc_buffer *buffer = &buffers[i];
        *buffer = (sc_buffer){given->name, given->begin, given->begin + given->bytes, given->unit_shift, 0, 0};
        for (int before = 0; before < i && launch->is_checked; before++)
            if (!launch->given[before].scalar && buffers[before].begin == buffer->begin && buffers[before].end == buffer->end)
                buffer = &buffers[before];
        if (launch->is_checked && !buffer->cells) {
            size_t n = (size_t)(given->bytes >> given->unit_shift) + 2;
            buffer->cells = calloc(n, sizeof(sc_cell));
            if (!buffer->cells) return 0;
            for (size_t cell = 0; cell < n; cell++) {
                buffer->cells[cell].write_block = buffer->cells[cell].read_block = UINT32_MAX;
                buffer->cells[cell].is_written = (uint8_t)given->is_written;
            }
        }
        pointers[i] = (sc_argument){given->begin + given->offset, buffer};
        arguments[i] = &pointers[i];
    }
    return 1;
}

static void sc_run_workers(sc_run *run, sc_worker *own) {
    pthread_t others[64];
    int n_others = 0, wanted = run->launch->is_checked ? 1 : run->launch->n_workers;
    if (wanted > 65) wanted = 65;
    if ((uint64_t)wanted > run->n_blocks) wanted = (int)run->n_blocks;
    sc_watch_signals(1);
    while (n_others < wanted - 1 && pthread_create(&others[n_others], 0, sc_work_on_thread, run) == 0) n_others++;
    sc_work(run, own);
    for (int i = 0; i < n_others; i++) pthread_join(others[i], 0);
    sc_watch_signals(0);
}

/* 0: done; 1: a fault, which is described; 2: no memory. */
int sc_emulate(sc_entry entry, const sc_launch *launch, sc_fault *fault) {
    size_t n = (size_t)launch->n_arguments + 1;
    sc_buffer *buffers = calloc(n, sizeof *buffers);
    sc_argument *pointers = calloc(n, sizeof *pointers);
    void **arguments = calloc(n, sizeof *arguments);
    sc_worker *own = sc_take_worker();
    sc_run run = {.launch = launch, .entry = entry, .arguments = arguments, .fault = fault, .lock = PTHREAD_MUTEX_INITIALIZER,
                  .n_blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z,
                  .deadline = sc_now() + launch->seconds, .services = &sc_all_services};
    int result = 2;
    if (buffers && pointers && arguments && own && sc_set_up(launch, buffers, pointers, arguments)) {
        sc_run_workers(&run, own);
        result = run.has_failed;
    }
    if (own) sc_give_worker(own);
    for (size_t i = 0; buffers && i < n; i++) free(buffers[i].cells);
    free(buffers), free(pointers), free(arguments);
    return result;
}
