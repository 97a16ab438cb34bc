"""Mean and variance from two sums in one pass, once the shapes are known.

    moments(x): with s an element of each row that is averaged, d = x - s in float64, a = Σd/n, b = Σd²/n
    mean = s + a      variance = max(b - a², 0)

Floats: for data that is not float64 every d is exact or nearly so (it is rounded to 53 bits).  The subtraction b - a² loses
no more than a factor of (mean - s)²/variance in precision, and that is below n because s is one of the n elements: the
relative error of the variance stays under about 2n·2⁻⁵³, for whatever the mean is.  Where s is not finite 0 stands for it, so
that infinities and NaN give what they give in two passes.
"""
from __future__ import annotations

import math

from ..graph import Apply, Variable, apply_op
from ..ops.elementwise import cast, isfinite, maximum, square, where
from ..ops.moments import Moments
from ..ops.reductions import Reduce
from .context import Context
from .rule import Answer, Rule, rule


@rule(Moments)
def moments_in_one_pass(node: Apply, context: Context) -> Answer:
    """moments(x) from Σ(x - s) and Σ(x - s)²"""
    op: Moments = node.op  # type: ignore[assignment]
    (x,) = node.inputs
    if not x.type.is_static or not math.prod(x.type.static_shape):
        return None
    n = math.prod(x.type.static_shape[axis] for axis in op.axes)
    first = x[tuple(slice(0, 1) if axis in op.axes else slice(None) for axis in range(x.ndim))]
    shift = cast(where(isfinite(first), first, 0), "float64")
    distance = cast(x, "float64") - shift
    a, b = (_sum(value, op) / n for value in (distance, square(distance)))
    variance = maximum(b - square(a), 0)
    return (cast(shift + a, x.dtype), cast(variance, x.dtype))


def _sum(value: Variable, op: Moments) -> Variable:
    return apply_op(Reduce("sum", op.axes, True, "float64"), value)


RULES: tuple[Rule, ...] = (moments_in_one_pass,)
