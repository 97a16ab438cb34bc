"""Runs generated CUDA kernels on the CPU, thread by thread.

`checked` launches watch every access to memory and run on one thread of the machine; fast ones run the same text with plain
pointers on all of them.  A fault is an `EmulatorFault` that names kernel, block, thread and line; the process survives it.
"""
from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InternalError, explain_error
from .emulator_library import emulator, host_kernel
from .kernel import CudaKernel

_TYPES: dict[str, Any] = {"int32": ctypes.c_int32, "int64": ctypes.c_int64, "uint32": ctypes.c_uint32, "uint64": ctypes.c_uint64,
          "float32": ctypes.c_float, "float64": ctypes.c_double}
_BOUNDS = re.compile(r"__launch_bounds__\((\d+)")
SECONDS = 60.0  # after which a checked kernel is taken for one that never ends


class EmulatorFault(InternalError):  # noqa: N818 - a fault is what it is called everywhere
    """A kernel did what a GPU would not forgive. `kernel`, `block`, `thread` and `line` say where, `what` says what."""

    def __init__(self, kernel: str, block: tuple[int, ...], thread: tuple[int, ...] | None, line: int, code: str,
                 what: str) -> None:
        self.kernel, self.block, self.thread, self.line, self.what = kernel, block, thread, line, what
        super().__init__(explain_error(f"{kernel}, block {block}, thread {thread}, line {line}: {what}", code))


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that a kernel gets a pointer into: its name in messages, address and size, where the pointer points (bytes from
    the address), bytes of the smallest element, and whether it may be read before the kernel writes it."""

    name: str
    address: int
    nbytes: int
    offset: int = 0
    element: int = 1
    is_written: bool = True

    @classmethod
    def of(cls, array: np.ndarray[Any, Any], name: str, is_written: bool = True) -> Buffer:
        """The memory of a contiguous array."""
        return cls(name, int(array.ctypes.data), array.nbytes, 0, array.itemsize, is_written)


class _UInt3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _Given(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("begin", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("unit_shift", ctypes.c_int), ("is_written", ctypes.c_int), ("scalar", ctypes.c_void_p))


class _Launch(ctypes.Structure):
    _fields_ = (("grid", _UInt3), ("block", _UInt3), ("shared_bytes", ctypes.c_int64), ("n_arguments", ctypes.c_int),
                ("n_workers", ctypes.c_int), ("is_checked", ctypes.c_int), ("seconds", ctypes.c_double),
                ("given", ctypes.POINTER(_Given)))


class _Fault(ctypes.Structure):
    _fields_ = (("block", _UInt3), ("thread", _UInt3), ("line", ctypes.c_int), ("has_thread", ctypes.c_int),
                ("text", ctypes.c_char * 600))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch with everything decided: `call[0](*call[1:])` runs it, as often as wanted, and gives 0, or another number where it
    met what `failure()` says."""

    kernel: CudaKernel
    call: tuple[Any, ...]
    fault: _Fault

    def failure(self) -> Exception:
        """What the last run met."""
        if not self.fault.text:
            return MemoryError(f"no memory to emulate {self.kernel.name}")
        error = _described(self.kernel, self.fault)
        self.fault.text = b""
        return error


def prepare(kernel: CudaKernel, buffers: Sequence[Buffer], checked: bool = True, threads: int = 0,
            seconds: float = SECONDS) -> Prepared:
    """One launch, to be run later; its host form is built now. The caller keeps the buffers' memory alive."""
    _check_bounds(kernel)
    entry = host_kernel(kernel.source, kernel.name, checked)
    scalars: list[Any] = [_TYPES[scalar.type](scalar.value) for scalar in kernel.scalars]
    given = (_Given * max(len(buffers) + len(scalars), 1))()
    kept: list[Any] = [given, scalars]
    for number, buffer in enumerate(buffers):
        shift = (buffer.element & -buffer.element).bit_length() - 1
        kept.append(buffer.name.encode())
        given[number] = _Given(kept[-1], buffer.address, buffer.nbytes, buffer.offset, shift, buffer.is_written, None)
    for number, value in enumerate(scalars, start=len(buffers)):
        given[number] = _Given(b"", None, 0, 0, 0, 0, ctypes.addressof(value))
    request = _Launch(_UInt3(*kernel.grid), _UInt3(*kernel.block), kernel.shared_bytes, len(buffers) + len(scalars),
                      threads or os.cpu_count() or 1, checked, seconds, given)
    request.kept = kept  # the addresses in it are theirs
    fault = _Fault()
    return Prepared(kernel, (emulator().sc_emulate, ctypes.c_void_p(entry), ctypes.byref(request), ctypes.byref(fault)), fault)


def launch(kernel: CudaKernel, buffers: Sequence[Buffer], checked: bool = True, threads: int = 0,
           seconds: float = SECONDS) -> None:
    """Run one launch; `buffers` stand in the order of the kernel's pointer arguments (its `buffers`).

    `threads` (0: all cores) are those of a fast launch.  Raises EmulatorFault; then what the buffers hold means nothing.
    """
    prepared = prepare(kernel, buffers, checked, threads, seconds)
    function, *arguments = prepared.call
    if function(*arguments):
        raise prepared.failure()


def _check_bounds(kernel: CudaKernel) -> None:
    bounds = _BOUNDS.search(kernel.source)
    n_threads = int(np.prod(kernel.block))
    if bounds is not None and n_threads > int(bounds.group(1)):
        raise EmulatorFault(kernel.name, (0, 0, 0), None, 0, "",
                            f"a block of {n_threads} threads, but the kernel is bound to {bounds.group(1)}")


def _described(kernel: CudaKernel, fault: _Fault) -> EmulatorFault:
    block, thread = ((place.x, place.y, place.z) for place in (fault.block, fault.thread))
    lines = kernel.source.splitlines()
    code = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
    return EmulatorFault(kernel.name, block, thread if fault.has_thread else None, fault.line, code,
                         fault.text.decode(errors="replace"))


def launch_on_arrays(kernel: CudaKernel, arrays: Sequence[np.ndarray[Any, Any]], checked: bool = True, written: Sequence[int] = (),
                     **options: Any) -> None:
    """Run one launch on contiguous arrays; those at the positions `written` hold nothing yet (outputs, workspace).

    >>> from symconv.codegen.cuda.kernel import Scalar
    >>> source = '''#include "symconv.cuh"
    ... extern "C" __global__ void twice(sc_global<float> out, sc_global<const float> x, int32_t n) {
    ...     if (threadIdx.x < n) out[threadIdx.x] = 2 * x[threadIdx.x];
    ... }'''
    >>> kernel = CudaKernel("twice", source, (1, 1, 1), (32, 1, 1), (0, 1), (Scalar("int32", 3),))
    >>> out = np.zeros(3, "float32")
    >>> launch_on_arrays(kernel, [out, np.arange(3, dtype="float32")], written=(0,))
    >>> out
    array([0., 2., 4.], dtype=float32)
    """
    buffers = [Buffer.of(array, f"argument {number}", number not in written) for number, array in enumerate(arrays)]
    launch(kernel, buffers, checked, **options)
