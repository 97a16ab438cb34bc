"""What Theano kept in `theano.tensor.extra_ops`, and other small functions over the rest.

Functions of NumPy's whose result has a size that depends on values (`unique`, `nonzero`, `compress`) are none here: sizes are
known before a program runs.  Masks do what they are mostly used for: `T.where(mask, x, 0)`, sums of them.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, GraphTypeError, explain_error
from ..graph import Variable
from ..ops.axes import normalize_axes, normalize_axis
from ..ops.axis_moves import squeeze
from ..ops.broadcasting import broadcast_shapes
from ..ops.constants import as_variable
from ..ops.creation import one_hot, zeros
from ..ops.cumulative import cumprod, cumsum
from ..ops.diagonals import fill_diagonal, fill_diagonal_offset
from ..ops.elementwise import abs as absolute
from ..ops.elementwise import cast, eq, isnan
from ..ops.indexing import getitem, inc_subtensor
from ..ops.joining import concatenate, repeat, stack
from ..ops.linalg import matmul
from ..ops.reductions import all as all_of
from ..ops.reductions import max as maximum_of
from ..ops.reductions import min as minimum_of
from ..ops.shape import dimshuffle, reshape, shape_sizes
from ..ops.sizes import joined_size
from ..ops.sorting import argsort

to_one_hot = one_hot

__all__ = ["allclose", "batched_tensordot", "bincount", "cumprod", "cumsum", "deg2rad", "diff", "fill_diagonal",
           "fill_diagonal_offset", "horizontal_stack", "inverse_permutation", "isclose", "linspace", "ptp", "rad2deg", "repeat",
           "squeeze", "stacklists", "to_one_hot", "vertical_stack"]


def diff(x: Any, n: int = 1, axis: int = -1) -> Variable:
    """Differences of neighbours along an axis, taken n times.

    >>> diff(as_variable([1, 4, 9, 16]), n=2).eval().tolist()
    [2, 2]
    """
    x = as_variable(x)
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ArgumentError(explain_error("differences are taken a whole number of times from 0", repr(n)))
    before = [slice(None)] * normalize_axis(axis, x.ndim)
    for _ in range(n):
        x = getitem(x, (*before, slice(1, None))) - getitem(x, (*before, slice(None, -1)))
    return x


def bincount(x: Any, weights: Any = None, minlength: Any = None) -> Variable:
    """How often each of 0 … minlength - 1 stands in an integer vector; with `weights`, the sum of those that stand with it.

    The number of bins is `minlength`, an int or a symbolic scalar, and must be given: NumPy's grows with the values, which
    here are known only when the function runs.  A value outside is an IndexRangeError then; negative ones count from the end.

    >>> bincount(as_variable([0, 2, 2]), minlength=4).eval().tolist()
    [1, 0, 2, 0]
    """
    x = as_variable(x)
    if minlength is None:
        raise ArgumentError(explain_error("bincount needs to know how many bins there are", "minlength=None",
                                          "give minlength, a number above all values"))
    if x.ndim != 1:
        raise GraphTypeError(explain_error("bincount takes a vector", str(x.type), "x.flatten() has all elements"))
    counted = as_variable(1 if weights is None else weights, "int64" if weights is None else None)
    return inc_subtensor(getitem(zeros((minlength,), counted.dtype), x), counted)


def ptp(x: Any, axis: Any = None) -> Variable:
    """Maximum less minimum over `axis` (None: all)."""
    return maximum_of(x, axis) - minimum_of(x, axis)


def stacklists(tensors: Any) -> Variable:
    """Lists (of lists, …) of tensors of one shape stacked, an axis for each depth.

    >>> stacklists([[1, 2], [3, 4], [5, 6]]).type.shape
    (3, 2)
    """
    return stack([stacklists(each) for each in tensors]) if isinstance(tensors, (list, tuple)) else as_variable(tensors)


def horizontal_stack(*matrices: Any) -> Variable:
    """Matrices side by side."""
    return concatenate(matrices, axis=1)


def vertical_stack(*matrices: Any) -> Variable:
    """Matrices one below the other."""
    return concatenate(matrices, axis=0)


def inverse_permutation(permutation: Any) -> Variable:
    """The permutation, int64, that undoes one along the last axis."""
    return argsort(permutation, axis=-1)


def batched_tensordot(x: Any, y: Any, axes: Any = 2) -> Variable:
    """`tensordot` of every pair along the first axis.

    `axes` is an int n (the last n axes of x with the n after the first of y), or a pair of axes or lists of axes, counted with
    the first.

    >>> batched_tensordot(np.zeros((5, 2, 3)), np.zeros((5, 3, 4)), axes=1).type.shape
    (5, 2, 4)
    """
    x, y = as_variable(x), as_variable(y)
    of_x, of_y = _summed_axes(axes, x, y)
    free_x, free_y = ([axis for axis in range(1, each.ndim) if axis not in summed] for each, summed in ((x, of_x), (y, of_y)))
    sizes_x, sizes_y = shape_sizes(x), shape_sizes(y)
    left = reshape(dimshuffle(x, [0, *free_x, *of_x]), (sizes_x[0], joined_size([sizes_x[axis] for axis in free_x]),
                                                        joined_size([sizes_x[axis] for axis in of_x])))
    right = reshape(dimshuffle(y, [0, *of_y, *free_y]), (sizes_y[0], joined_size([sizes_y[axis] for axis in of_y]),
                                                         joined_size([sizes_y[axis] for axis in free_y])))
    return reshape(matmul(left, right), (sizes_x[0], *(sizes_x[axis] for axis in free_x), *(sizes_y[axis] for axis in free_y)))


def _summed_axes(axes: Any, x: Variable, y: Variable) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, int):
        pair: Sequence[Any] = (range(x.ndim - axes, x.ndim), range(1, axes + 1))
    else:
        pair = axes
    of_x, of_y = (normalize_axes(tuple(each) if isinstance(each, (list, tuple, range)) else each, tensor.ndim)
                  for each, tensor in zip(pair, (x, y), strict=True))
    if len(of_x) != len(of_y) or 0 in of_x or 0 in of_y:
        raise ArgumentError(explain_error("batched_tensordot sums over as many axes of one as of the other, the first not among "
                                          "them", f"{of_x} and {of_y}"))
    for own, other in zip(of_x, of_y, strict=True):
        if broadcast_shapes([(x.type.shape[own],), (y.type.shape[other],)]) is None:
            raise ArgumentError(explain_error(f"the sizes of axes {own} and {other} differ", f"{x.type} and {y.type}"))
    return of_x, of_y


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """Where |a - b| ≤ atol + rtol·|b|, elementwise; infinities are close to themselves."""
    a, b = as_variable(a), as_variable(b)
    distance = absolute(a - b)
    close = eq(a, b) | ((distance <= atol + rtol * absolute(b)) & (distance < np.inf))
    return close | (isnan(a) & isnan(b)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Variable:
    """Whether all are close."""
    return all_of(isclose(a, b, rtol, atol, equal_nan))


def deg2rad(x: Any) -> Variable:
    """Degrees as radians."""
    return as_variable(x) * (np.pi / 180)


def rad2deg(x: Any) -> Variable:
    """Radians as degrees."""
    return as_variable(x) * (180 / np.pi)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Variable:
    """`num` evenly spaced numbers from start to stop, which is the last of them where `endpoint`; floatX by default.

    >>> linspace(0.0, 1.0, 5).eval().tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    from ..config import config

    if isinstance(num, bool) or not isinstance(num, int) or num < 0:
        raise ArgumentError(explain_error("linspace takes how many numbers, an int from 0", repr(num)))
    start, stop = as_variable(start, "float64"), as_variable(stop, "float64")
    part = as_variable(np.arange(num) / max(num - bool(endpoint), 1), "float64")
    return cast(start * (1 - part) + stop * part, str(config.floatX) if dtype is None else dtype)
