"""The emulator as a device: host memory, and generated CUDA run on the CPU thread by thread (`codegen/cuda/emulator.py`).

Everything but the launches is as on a GPU: the same plans, buffers, state and recordings.  With `config.emulator.checked` every
access of every kernel is watched.  NumPy arrays over its memory (results that were left on the device) are arrays on the device.
"""
from __future__ import annotations

import operator
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from ...codegen.cuda import emulator
from ...codegen.cuda.kernel import CudnnLaunch, Launch
from ...codegen.cudnn.execution import launch_tensors, registered_stand_in
from ...config import config
from ...dtypes import numpy_dtype
from ...errors import InternalError, explain_error
from .find import ALIGNMENT
from .interface import Action, Array, Buffer, DeviceMemoryError, DeviceProperties, Lent, Span

PROPERTIES = DeviceProperties("emulator", 90, 1, 16 << 30, 227 * 1024)
"""It answers as a GPU of compute capability 9.0, whose every instruction that kernels use it knows."""


class HostBuffer:
    """Host memory that stands for device memory, starting on ALIGNMENT bytes."""

    __slots__ = ("__weakref__", "address", "home", "memory", "nbytes")

    def __init__(self, nbytes: int, home: EmulatorDevice) -> None:
        self.memory = np.full(nbytes + ALIGNMENT, 0xCD, np.uint8)  # what nobody has written should not look like zeros
        self.address = -(-int(self.memory.ctypes.data) // ALIGNMENT) * ALIGNMENT
        self.nbytes = nbytes
        self.home = home

    def bytes(self, start: int, stop: int) -> Array:
        """A part of it."""
        first = self.address - int(self.memory.ctypes.data)
        return self.memory[first + start:first + stop]


class _Launch(partial[int]):
    """A launch with everything decided; it gives 0, or another number where the kernel met a fault."""

    prepared: emulator.Prepared


class EmulatorDevice:
    """The `number`-th emulator of a process; each has memory of its own, at most `memory_limit` bytes."""

    def __init__(self, number: int = 0) -> None:
        self.name = f"emulator:{number}" if number else "emulator"
        self.properties = PROPERTIES
        self.memory_limit = PROPERTIES.memory_bytes
        self._in_use = 0

    @property
    def setting(self) -> bool:
        """Whether accesses are watched."""
        return bool(config.emulator.checked)

    def allocate(self, nbytes: int) -> HostBuffer:
        """Host memory."""
        if self._in_use + nbytes > self.memory_limit:
            raise DeviceMemoryError(explain_error(
                f"{self.name} has no {nbytes:,} bytes of memory left",
                f"{self._in_use:,} of {self.memory_limit:,} bytes are in use",
                "use smaller batches, or free() functions that are not needed"))
        buffer = HostBuffer(nbytes, self)
        self._in_use += nbytes
        weakref.finalize(buffer, self._given_back, nbytes).atexit = False
        return buffer

    def _given_back(self, nbytes: int) -> None:
        self._in_use -= nbytes

    def memory_in_use(self) -> int:
        """Bytes of all buffers that live."""
        return self._in_use

    def staging(self, nbytes: int) -> Array:
        """Host memory as any."""
        return np.empty(nbytes, np.uint8)

    def send(self, target: Span, staged: Array) -> None:
        """Copy at once."""
        self.run([_copy(_bytes(target)[:staged.nbytes], staged.reshape(-1).view(np.uint8))])

    def fetch(self, staged: Array, source: Span) -> None:
        """Copy at once."""
        self.run([_copy(staged.reshape(-1).view(np.uint8), _bytes(source)[:staged.nbytes])])

    def mark(self) -> Callable[[], None]:
        """Nothing is ever under way."""
        return self.synchronize

    def upload(self, buffer: Buffer, array: Array) -> None:
        """Copy at once."""
        self.send(Span.whole(buffer), array)
        self.synchronize()

    def download(self, buffer: Buffer, array: Array) -> None:
        """Copy at once."""
        self.fetch(array, Span.whole(buffer))
        self.synchronize()

    def copying(self, target: Span, source: Span) -> Action:
        """A copy of host memory."""
        return _copy(_bytes(target), _bytes(source))

    def clearing(self, span: Span) -> Action:
        """A fill of host memory."""
        return partial(_bytes(span).fill, 0)

    def bind(self, launch: Launch, spans: Sequence[Span]) -> Action:
        """A launch of the kernel's host form, which is built now."""
        if isinstance(launch, CudnnLaunch):
            return self._bind_stand_in(launch, spans)
        buffers = [emulator.Buffer(span.name or f"argument {number}", _host(span.buffer).address + span.start, span.nbytes,
                                   span.pointer - span.start, span.element, span.is_written)
                   for number, span in enumerate(spans)]
        prepared = emulator.prepare(launch, buffers, checked=self.setting)
        action = _Launch(*prepared.call)
        action.prepared = prepared
        return action

    def _bind_stand_in(self, launch: CudnnLaunch, spans: Sequence[Span]) -> Action:
        """A plan of cuDNN, run by the stand-in that a test has registered."""
        tensors = [self.as_array(span, numpy_dtype(each.dtype), each.shape, each.strides)
                   for span, each in zip(spans, launch_tensors(launch), strict=False)]
        return partial(registered_stand_in().execute, launch, tuple(tensors))

    def run(self, actions: Sequence[Action]) -> None:
        """One after the other, until one fails: a loop in C, like all that it calls."""
        done = len(list(takewhile(operator.not_, map(operator.call, actions))))
        if done < len(actions):
            raise _failure(actions[done])

    def record(self, actions: Sequence[Action]) -> Action | str:
        """There is nothing to gain."""
        return "the emulator records nothing"

    def timed(self, groups: Sequence[Sequence[Action]]) -> list[tuple[float, float]]:
        """Between readings of the clock; there is nothing to wait for."""
        flat: list[Action] = [time.perf_counter]
        for group in groups:
            flat += [*group, time.perf_counter]
        found = list(map(operator.call, flat))
        for action, value in zip(flat, found, strict=True):
            if value and isinstance(action, _Launch):
                raise _failure(action)
        stamps = [value for action, value in zip(flat, found, strict=True) if action is time.perf_counter]
        return [(float(seconds), 0.0) for seconds in np.diff(stamps)]

    def time(self, actions: Sequence[Action], times: int = 1) -> float:
        """By the host's clock."""
        start = time.perf_counter()
        for _ in range(times):
            self.run(actions)
        return (time.perf_counter() - start) / times

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def here(self) -> AbstractContextManager[None]:
        """NumPy knows no devices."""
        return nullcontext()

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

    def lent(self, value: Any) -> Lent | None:
        """A NumPy array over the memory of a result that was left on an emulator; a view of one is copied, as is another's."""
        owner = _owner(value)
        if owner is None:
            return None
        if owner.home is self and value.flags.c_contiguous and value.ctypes.data == owner.address and value.nbytes == owner.nbytes:
            return Lent(value, owner, value.shape, value.dtype)
        buffer = self.allocate(value.nbytes)
        self.as_array(Span.whole(buffer), value.dtype, value.shape, _row_major(value.shape))[...] = value
        return Lent(value, buffer, value.shape, value.dtype)

    def give_back(self, lent: Sequence[Lent]) -> None:
        """Nothing is ever under way."""

    def shown(self, buffer: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...], loan: Any) -> Any:
        """A NumPy array."""
        if not buffer.nbytes:
            return np.empty(shape, dtype)
        return np.asarray(_Shown(_host(buffer), loan)).view(dtype).reshape(shape)

    def take_over(self) -> None:
        """Nothing is ever under way."""

    def hand_over(self) -> None:
        """Nothing is ever under way."""


