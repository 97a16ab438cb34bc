"""Memory of the arrays that a program returns: large ones are used again once the caller has let them go.

A fresh large array is new to the process on every call: the system must find and clear each of its pages when it is first
written, which can take longer than a memory-bound kernel.  A buffer lent out comes back when the last array that looks at it (the
returned one, its views, its exports to other libraries) is gone; no array that a caller still holds is ever written.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

LARGE_BYTES = 1 << 17  # below this the C library's heap hands out memory that is in use already
MOST_KEPT = 2          # per result: `y = f(x)` in a loop still holds the last y while the next is made
ALIGNMENT = 64


class _Buffer:
    """Memory for one result, and how NumPy is told of it."""

    __slots__ = ("interface", "memory")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], n_bytes: int) -> None:
        self.memory = np.empty(n_bytes + ALIGNMENT, np.uint8)
        address = -(-self.memory.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.interface = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (address, False)}


class _Loan:
    """A buffer that is lent out: what the returned array and all its views rest on."""

    __slots__ = ("__array_interface__", "_buffer", "_home")

    def __init__(self, buffer: _Buffer, home: list[_Buffer]) -> None:
        self._buffer, self._home = buffer, home
        self.__array_interface__ = buffer.interface

    def __del__(self) -> None:
        if len(self._home) < MOST_KEPT:
            self._home.append(self._buffer)


def output_maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], Array]:
    """A function that gives an array for a result on each call, its values undefined."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if n_bytes < LARGE_BYTES:
        return lambda: np.empty(shape, dtype)
    home: list[_Buffer] = []
    is_plain = np.dtype(dtype.str) == dtype  # bfloat16 is no NumPy type of its own: the interface can only call it raw bytes

    def lend() -> Array:
        try:
            buffer = home.pop()
        except IndexError:  # asked for so, not by a look at the length: another thread may have let go or taken one since
            buffer = _Buffer(shape, dtype, n_bytes)
        array = np.asarray(_Loan(buffer, home))
        return array if is_plain else array.view(dtype)

    return lend
