"""What the runtime asks of a device that has memory of its own. Planning, launching, state and updates are the same code on all."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...codegen.cuda.kernel import CudaKernel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What is known of a device: `arch` is 75, 80, … (a compute capability without its dot); sizes in bytes."""

    name: str
    arch: int
    multiprocessors: int
    memory_bytes: int
    shared_bytes_per_block: int


class Buffer(Protocol):
    """A piece of device memory; it is given back when nothing refers to it any more."""

    @property
    def nbytes(self) -> int:
        """Its size."""
        ...


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `stop` of a buffer: what one operand of a launch may touch.

    `pointer` is where its first element lies (not at the start where strides are negative); `element` the bytes of an element;
    `is_written` is False for what the launch is to fill: nothing there may be read before.
    """

    buffer: Buffer
    start: int
    stop: int
    pointer: int
    name: str = ""
    element: int = 1
    is_written: bool = True

    @classmethod
    def whole(cls, buffer: Buffer) -> Span:
        """All of a buffer."""
        return cls(buffer, 0, buffer.nbytes, 0)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.stop - self.start


class Device(Protocol):
    """A device. All work is in the order of the calls; only `download` and `synchronize` wait for it."""

    name: str
    properties: DeviceProperties

    def allocate(self, nbytes: int) -> Buffer:
        """Memory that starts on `ALIGNMENT` bytes, its contents undefined.

        Raises:
            BackendError: there is not enough memory.
        """
        ...

    def upload(self, buffer: Buffer, array: Array) -> None:
        """Copy a row-major host array to the start of a buffer; the array may be changed as soon as this returns."""
        ...

    def download(self, buffer: Buffer, array: Array) -> None:
        """Copy the start of a buffer into a row-major host array, when all work before this is done."""
        ...

    def copy(self, target: Span, source: Span) -> None:
        """Copy bytes within the device."""
        ...

    def clear(self, span: Span) -> None:
        """Fill with 0."""
        ...

    def load(self, kernel: CudaKernel) -> Callable[[Sequence[Span]], None]:
        """A launch of a kernel, compiled or taken from the cache: called with the spans of its buffers, in order.

        Raises:
            BackendError: it cannot be compiled here.
        """
        ...

    def as_array(self, span: Span, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Any:
        """An array of the device's array module (NumPy's or CuPy's) over memory, its first element at the span's pointer.

        Strides in elements.
        """
        ...

    def to_array(self, array: Array) -> Any:
        """A host array as one of the device's array module."""
        ...

    def as_buffer(self, value: Any) -> tuple[Buffer, tuple[int, ...], np.dtype[Any]] | None:
        """The memory of an array that lies on this device already, row-major, with its shape and dtype; None for any other."""
        ...

    def record(self, work: Callable[[], None]) -> Callable[[], None] | None:
        """Record the launches and copies that `work` makes, without running them; gives what runs them all at once.

        None where this device records nothing, or where the work cannot be recorded: then it is run launch by launch.
        """
        ...

    def synchronize(self) -> None:
        """Wait until all work is done.

        Raises:
            BackendError: the device has met an error.
        """
        ...
