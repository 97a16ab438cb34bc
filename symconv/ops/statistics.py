"""Mean, variance, standard deviation, logsumexp and norms: expressions of reductions and elementwise operations.

Integers and bool are averaged exactly (summed in int64) and give a float dtype (`promotion.float_dtype`); float16 and
bfloat16 are computed in float32 and rounded once.
"""
from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, explain_error
from ..graph import Variable
from . import elementwise as e
from . import reductions as r
from .axes import normalize_axes
from .constants import as_variable
from .promotion import float_dtype
from .stop_gradient import disconnected_grad


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
    """Mean over `axis` (None: all). Of an empty axis it is NaN.

    The result has x's dtype for floats, float32 for bool, int8 and int16, float64 for wider integers; `dtype` asks for
    another float dtype.

    >>> mean(as_variable([100, 100, 100], "int8")).dtype
    'float32'
    """
    variable = as_variable(x)
    result = _result_dtype("mean", variable, dtype)
    total = r.sum(_widened(variable, result), axis, keepdims=keepdims)
    working = _working_dtype(result)
    return e.cast(e.cast(total, working) / count(variable, axis, working), result)


def var(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Variable:
    """Variance over `axis` (None: all): the mean of squared distances from the mean, divided by n - `ddof`.

    Dtypes as for `mean`. Where n - ddof is 0 or less the result is NaN or infinite, as in NumPy.
    """
    variable = as_variable(x)
    result = _result_dtype("var", variable, None)
    wide = e.cast(variable, _working_dtype(result))
    squares = r.sum(e.square(wide - mean(wide, axis, keepdims=True)), axis, keepdims=keepdims)
    number = count(variable, axis, wide.dtype)
    divisor = e.maximum(number - ddof, 0) if isinstance(number, Variable) else max(number - ddof, 0.0)
    return e.cast(squares / divisor, result)


def std(x: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Variable:
    """Standard deviation over `axis` (None: all): the square root of `var`."""
    return e.sqrt(var(x, axis, ddof, keepdims))


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Variable:
    """log of the sum of exp over `axis` (None: all), without overflow.

    A row of -inf gives -inf, and its gradient is 0. Integers are cast to float. A ShapeError where an axis is empty.
    """
    variable = as_variable(x)
    variable = e.cast(variable, float_dtype(variable.dtype))
    axes = normalize_axes(axis, variable.ndim)
    top = disconnected_grad(r.max(variable, axes, keepdims=True))
    shift = e.where(e.isfinite(top), top, 0)
    total = r.sum(e.exp(variable - shift), axes, keepdims=keepdims)
    logarithm = e.where(e.eq(total, 0), -math.inf, e.log(total))
    return logarithm + (shift if keepdims else _without(shift, axes))


def norm(x: Any, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Variable:
    """Vector norm over `axis` (None: all elements): (sum |x|^ord)^(1/ord).

    Of order inf and -inf it is max |x| and min |x|; of order 0 the number of elements that are not 0.

    The gradient of the 2-norm at the zero vector is NaN (it has none there).
    """
    variable = as_variable(x)
    size = e.abs(e.cast(variable, float_dtype(variable.dtype)))
    if math.isinf(ord):
        return (r.max if ord > 0 else r.min)(size, axis, keepdims)
    if ord == 0:
        return e.cast(r.sum(e.neq(size, 0), axis, keepdims=keepdims), size.dtype)
    if ord == 1:
        return r.sum(size, axis, keepdims=keepdims)
    if ord == 2:
        return e.sqrt(r.sum(e.square(size), axis, keepdims=keepdims))
    return e.pow(r.sum(e.pow(size, float(ord)), axis, keepdims=keepdims), 1 / ord)


def count(x: Variable, axis: Any, dtype: str) -> float | Variable:
    """How many elements a reduction of x over `axis` joins: a number where it is known, else a scalar of `dtype`."""
    from .shape import shape_sizes

    sizes = shape_sizes(x)
    chosen = [sizes[axis] for axis in normalize_axes(axis, x.ndim)]
    known = math.prod(size for size in chosen if not isinstance(size, Variable))
    open_sizes = [size for size in chosen if isinstance(size, Variable)]
    if not open_sizes:
        return float(known)
    total = open_sizes[0]
    for size in open_sizes[1:]:
        total = total * size
    return e.cast(total if known == 1 else total * known, dtype)


def _result_dtype(what: str, x: Variable, dtype: Any) -> str:
    if dtype is None:
        return float_dtype(x.dtype)
    name = dtypes.canonical(dtype)
    if not dtypes.is_float(name):
        raise ArgumentError(explain_error(f"the {what} is a float", name, "cast the result where you need another dtype"))
    return name


def _working_dtype(dtype: str) -> str:
    return dtypes.accumulator(dtype)


def _widened(x: Variable, result: str) -> Variable:
    """x ready to be summed: integers exactly, floats in the dtype that the mean is computed in."""
    return e.cast(x, _working_dtype(result)) if dtypes.is_float(x.dtype) else x


def _without(x: Variable, axes: tuple[int, ...]) -> Variable:
    from .shape import dimshuffle

    return dimshuffle(x, [axis for axis in range(x.ndim) if axis not in axes]) if axes else x
