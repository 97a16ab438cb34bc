"""Order along an axis: `argsort` is an op; `sort` and the k largest are elements taken in its order, so they have gradients."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from .axes import normalize_axis
from .constants import as_variable
from .creation import arange
from .indexing import getitem
from .shape import dimshuffle, reshape, size_of

_KINDS = ("quicksort", "mergesort", "heapsort", "stable", None)


@dataclass(frozen=True, slots=True)
class ArgSort(Op):
    """Positions, int64, that put x in ascending order along `axis`; equal elements keep their order, NaN goes to the end.

    It has no generated kernel yet and runs its reference.
    """

    axis: int

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """int64 of the same shape."""
        if self.axis >= x.ndim:
            raise GraphTypeError(explain_error(f"sorting along axis {self.axis} needs a rank above {self.axis}", str(x)))
        return (TensorType("int64", x.shape),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """Positions have no gradient."""
        return (None,)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """NumPy's stable argsort."""
        wide = x.astype(np.float32) if x.dtype.name == "bfloat16" else x
        return (np.argsort(wide, axis=self.axis, kind="stable").astype(np.int64, copy=False),)

    def __str__(self) -> str:
        return f"argsort{{axis={self.axis}}}"


def argsort(x: Any, axis: int | None = -1, kind: str | None = None) -> Variable:
    """The positions, int64, that put x in ascending order along `axis` (None: all elements as one vector).

    The order is stable and NaN goes to the end, whichever of NumPy's kinds is named.

    >>> argsort(as_variable([3.0, 1.0, 2.0])).eval().tolist()
    [1, 2, 0]
    """
    if kind not in _KINDS:
        raise ArgumentError(explain_error("a kind of sorting is one of " + ", ".join(map(repr, _KINDS[:-1])), repr(kind)))
    variable, place = _axis(x, axis)
    return apply_op(ArgSort(place), variable)


def sort(x: Any, axis: int | None = -1, kind: str | None = None) -> Variable:
    """x in ascending order along `axis` (None: all elements as one vector); NaN goes to the end.

    The gradient of each element goes to where it came from.

    >>> sort(as_variable([[3, 1], [2, 5]]), axis=0).eval().tolist()
    [[2, 1], [3, 5]]
    """
    variable, place = _axis(x, axis)
    return take_along_axis(variable, argsort(variable, place, kind), place)


def topk_and_argtopk(x: Any, kth: int, axis: int | None = -1) -> tuple[Variable, Variable]:
    """The |kth| largest elements along `axis` (the smallest where `kth` is negative), outermost first, and their positions.

    NaN counts as larger than every number.  Raises ArgumentError for a `kth` of 0.
    """
    if isinstance(kth, bool) or not isinstance(kth, int) or kth == 0:
        raise ArgumentError(explain_error("topk takes how many elements, an int that is not 0", repr(kth)))
    variable, place = _axis(x, axis)
    ends = slice(None, -kth - 1, -1) if kth > 0 else slice(None, -kth)
    places = getitem(apply_op(ArgSort(place), variable), (*[slice(None)] * place, ends))
    return take_along_axis(variable, places, place), places


def topk(x: Any, kth: int, axis: int | None = -1) -> Variable:
    """The values of `topk_and_argtopk`.

    >>> topk(as_variable([3, 1, 2, 5]), 2).eval().tolist(), topk(as_variable([3, 1, 2, 5]), -2).eval().tolist()
    ([5, 3], [1, 2])
    """
    return topk_and_argtopk(x, kth, axis)[0]


def argtopk(x: Any, kth: int, axis: int | None = -1) -> Variable:
    """The positions of `topk_and_argtopk`, int64."""
    return topk_and_argtopk(x, kth, axis)[1]


def take_along_axis(x: Any, indices: Any, axis: int) -> Variable:
    """The elements of x at `indices` along one axis, as NumPy's: both have one rank, and equal sizes on the other axes.

    >>> take_along_axis(as_variable([[1, 2], [3, 4]]), as_variable([[1], [0]]), 1).eval().tolist()
    [[2], [3]]
    """
    x, indices = as_variable(x), as_variable(indices)
    place = normalize_axis(axis, x.ndim)
    if x.ndim != indices.ndim:
        raise GraphTypeError(explain_error("take_along_axis takes indices of the tensor's rank", f"{indices.type} for {x.type}"))
    others = [dimshuffle(arange(size_of(x, each)), ["x"] * each + [0] + ["x"] * (x.ndim - each - 1)) for each in range(x.ndim)]
    return getitem(x, (*others[:place], indices, *others[place + 1:]))


def _axis(x: Any, axis: int | None) -> tuple[Variable, int]:
    variable = as_variable(x)
    if axis is None:
        return (variable if variable.ndim == 1 else reshape(variable, (-1,))), 0
    return variable, normalize_axis(axis, variable.ndim)
