"""Theano's broadcast patterns: which axes are known to have size 1.

Here an axis of size 1 is broadcast whether or not that was known when the expression was written, so no program needs these
functions; they say sizes, which are checked.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import GraphTypeError, explain_error
from ..graph import Variable
from ..ops.axes import normalize_axes
from ..ops.constants import as_variable
from ..ops.specify_shape import specify_shape

__all__ = ["addbroadcast", "patternbroadcast", "unbroadcast"]


def addbroadcast(x: Any, *axes: int) -> Variable:
    """x, whose size along each of `axes` is 1: known from now on, and a ShapeError where it is another.

    >>> import numpy as np
    >>> from symconv.tensor import matrix
    >>> addbroadcast(matrix("x"), 0).type.shape
    (1, None)
    """
    x = as_variable(x)
    chosen = normalize_axes(axes, x.ndim)
    return specify_shape(x, [1 if axis in chosen else None for axis in range(x.ndim)])


def unbroadcast(x: Any, *axes: int) -> Variable:
    """x itself, for programs written for Theano, where broadcasting was forbidden along these axes; they must exist."""
    x = as_variable(x)
    normalize_axes(axes, x.ndim)
    return x


def patternbroadcast(x: Any, broadcastable: Sequence[bool]) -> Variable:
    """`addbroadcast` along the axes whose entry in `broadcastable` is true; it has an entry for each axis (GraphTypeError)."""
    x = as_variable(x)
    if len(broadcastable) != x.ndim:
        raise GraphTypeError(explain_error("a broadcast pattern has one entry for each axis",
                                           f"{tuple(broadcastable)} for {x.type}"))
    return addbroadcast(x, *(axis for axis, single in enumerate(broadcastable) if single))
