"""Dropout."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import ArgumentError, GraphTypeError, explain_error
from ...graph import Variable
from ...ops.axes import normalize_axes
from ...ops.constants import as_variable
from ...ops.elementwise import where
from ...ops.promotion import float_dtype
from ...ops.shape import shape_sizes
from ..random import RandomStream

__all__ = ["dropout"]


def dropout(x: Any, rate: Any, stream: RandomStream, train: bool = True, shared_axes: int | Iterable[int] = ()) -> Variable:
    """Inverted dropout: every element is 0 with probability `rate`, else divided by 1 - rate; the mean is kept.

    Args:
        x: any tensor; integers become floats.
        rate: a number from 0 up to, not including, 1; or a symbolic scalar.
        stream: where the random numbers come from; the function that uses the result moves it on at every call.
        train: False returns `x` itself: nothing is dropped when predicting.
        shared_axes: axes along which all elements share one fate: (2, 3) drops whole channels of images.

    Raises:
        ArgumentError: a rate outside 0 ≤ rate < 1.

    Srivastava et al. 2014, JMLR 15. An infinite or NaN element that is dropped is 0 all the same.
    """
    variable = as_variable(x)
    if not isinstance(stream, RandomStream):
        raise GraphTypeError(explain_error("dropout draws from a RandomStream", repr(stream),
                                           "make one: stream = symconv.tensor.random.RandomStream(seed=1)"))
    if not isinstance(rate, Variable) and not 0 <= rate < 1:
        raise ArgumentError(explain_error("the rate of dropout is the probability of zero, 0 ≤ rate < 1", repr(rate)))
    variable = variable.astype(float_dtype(variable.dtype))
    if not train or (not isinstance(rate, Variable) and rate == 0):
        return variable
    axes = normalize_axes(tuple(shared_axes) if isinstance(shared_axes, Iterable) else shared_axes, variable.ndim)
    size = [1 if axis in axes else each for axis, each in enumerate(shape_sizes(variable))]
    keep = stream.bernoulli(size, 1 - rate)
    return where(keep, variable * as_variable(1 / (1 - rate), variable.dtype), 0)
