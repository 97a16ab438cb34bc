"""What the runtime asks of a device that has memory of its own. Planning, launching, state and updates are the same code on all."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...codegen.cuda.kernel import Launch
from ...errors import BackendError

Array = np.ndarray[Any, Any]
Action = Callable[[], Any]
"""Puts one launch, copy or fill into the device's stream. It is made with everything decided, so that calling it runs no Python
code of ours: what `Device.run` is given as one list is issued without a place where an interrupt of the user's could arrive."""


class DeviceMemoryError(BackendError):
    """A device has not enough memory left. The message says how much was asked for and how much there is."""


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What is known of a device: `arch` is 75, 80, … (a compute capability without its dot); sizes in bytes.

    `software` is what measured times depend on beside the device: driver, runtime, compiler; `figures` what cuDNN wants to know of
    a GPU, as its JSON (empty: not known).
    """

    name: str
    arch: int
    multiprocessors: int
    memory_bytes: int
    shared_bytes_per_block: int
    software: str = ""
    figures: str = ""


class Buffer(Protocol):
    """A piece of device memory; it is given back when nothing refers to it any more."""

    @property
    def nbytes(self) -> int:
        """Its size."""
        ...

    @property
    def address(self) -> int:
        """Where it starts."""
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


@dataclass(frozen=True, slots=True)
class Lent:
    """A user's array that lies on a device: row-major in `buffer`.

    `value` keeps it alive.  `is_ordered`: what its owner does next can be made to come behind the device's stream.
    """

    value: Any
    buffer: Buffer
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_ordered: bool = True


class Device(Protocol):
    """A device with one stream: all work is done in the order in which it was issued.

    Only `upload`, `download`, `synchronize`, `time` and the functions that `mark` gives wait for it.
    """

    name: str
    properties: DeviceProperties

    @property
    def setting(self) -> Any:
        """What actions depend on beside their arguments: those made under another setting must be made again."""
        ...

    def allocate(self, nbytes: int) -> Buffer:
        """Memory that starts on `ALIGNMENT` bytes, its contents undefined.

        Raises:
            DeviceMemoryError: there is not enough, also after unused memory was given back.
        """
        ...

    def memory_in_use(self) -> int:
        """Bytes of all buffers that live."""
        ...

    def staging(self, nbytes: int) -> Array:
        """Host memory that `send` and `fetch` copy from and to while the host goes on (page-locked, on a GPU), as bytes."""
        ...

    def send(self, target: Span, staged: Array) -> None:
        """Issue a copy to the device. Bytes of `staging` memory may be written again when a later `mark` has been waited for; those
        of other memory as soon as this returns."""
        ...

    def fetch(self, staged: Array, source: Span) -> None:
        """Issue a copy from the device; the bytes are there when a later `mark` or `synchronize` has been waited for."""
        ...

    def mark(self) -> Callable[[], None]:
        """A function that waits until all that was issued before this call is done."""
        ...

    def upload(self, buffer: Buffer, array: Array) -> None:
        """Copy a row-major host array to the start of a buffer; the array may be changed as soon as this returns."""
        ...

    def download(self, buffer: Buffer, array: Array) -> None:
        """Copy the start of a buffer into a row-major host array, when all work before this is done."""
        ...

    def copying(self, target: Span, source: Span) -> Action:
        """A copy of bytes within the device."""
        ...

    def clearing(self, span: Span) -> Action:
        """A fill with 0."""
        ...

    def bind(self, launch: Launch, spans: Sequence[Span]) -> Action:
        """A launch on the spans of its buffers, in order; a kernel is compiled now, or taken from the cache.

        Raises:
            BackendError: it cannot be compiled here.
        """
        ...

    def run(self, actions: Sequence[Action]) -> None:
        """Issue all of them, in order.

        Raises:
            BackendError: the device took one of them for an error.
        """
        ...

    def record(self, actions: Sequence[Action]) -> Action | str:
        """One action that issues all of them at once (a CUDA graph), without running them now; why not, where that cannot be."""
        ...

    def timed(self, groups: Sequence[Sequence[Action]]) -> list[tuple[float, float]]:
        """Issue groups of actions, in order and without a place for an interrupt, and wait for each; gives for each its seconds in
        all, and those of the wait."""
        ...

    def time(self, actions: Sequence[Action], times: int = 1) -> float:
        """Seconds of one issue of the actions on the device, as the mean of so many in a row."""
        ...

    def synchronize(self) -> None:
        """Wait until all work is done.

        Raises:
            BackendError: the device has met an error.
        """
        ...

    def here(self) -> AbstractContextManager[None]:
        """Inside of it the device's array module works on this device, in its stream."""
        ...

    def as_array(self, span: Span, dtype: np.dtype[Any], shape: Sequence[int], strides: Sequence[int]) -> Any:
        """An array of the device's array module (NumPy's or CuPy's) over memory, its first element at the span's pointer.

        Strides in elements.
        """
        ...

    def to_array(self, array: Array) -> Any:
        """A host array as one of the device's array module."""
        ...

    def lent(self, value: Any) -> Lent | None:
        """A user's array that lies on a device already, in memory of this one and row-major (copied on the device where it is not);
        None for anything else.  What was issued to the user's current stream before is waited for, in the stream.

        Raises:
            InputTypeError: it lies on a device and cannot be taken from there.
        """
        ...

    def give_back(self, lent: Sequence[Lent]) -> None:
        """What the user does next to these arrays comes after all that was issued until now."""
        ...

    def shown(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], loan: Any) -> Any:
        """The user's row-major array over memory of a result; it, its views and its exports elsewhere keep `loan` alive."""
        ...

    def take_over(self) -> None:
        """Memory that the user had may be written in the stream from now on: what he has issued to read it comes before."""
        ...

    def hand_over(self) -> None:
        """What the user does next to results on the device comes after all that was issued until now."""
        ...
