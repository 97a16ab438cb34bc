"""Axis arguments: from what users write (negative numbers, tuples, None) to positions from 0."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import ArgumentError, explain_error


def normalize_axis(axis: Any, ndim: int) -> int:
    """One axis as a number from 0; an ArgumentError where the rank has no such axis.

    >>> normalize_axis(-1, 4)
    3
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ArgumentError(explain_error("an axis is a whole number", repr(axis)))
    number = int(axis)
    if not -ndim <= number < ndim:
        raise ArgumentError(explain_error(f"there is no axis {number}", f"a tensor of rank {ndim}",
                                          f"use an axis from {-ndim} to {ndim - 1}" if ndim else "a scalar has no axes"))
    return number % ndim


def normalize_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """One axis or several, in the order given; None means all; the same axis twice is an ArgumentError.

    >>> normalize_axes((-1, 0), 3), normalize_axes(None, 2), normalize_axes(1, 2)
    ((2, 0), (0, 1), (1,))
    """
    if axes is None:
        return tuple(range(ndim))
    listed: Iterable[Any] = axes if isinstance(axes, (tuple, list)) else (axes,)
    numbers = tuple(normalize_axis(axis, ndim) for axis in listed)
    if len(set(numbers)) != len(numbers):
        raise ArgumentError(explain_error("an axis is given twice", repr(axes)))
    return numbers
