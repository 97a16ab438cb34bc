"""What an implementation is asked about (`Problem`) and what it answers (`Kernel`).

The C interface of every generated kernel is

    int NAME(void *const *buffers, const int64_t *sizes);

`buffers` are pointers to the first element of every output, then of every input, then of the workspace (where one is
asked for), in the problem's order.  `sizes` are the run-time numbers the kernel asked for in `Kernel.sizes`.  The result is
0, or n > 0 for the n-th text of `Kernel.errors`: a user error found at run time, such as an index out of range.
Outputs are contiguous in row-major order.  Inputs are so too, unless the implementation takes strides.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from .. import dtypes
from ..graph import Op


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


@dataclass(frozen=True, slots=True)
class Operand:
    """One array as a kernel sees it; strides are in elements, 0 where an axis is broadcast, negative where reversed."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def contiguous(cls, dtype: str, shape: tuple[int, ...]) -> Operand:
        """A row-major array."""
        return cls(dtype, shape, contiguous_strides(shape))

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * dtypes.itemsize(self.dtype)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps (axes of size 1 may have any stride)."""
        if self.size == 0:
            return True
        wanted = contiguous_strides(self.shape)
        return all(size == 1 or stride == want
                   for size, stride, want in zip(self.shape, self.strides, wanted, strict=True))


@dataclass(frozen=True, slots=True)
class Problem:
    """An op on operands of known dtype, shape and strides. Outputs are contiguous."""

    op: Op
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Preparation:
    """An input that an implementation wants in another form (weights packed or transformed), made by a kernel of its own.

    The kernel reads the input at `position` and writes `result`, which the main kernel then gets in its place.  Where the input is
    state that the function does not update, this runs only when that state changes.  `seconds` are what it is expected to take
    beside reading and writing.
    """

    position: int
    kernel: Kernel
    result: Operand
    seconds: float = 0.0


class AnyKernel(Protocol):
    """What planning asks of a kernel for any device: see `Kernel`."""

    @property
    def name(self) -> str: ...

    @property
    def workspace_bytes(self) -> int: ...

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]: ...

    @property
    def errors(self) -> tuple[str, ...]: ...

    @property
    def flops(self) -> int: ...

    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generated kernel, ready to be compiled.

    `name` is the C function, spelling its configuration (`sc_elementwise_add_f32_2d`); `source` the whole C file;
    `sizes` the run-time numbers; `in_place` the pairs (output, input) that may share memory; `errors` the texts of the
    results 1, 2, …; `flops` and `bytes` what it does at least, for profiles.
    """

    name: str
    source: str
    sizes: tuple[int, ...] = ()
    workspace_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    errors: tuple[str, ...] = ()
    flops: int = 0
    bytes: int = 0