class _Shown:
    """What a result's array rests on: it leads from the array to the buffer."""

    __slots__ = ("__array_interface__", "_loan", "buffer")

    def __init__(self, buffer: HostBuffer, loan: Any) -> None:
        self.buffer, self._loan = buffer, loan
        self.__array_interface__ = {"version": 3, "shape": (buffer.nbytes,), "typestr": "|u1", "data": (buffer.address, False)}


def _owner(value: Any) -> HostBuffer | None:
    """The buffer in whose memory an array lies."""
    while isinstance(value, np.ndarray):
        value = value.base
    return value.buffer if isinstance(value, _Shown) else None


def _row_major(shape: Sequence[int]) -> list[int]:
    return [int(np.prod(shape[axis + 1:], dtype=np.int64)) for axis in range(len(shape))]


def _copy(target: Array, source: Array) -> Action:
    """A copy that runs no code of Python's."""
    return partial(target.__setitem__, slice(None), source)


def _failure(action: Action) -> Exception:
    if isinstance(action, _Launch):
        return action.prepared.failure()
    return InternalError(f"an action gave a result: {action!r}")


def _bytes(span: Span) -> Array:
    return _host(span.buffer).bytes(span.start, span.stop)


def _host(buffer: Buffer) -> HostBuffer:
    if not isinstance(buffer, HostBuffer):
        raise InternalError(f"a buffer of another device: {buffer!r}")
    return buffer
