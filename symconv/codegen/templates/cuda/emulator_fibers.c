/* The emulator, part 1: stacks and switching between them, what one OS thread needs to run blocks, and faults.

   Every CUDA thread that has to wait keeps its stack; one that never waits leaves its stack to the next. */
#undef _FORTIFY_SOURCE /* longjmp from one stack to another is meant */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SC_MOST_THREADS 1024
#define SC_MOST_SHARED 64
#define SC_SHARED_LIMIT (227 * 1024) /* of one block, on the largest devices */
#define SC_GUARD 4096

/* A place in memory as seen by the checks: who wrote and who read it last, and when. */
typedef struct {
    uint32_t write_block, write_epoch, write_warp_epoch, read_block, read_epoch, read_warp_epoch;
    uint16_t writer, reader, write_line, read_line;
    uint8_t is_written, is_atomic, is_on_its_way, several_lanes, several_warps, several_blocks, several_writers;
} sc_cell;

struct sc_buffer {
    const char *name;
    char *begin, *end;
    int unit_shift; /* one cell for 2^unit_shift bytes */
    int is_shared;
    sc_cell *cells;
};

typedef struct { sc_argument to, from; int bytes, valid, line; } sc_copy;
enum { SC_READY, SC_RUNNING, SC_AT_BARRIER, SC_AT_WARP, SC_ENDED };

typedef struct {
    sc_thread shown; /* must be first: what the kernel sees */
    struct sc_worker *worker;
    void *context;
    char *stack;
    int number, state, line;
    uint32_t warp_epoch;
    sc_copy *copies; /* on their way; group_ends are where each committed group ends */
    int n_copies, copies_room, *group_ends, n_groups, groups_room;
} sc_full_thread;

typedef struct { sc_warp_work work; int line, n_here, n_lanes; void *lanes[SC_WARP]; } sc_warp_state;

typedef struct sc_worker {
    struct sc_worker *next_free;
    struct sc_run *run;
    char *region, *stacks, *signal_stack;
    char *free_stacks[SC_MOST_THREADS];
    int n_free_stacks, n_stacks;
    void *context; /* of the scheduler, on the OS thread's own stack */
    sigjmp_buf escape;
    sc_full_thread threads[SC_MOST_THREADS], *current;
    sc_warp_state warps[SC_MOST_THREADS / SC_WARP];
    int n_threads, n_started, n_ended, n_at_barrier, barrier_line;
    int ready[SC_MOST_THREADS], ready_start, n_ready;
    uint32_t epoch, block_number, ticks;
    sc_uint3 block;
    char *shared_memory;
    size_t shared_used;
    sc_buffer shared[SC_MOST_SHARED + 1];
    int shared_declared[SC_MOST_SHARED + 1];
    sc_cell *shared_cells;
} sc_worker;

typedef struct { sc_uint3 block, thread; int line, has_thread; char text[600]; } sc_fault;

typedef struct { const char *name; char *begin; int64_t bytes, offset; int unit_shift, is_written; void *scalar; } sc_given;

typedef struct {
    sc_uint3 grid, block;
    int64_t shared_bytes;
    int n_arguments, n_workers, is_checked;
    double seconds;
    const sc_given *given;
} sc_launch;

typedef struct sc_run {
    const sc_launch *launch;
    sc_entry entry;
    void **arguments;
    sc_fault *fault;
    pthread_mutex_t lock;
    int has_failed;
    uint64_t next_block, n_blocks;
    double deadline;
    const sc_services *services;
} sc_run;

static __thread sc_worker *sc_working; /* what the signal handler looks at */

