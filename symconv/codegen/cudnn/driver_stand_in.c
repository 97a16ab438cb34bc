/* A CUDA driver library without a device: cuDNN's engine libraries link to libcuda.so.1 and do not load without one.
   The other entry points are appended; each answers CUDA_ERROR_NO_DEVICE (100). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int cuInit(unsigned flags) { return 100; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 0; return 100; }
int cuGetErrorString(int error, const char **text) { *text = "no device (stand-in for the driver)"; return 0; }
int cuGetErrorName(int error, const char **text) { *text = "CUDA_ERROR_NO_DEVICE"; return 0; }
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long flags, int *status) {
    static void *self;
    if (!self) { Dl_info own; dladdr((void *)cuInit, &own); self = dlopen(own.dli_fname, RTLD_NOW); }
    char versioned[256];
    *function = 0;
    for (int number = 4; number >= 2 && !*function; number--) {
        snprintf(versioned, sizeof versioned, "%s_v%d", name, number);
        *function = dlsym(self, versioned);
    }
    if (!*function) *function = dlsym(self, name);
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
int cuGetProcAddress(const char *name, void **function, int version, unsigned long flags) {
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
