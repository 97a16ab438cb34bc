"""Diagonals: read, written, summed, and made into matrices."""
from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Variable
from .axes import normalize_axis
from .constants import as_variable
from .creation import arange, zeros
from .elementwise import maximum, minimum
from .indexing import getitem, set_subtensor
from .shape import Size, dimshuffle, size_of


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The elements x[…, i, …, i + offset, …] as a last axis, in place of the two axes, as NumPy's.

    >>> diagonal(as_variable([[1, 2, 3], [4, 5, 6]]), 1).eval().tolist()
    [2, 6]
    """
    x = as_variable(x)
    if x.ndim < 2:
        raise GraphTypeError(explain_error("a diagonal needs two axes", str(x.type), "T.diag(vector) makes a matrix"))
    first, second = normalize_axis(axis1, x.ndim), normalize_axis(axis2, x.ndim)
    if first == second:
        raise ArgumentError(explain_error("a diagonal runs along two axes", f"axis {first} twice"))
    rest = [axis for axis in range(x.ndim) if axis not in (first, second)]
    in_front = dimshuffle(x, [first, second, *rest])
    found = getitem(in_front, _places(in_front, _checked_offset(offset)))
    return dimshuffle(found, [*range(1, found.ndim), 0])


def diag(x: Any, k: int = 0) -> Variable:
    """A vector as the diagonal number k of a square matrix that is 0 elsewhere; of a matrix its diagonal number k.

    >>> diag(as_variable([1, 2]), 1).eval().tolist(), diag(as_variable([[1, 2], [3, 4]])).eval().tolist()
    ([[0, 1, 0], [0, 0, 2], [0, 0, 0]], [1, 4])
    """
    x = as_variable(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise GraphTypeError(explain_error("diag takes a vector or a matrix", str(x.type), "T.diagonal takes any rank from 2"))
    size = size_of(x, 0) + abs(_checked_offset(k))
    matrix = zeros((size, size), x.dtype)
    count = arange(size_of(x, 0))
    return set_subtensor(getitem(matrix, (count + max(-k, 0), count + max(k, 0))), x)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
    """The sum of a diagonal."""
    return diagonal(x, offset, axis1, axis2).sum(axis=-1)


def fill_diagonal(x: Any, value: Any) -> Variable:
    """x with `value` (a scalar) at every x[i, i, …]; a matrix need not be square.

    >>> fill_diagonal(as_variable([[1, 2], [3, 4], [5, 6]]), 0).eval().tolist()
    [[0, 2], [3, 0], [5, 6]]
    """
    return _filled(as_variable(x), value, 0)


def fill_diagonal_offset(x: Any, value: Any, offset: int) -> Variable:
    """A matrix with `value` (a scalar) on its diagonal number `offset`: above the main one where it is positive."""
    x = as_variable(x)
    if x.ndim != 2:
        raise GraphTypeError(explain_error("fill_diagonal_offset takes a matrix", str(x.type)))
    return _filled(x, value, _checked_offset(offset))


def _filled(x: Variable, value: Any, offset: int) -> Variable:
    if x.ndim < 2:
        raise GraphTypeError(explain_error("a diagonal needs two axes", str(x.type)))
    return set_subtensor(getitem(x, _places(x, offset, x.ndim)), as_variable(value, x.dtype))


def _places(x: Variable, offset: int, ndim: int = 2) -> tuple[Variable, ...]:
    """The index of each of the first axes along the diagonal."""
    shifts = [max(-offset, 0), max(offset, 0), *[0] * (ndim - 2)]
    lengths: list[Size] = [size_of(x, axis) - shift for axis, shift in enumerate(shifts)]
    known = [length for length in lengths if isinstance(length, int)]
    shortest: Any = max(min(known), 0) if known else 0
    if len(known) < len(lengths):
        open_ones = [length for length in lengths if not isinstance(length, int)]
        shortest = shortest if known else open_ones.pop()
        for length in open_ones:
            shortest = minimum(shortest, length)
        shortest = maximum(shortest, 0)
    count = arange(shortest)
    return tuple(count + shift for shift in shifts)


def _checked_offset(offset: Any) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise ArgumentError(explain_error("the number of a diagonal is an int", repr(offset)))
    return offset
