"""The emulator as a device: host memory, and generated CUDA run on the CPU thread by thread (`codegen/cuda/emulator.py`).

Everything but the launches is as on a GPU: the same plans, buffers, state and recordings.  With `config.emulator.checked` every
access of every kernel is watched.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...codegen.cuda import emulator
from ...codegen.cuda.kernel import CudaKernel
from ...config import config
from .find import ALIGNMENT
from .interface import Array, Buffer, DeviceProperties, Span

PROPERTIES = DeviceProperties("emulator", 90, 1, 16 << 30, 227 * 1024)
"""It answers as a GPU of compute capability 9.0, whose every instruction that kernels use it knows."""


class HostBuffer:
    """Host memory that stands for device memory, starting on ALIGNMENT bytes."""

    __slots__ = ("_memory", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self._memory = np.full(nbytes + ALIGNMENT, 0xCD, np.uint8)  # what nobody has written should not look like zeros
        self.address = -(-int(self._memory.ctypes.data) // ALIGNMENT) * ALIGNMENT
        self.nbytes = nbytes

    def bytes(self, start: int, stop: int) -> Array:
        """A part of it."""
        first = self.address - int(self._memory.ctypes.data)
        return self._memory[first + start:first + stop]


class EmulatorDevice:
    """The one emulator of a process."""

    name = "emulator"
    properties = PROPERTIES

    def allocate(self, nbytes: int) -> HostBuffer:
        """Host memory."""
        return HostBuffer(nbytes)

    def upload(self, buffer: Buffer, array: Array) -> None:
        """Copy at once."""
        _host(buffer).bytes(0, array.nbytes)[:] = array.reshape(-1).view(np.uint8)

    def download(self, buffer: Buffer, array: Array) -> None:
        """Copy at once."""
        array.reshape(-1).view(np.uint8)[:] = _host(buffer).bytes(0, array.nbytes)

    def copy(self, target: Span, source: Span) -> None:
        """Copy at once."""
        _bytes(target)[:] = _bytes(source)

    def clear(self, span: Span) -> None:
        """Fill at once."""
        _bytes(span)[:] = 0

    def load(self, kernel: CudaKernel) -> Callable[[Sequence[Span]], None]:
        """A launch of the kernel's host form, which is built when it first runs."""
        return partial(_launch, kernel)

    def as_array(self, span: Span, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Any:
        """A NumPy array over the memory."""
        if 0 in shape:
            return np.empty(shape, dtype)
        steps = [stride * dtype.itemsize for stride in strides]
        low = sum(min(0, (size - 1) * step) for size, step in zip(shape, steps, strict=True))
        high = sum(max(0, (size - 1) * step) for size, step in zip(shape, steps, strict=True)) + dtype.itemsize
        flat = _host(span.buffer).bytes(span.pointer + low, span.pointer + high).view(dtype)
        return np.lib.stride_tricks.as_strided(flat[-low // dtype.itemsize:], shape, steps)

    def to_array(self, array: Array) -> Any:
        """The array itself."""
        return array

    def as_buffer(self, value: Any) -> tuple[Buffer, tuple[int, ...], np.dtype[Any]] | None:
        """None: arrays of the emulator's memory are NumPy arrays, which are copied."""
        return None

    def record(self, work: Callable[[], None]) -> Callable[[], None] | None:
        """The work itself: there is nothing to gain."""
        return work

    def synchronize(self) -> None:
        """Nothing is ever under way."""


def _launch(kernel: CudaKernel, spans: Sequence[Span]) -> None:
    buffers = [emulator.Buffer(span.name or f"argument {number}", _host(span.buffer).address + span.start, span.nbytes,
                               span.pointer - span.start, span.element, span.is_written) for number, span in enumerate(spans)]
    emulator.launch(kernel, buffers, checked=config.emulator.checked)


def _bytes(span: Span) -> Array:
    return _host(span.buffer).bytes(span.start, span.stop)


def _host(buffer: Buffer) -> HostBuffer:
    if not isinstance(buffer, HostBuffer):
        raise TypeError(f"a buffer of another device: {buffer!r}")
    return buffer
