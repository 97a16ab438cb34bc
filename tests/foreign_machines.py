"""Kernels for other processors than this one: compiled by a cross compiler, run in QEMU's emulation of one program.

On Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user
"""
from __future__ import annotations

import ctypes
import hashlib
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kernel_runner import GUARD

from symconv import dtypes
from symconv.codegen.compiler import BASE_FLAGS
from symconv.codegen.kernel import Kernel, Operand
from symconv.codegen.templates import render_kernel
from symconv.codegen.threads import POOL_FLAGS
from symconv.config import MOST_THREADS
from symconv.target import Target

Array = np.ndarray[Any, Any]
_WARNINGS = ("-Wall", "-Werror", "-Wno-unused")  # templates define more than each kernel uses
_DRIVER = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef int (*kernel)(void *const *, const int64_t *);
static void *need(void *found) { if (!found) { fprintf(stderr, "%s\n", dlerror()); exit(2); } return found; }
static void get(void *to, int64_t bytes, FILE *file) { if (fread(to, 1, bytes, file) != (size_t)bytes) exit(3); }
/* driver KERNEL.so NAME POOL.so INPUT OUTPUT: calls a kernel on buffers from a file, and writes them to another */
int main(int count, char **words) {
    void *library = need(dlopen(words[1], RTLD_NOW));
    kernel run = (kernel)need(dlsym(library, words[2]));
    void (*use_pool)(const void *) = (void (*)(const void *))dlsym(library, "sc_use_pool");
    void **table = use_pool ? need(dlsym(need(dlopen(words[3], RTLD_NOW)), "sc_thread_pool")) : 0;
    if (use_pool) use_pool(table);
    FILE *in = fopen(words[4], "rb"), *out = fopen(words[5], "wb");
    int64_t head[3];
    if (count != 6 || !in || !out) return 4;
    get(head, sizeof head, in);
    if (use_pool) ((int (*)(int))table[6])((int)head[2]);
    int64_t *sizes = malloc(8 * (head[1] + 1)), *shapes = malloc(24 * (head[0] + 1));
    void **pointers = malloc(sizeof(void *) * (head[0] + 1));
    char **memory = malloc(sizeof(char *) * (head[0] + 1));
    get(sizes, 8 * head[1], in);
    get(shapes, 24 * head[0], in);
    for (int64_t i = 0; i < head[0]; i++) {  /* bytes, where the first element is among them, and how far from an aligned place */
        memory[i] = (char *)aligned_alloc(64, (shapes[3 * i] + 191) / 64 * 64) + shapes[3 * i + 2];
        get(memory[i], shapes[3 * i], in);
        pointers[i] = memory[i] + shapes[3 * i + 1];
    }
    int64_t code = run(pointers, sizes);
    fwrite(&code, 8, 1, out);
    for (int64_t i = 0; i < head[0]; i++) fwrite(memory[i], 1, shapes[3 * i], out);
    return fclose(out) ? 5 : 0;
}
"""


@dataclass(frozen=True)
class Machine:
    """A kind of processor: what compiles for it, what runs that, and what symconv makes kernels for there."""

    name: str
    compiler: tuple[str, ...]
    emulator: tuple[str, ...]
    target: Target
    pool: bool = True

    @property
    def missing(self) -> str:
        """What is not here; empty where kernels can be compiled and run."""
        if not self.emulator and platform.machine() != "x86_64":
            return "a processor of this kind"
        return ", ".join(program for program in (self.compiler[0], *self.emulator[:1]) if shutil.which(program) is None)


MACHINES = (
    Machine("aarch64", ("aarch64-linux-gnu-gcc",), ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
            Target(vector_bytes=16, vector_registers=32, threads=2)),
    Machine("arm", ("arm-linux-gnueabihf-gcc", "-mfpu=neon-vfpv4"), ("qemu-arm", "-L", "/usr/arm-linux-gnueabihf"),
            Target(vector_bytes=16, threads=2), pool=False),  # where long has 32 bits GCC calls other functions for loops
    Machine("x86-64-v1", ("gcc", "-march=x86-64"), (), Target(vector_bytes=16, threads=2)),
)


class ForeignRunner:
    """Runs kernels on a machine, in place of `kernel_runner.call_kernel`; what it builds goes into a folder."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine, self.folder = machine, folder
        self.driver = folder / "driver"
        (folder / "driver.c").write_text(_DRIVER)
        self._compile(("-O1", "-o", str(self.driver), str(folder / "driver.c"), "-ldl"))
        self.pool = self._library(render_kernel("threads.c.j2", most_threads=MOST_THREADS))
        self.count = 0

    def _compile(self, flags: Sequence[str]) -> None:
        done = subprocess.run([*self.machine.compiler, *_WARNINGS, *flags], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def _library(self, source: str) -> Path:
        path = self.folder / (hashlib.sha256(source.encode()).hexdigest() + ".so")
        if not path.exists():
            text = path.with_suffix(".c")
            text.write_text(source)
            self._compile((*BASE_FLAGS, "-fopenmp", *(POOL_FLAGS if self.machine.pool else ()), "-o", str(path), str(text), "-lm"))
        return path

    def __call__(self, kernel: Kernel, arrays: list[Array], outputs: tuple[Operand, ...],
                 threads: int | None = None) -> list[Array]:
        """Outputs of a kernel; they start as rubbish and are guarded on both sides."""
        blocks = [_guarded(operand.nbytes) for operand in outputs] + [_block(array) for array in arrays]
        blocks += [_guarded(kernel.workspace_bytes)]
        places = [number for block in blocks for number in block[1:]]
        head = np.array([len(blocks), len(kernel.sizes), threads or 2, *kernel.sizes, *places], np.int64)
        self.count += 1
        given, found = self.folder / f"{self.count}.in", self.folder / f"{self.count}.out"
        given.write_bytes(head.tobytes() + b"".join(block[0] for block in blocks))
        command = [*self.machine.emulator, str(self.driver), str(self._library(kernel.source)), kernel.name, str(self.pool)]
        done = subprocess.run([*command, str(given), str(found)], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{kernel.name} ended with {done.returncode}: {done.stderr}"
        data = found.read_bytes()
        assert data[:8] == bytes(8), f"{kernel.name} gave an error"
        return _results(data[8:], blocks, outputs)


Block = tuple[bytes, int, int, int]
"""Bytes; how many; where the first element is among them; how far from an aligned place they begin."""


def _guarded(nbytes: int) -> Block:
    return b"\xa5" * (nbytes + 2 * GUARD), nbytes + 2 * GUARD, GUARD, 0


def _block(array: Array) -> Block:
    """The memory that an array lies in, with gaps; addresses modulo 64 stay."""
    ends = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)] if array.size else []
    low, high = sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + (array.itemsize if array.size else 0)
    start = array.ctypes.data + low
    return ctypes.string_at(start, high - low), high - low, -low, start % 64


def _results(data: bytes, blocks: Sequence[Block], outputs: tuple[Operand, ...]) -> list[Array]:
    written = [*blocks[:len(outputs)], blocks[-1]]
    ends = np.cumsum([block[1] for block in blocks])
    found = [data[ends[number] - blocks[number][1]:ends[number]] for number in (*range(len(outputs)), len(blocks) - 1)]
    for block, after in zip(written, found, strict=True):
        assert after[:GUARD] == block[0][:GUARD], "the kernel wrote before a buffer"
        assert after[-GUARD:] == block[0][-GUARD:], "the kernel wrote behind a buffer"
    return [np.frombuffer(after[GUARD:-GUARD], dtypes.numpy_dtype(operand.dtype)).reshape(operand.shape)
            for after, operand in zip(found, outputs, strict=False)]
