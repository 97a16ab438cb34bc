/* What the emulator (C) and the host form of a kernel (C++) share: the state of one CUDA thread and the table of services. */
#ifndef SC_EMULATOR_INTERFACE_H
#define SC_EMULATOR_INTERFACE_H
#include <stddef.h>
#include <stdint.h>

#define SC_STACK_BYTES ((uintptr_t)131072)  /* of a CUDA thread; stacks start on multiples of this */
#define SC_WARP 32

typedef struct { unsigned x, y, z; } sc_uint3;

typedef struct sc_buffer sc_buffer;
typedef struct sc_thread sc_thread;

/* A pointer as it comes to a kernel: where it points and, in the checked form, the buffer it may stay in. */
typedef struct { char *at; sc_buffer *buffer; } sc_argument;

/* What the lanes of a warp do together: called once, when all have come, with what each lane brought. */
typedef void (*sc_warp_work)(void *const *lanes, int n_lanes);

typedef struct {
    void (*barrier)(sc_thread *thread, int line);
    void (*warp)(sc_thread *thread, int line, int orders_memory, int whole, sc_warp_work work, void *lane);
    void (*read)(sc_thread *thread, sc_buffer *buffer, const void *at, size_t bytes, size_t alignment, int line);
    void (*write)(sc_thread *thread, sc_buffer *buffer, const void *at, size_t bytes, size_t alignment, int line);
    void (*atomic)(sc_thread *thread, sc_buffer *buffer, const void *at, size_t bytes, int line);
    void (*copy)(sc_thread *thread, sc_argument to, sc_argument from, int bytes, int valid, int line);
    void (*commit)(sc_thread *thread);
    void (*wait)(sc_thread *thread, int groups_left);
    sc_argument (*shared)(sc_thread *thread, int number, size_t bytes, size_t element, const char *name, int line);
    void (*outside)(sc_thread *thread, ptrdiff_t index, size_t size, int line);
} sc_services;

struct sc_thread {
    const sc_services *services;
    sc_uint3 index, block, block_size, grid_size;
};

typedef void (*sc_entry)(void **arguments);
#endif
