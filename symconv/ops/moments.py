"""Mean and variance together, with a gradient that needs no further pass over the data to be exact."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import GraphTypeError, explain_error
from ..graph import Apply, Op, TensorType, Variable
from ..graph.node import Array, make_apply
from .axes import normalize_axes
from .constants import as_variable
from .reductions import reduced_shape
from .statistics import count
from .unbroadcast import broadcast_like


@dataclass(frozen=True, slots=True)
class Moments(Op):
    """x → mean and biased variance over `axes` (sorted, from 0), which stay as axes of size 1. Takes floats.

    Both are NaN over empty axes.  The gradient is ḡ_mean/n + ḡ_var·2(x - mean)/n: that the distances from the mean add up to
    zero is used, not computed.
    """

    axes: tuple[int, ...]

    def infer(self, x: TensorType) -> tuple[TensorType, ...]:
        """Two of the reduced shape."""
        if not dtypes.is_float(x.dtype):
            raise GraphTypeError(explain_error("mean and variance take floats", str(x), 'cast the input: x.astype("float32")'))
        if self.axes and not 0 <= self.axes[0] <= self.axes[-1] < x.ndim:
            raise GraphTypeError(explain_error(f"mean and variance over the axes {self.axes}", str(x)))
        result = x.with_shape(reduced_shape(x.shape, self.axes, True))
        return (result, result)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        """For each output that is used, what flows through it."""
        (x,), (mean, _), (gmean, gvar) = apply.inputs, apply.outputs, cotangents
        number = count(x, self.axes, x.dtype)
        gx = None if gvar is None else (x - mean) * (gvar * 2 / number)
        if gmean is not None:
            gmean = gmean / number
            gx = broadcast_like(gmean, x) if gx is None else gx + gmean
        return (gx,)

    def reference(self, x: Array) -> tuple[Array, ...]:
        """In float64, in two passes."""
        wide = x.astype(np.float64)
        number = np.float64(np.prod([x.shape[axis] for axis in self.axes], dtype=np.int64))
        with np.errstate(all="ignore"):
            mean = wide.sum(self.axes, keepdims=True) / number
            variance = np.square(wide - mean).sum(self.axes, keepdims=True) / number
        return mean.astype(x.dtype), variance.astype(x.dtype)

    def __str__(self) -> str:
        return f"Moments{{axes={self.axes}}}"


def moments(x: Any, axis: Any = None) -> tuple[Variable, Variable]:
    """(mean, biased variance) of floats over `axis` (None: all), which stays as axes of size 1; taken in one pass.

    >>> mean, variance = moments(as_variable([[1.0, 3.0], [2.0, 2.0]]), axis=1)
    >>> mean.static_shape, variance.static_shape
    ((2, 1), (2, 1))
    """
    variable = as_variable(x)
    mean, variance = make_apply(Moments(tuple(sorted(normalize_axes(axis, variable.ndim)))), [variable]).outputs
    return mean, variance