/* ---- contexts ---- */
void sc_switch_stacks(void **from, void *to) __asm__("sc_switch_stacks");
#if defined(__x86_64__)
__asm__(".text\n.p2align 4\nsc_switch_stacks:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
enum { SC_SAVED_WORDS = 8, SC_RETURN_WORD = 6 };
#elif defined(__aarch64__)
__asm__(".text\n.p2align 4\nsc_switch_stacks:\n"
        "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
        "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\nmov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
        "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n");
enum { SC_SAVED_WORDS = 20, SC_RETURN_WORD = 11 };
#else
#error "the emulator switches stacks on x86-64 and AArch64 only"
#endif

/* Everything written before is in memory when the other stack goes on. */
static void sc_switch(void **from, void *to) {
    __asm__ volatile("" ::: "memory");
    sc_switch_stacks(from, to);
    __asm__ volatile("" ::: "memory");
}

static sc_full_thread **sc_stack_owner(char *stack) { return (sc_full_thread **)(stack + SC_STACK_BYTES - sizeof(void *)); }

/* A context that starts `main` on a stack; the top 64 bytes hold the running thread (see sc_current). */
static void *sc_fresh_context(char *stack, void (*main)(void)) {
    void **sp = (void **)(stack + SC_STACK_BYTES - 64) - SC_SAVED_WORDS;
    memset(sp, 0, SC_SAVED_WORDS * sizeof(void *));
    sp[SC_RETURN_WORD] = (void *)main;
    return sp;
}

static char *sc_take_stack(sc_worker *worker) {
    if (worker->n_free_stacks) return worker->free_stacks[--worker->n_free_stacks];
    char *stack = worker->stacks + SC_STACK_BYTES * worker->n_stacks++;
    mprotect(stack, SC_GUARD, PROT_NONE);
    return stack;
}

/* ---- faults ---- */
static double sc_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sc_note(sc_worker *worker, const sc_full_thread *thread, int line, const char *format, va_list values) {
    sc_run *run = worker->run;
    pthread_mutex_lock(&run->lock);
    if (!run->has_failed) {
        sc_fault *fault = run->fault;
        fault->block = worker->block;
        fault->has_thread = thread != 0;
        if (thread) fault->thread = thread->shown.index;
        fault->line = line;
        vsnprintf(fault->text, sizeof fault->text, format, values);
        run->has_failed = 1;
    }
    pthread_mutex_unlock(&run->lock);
}

/* Ends the block, from the scheduler's own stack. */
static void sc_note_fault(sc_worker *worker, const sc_full_thread *thread, int line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    sc_note(worker, thread, line, format, values);
    va_end(values);
}

/* Ends the block, from the stack of a CUDA thread. */
__attribute__((noreturn)) static void sc_fail(sc_full_thread *thread, int line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    sc_note(thread->worker, thread, line, format, values);
    va_end(values);
    siglongjmp(thread->worker->escape, 1);
}

/* x, y and z of the thread with this number, as text. */
static const char *sc_place(const sc_worker *worker, int number, char *text) {
    sc_uint3 size = worker->run->launch->block;
    snprintf(text, 48, "(%u, %u, %u)", (unsigned)number % size.x, (unsigned)number / size.x % size.y, (unsigned)number / (size.x * size.y));
    return text;
}

#define SC_TIME_SIGNAL SIGXCPU
#define SC_N_SIGNALS 6
static struct sigaction sc_before[SC_N_SIGNALS];
static const int sc_signals[SC_N_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SC_TIME_SIGNAL};

static void sc_on_signal(int signal, siginfo_t *info, void *context) {
    sc_worker *worker = sc_working;
    if (signal == SC_TIME_SIGNAL && worker && worker->run && sc_now() > worker->run->deadline) {
        if (worker->current)
            sc_fail(worker->current, worker->current->line, "the kernel has not ended after %.0f seconds", worker->run->launch->seconds);
        return;
    }
    if (!worker || !worker->current) { /* not from a kernel: as if we had not been there */
        for (int i = 0; i < SC_N_SIGNALS; i++)
            if (sc_signals[i] == signal) sigaction(signal, &sc_before[i], 0);
        (void)context;
        return;
    }
    sc_full_thread *thread = worker->current;
    const char *at = info->si_addr;
    if (signal == SIGFPE)
        sc_fail(thread, thread->line, "an integer was divided by zero");
    if (signal == SIGSEGV && at >= thread->stack && at < thread->stack + SC_GUARD)
        sc_fail(thread, thread->line, "the stack of %d bytes overflowed", (int)SC_STACK_BYTES - SC_GUARD);
    sc_fail(thread, thread->line, "a wild pointer: signal %d at address %p", signal, (void *)at);
}

static pthread_mutex_t sc_signal_lock = PTHREAD_MUTEX_INITIALIZER;
static int sc_signal_users;

static void sc_watch_signals(int is_on) {
    pthread_mutex_lock(&sc_signal_lock);
    if (is_on ? sc_signal_users++ == 0 : --sc_signal_users == 0)
        for (int i = 0; i < SC_N_SIGNALS; i++) {
            struct sigaction action;
            memset(&action, 0, sizeof action);
            action.sa_sigaction = sc_on_signal;
            action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
            if (is_on) sigaction(sc_signals[i], &action, &sc_before[i]);
            else sigaction(sc_signals[i], &sc_before[i], 0);
        }
    pthread_mutex_unlock(&sc_signal_lock);
}
