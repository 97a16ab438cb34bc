"""Derivatives of the scalar operations, as a table from names to rules.

A rule gets the cotangent, the node's output and its inputs, and answers one gradient for each input, all of the broadcast
shape; `elementwise_gradient` sums them over what was broadcast.  Operations that are not in the table (comparisons, floor,
sign, …) are constant wherever they have a derivative: None.

What `where` masks stays masked: a cotangent that went through the gradient of a `where` is multiplied with `masked_mul`,
in which 0 times an infinite or NaN local derivative is 0: `where(x > 0, log(x), 0)` has gradient 0 at 0.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from .. import dtypes
from ..graph import Apply, Constant, Variable
from . import elementwise as e
from .unbroadcast import unbroadcast

Gradients = Sequence[Variable | None]
_LN2, _LN10, _ERF = math.log(2), math.log(10), 2 / math.sqrt(math.pi)

_masks: WeakSet[Apply] = WeakSet()
_is_masked: WeakKeyDictionary[Apply, bool] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Cotangent:
    """A cotangent; `times` and `over` multiply it with a local derivative so that masked zeros stay zeros."""

    value: Variable
    masked: bool

    def times(self, local: Any) -> Variable:
        """The product with a local derivative."""
        return e.masked_mul(self.value, local) if self.masked and not _is_finite(local) else self.value * local

    def over(self, divisor: Any) -> Variable:
        """The quotient by the inverse of a local derivative."""
        if self.masked and not (_is_finite(divisor) and _has_no_zero(divisor)):
            return e.masked_mul(self.value, e.reciprocal(divisor))
        return self.value / divisor


def _is_finite(value: Any) -> bool:
    return not isinstance(value, Variable) or (isinstance(value, Constant) and bool(np.isfinite(value.data).all()))


def _has_no_zero(value: Any) -> bool:
    return not isinstance(value, Variable) or (isinstance(value, Constant) and bool((value.data != 0).all()))


def went_through_mask(variable: Variable) -> bool:
    """Whether a cotangent depends on the gradient of a `where`. Each node is looked at once in its life."""
    stack = [] if variable.apply is None else [variable.apply]
    while stack:
        node = stack[-1]
        waiting = [each.apply for each in node.inputs if each.apply is not None and each.apply not in _is_masked]
        if waiting and node not in _is_masked and node not in _masks:
            stack.extend(waiting)
            continue
        _is_masked[node] = node in _masks or any(_is_masked[each.apply] for each in node.inputs if each.apply is not None)
        stack.pop()
    return variable.apply is not None and _is_masked[variable.apply]


def elementwise_gradient(apply: Apply, cotangent: Variable | None) -> Gradients:
    """Gradients of an elementwise node with respect to its inputs."""
    none: Gradients = (None,) * len(apply.inputs)
    (z,) = apply.outputs
    rule = RULES.get(apply.op.name)
    if cotangent is None or rule is None or not dtypes.is_float(z.dtype):
        return none
    gradients = rule(Cotangent(cotangent, went_through_mask(cotangent)), z, *apply.inputs)
    return [None if g is None or not dtypes.is_float(x.dtype) else unbroadcast(g, x, apply.inputs)
            for g, x in zip(gradients, apply.inputs, strict=True)]


def _masked(condition: Variable, value: Variable, other: Any) -> Variable:
    """A `where` that is the gradient of a `where`, marked so that its zeros stay zeros."""
    result = e.where(condition, value, other)
    if result.apply is not None:
        _masks.add(result.apply)
    return result


def _pow(g: Cotangent, z: Variable, a: Variable, b: Variable) -> Gradients:
    return _pow_base(g, a, b), _pow_exponent(g, z, a, b)


def _pow_base(g: Cotangent, a: Variable, b: Variable) -> Variable:
    """b · a^(b-1); where b is 0 that is 0, also at a = 0."""
    if isinstance(b, Constant) and (b.data != 0).all():
        lower = Constant(np.asarray(b.data - 1, b.data.dtype))
        power = e.pow(a, lower) if (lower.data != 1).any() else a
        return g.times(b * power)
    return g.times(b * e.pow(a, e.where(e.eq(b, 0), 1, b - 1)))


def _pow_exponent(g: Cotangent, z: Variable, a: Variable, b: Variable) -> Variable:
    """a^b · log a; at a = 0 that is the limit 0 (for b > 0) and not 0 · -inf."""
    zero = e.eq(a, 0) & e.ge(b, 0)
    return g.times(z * e.log(e.where(zero, 1, a)))


def _logaddexp(g: Cotangent, z: Variable, a: Variable, b: Variable) -> Gradients:
    """Softmax weights of the two; half each where both are the same infinity."""
    difference = e.where(e.eq(a, b) & e.isinf(a), 0, a - b)
    return g.times(e.sigmoid(difference)), g.times(e.sigmoid(-difference))


def _arctan2(g: Cotangent, z: Variable, a: Variable, b: Variable) -> Gradients:
    radius = e.square(a) + e.square(b)
    return g.times(b / radius), g.times(-a / radius)


def _split(condition: Variable, g: Cotangent) -> Gradients:
    return e.where(condition, g.value, 0), e.where(condition, 0, g.value)


def _clip(g: Cotangent, z: Variable, x: Variable, low: Variable, high: Variable) -> Gradients:
    """1 inside and at the limits for x; outside the gradient goes to the limit that was taken. NaN counts as inside."""
    above, below = e.gt(e.maximum(x, low), high), e.lt(x, low)
    outside = above | below
    return e.where(outside, 0, g.value), e.where(below & ~above, g.value, 0), e.where(above, g.value, 0)


def _where(g: Cotangent, z: Variable, condition: Variable, a: Variable, b: Variable) -> Gradients:
    return None, _masked(condition, g.value, 0), _masked(~condition, g.value, 0)


def _cast(g: Cotangent, z: Variable, x: Variable) -> Gradients:
    return (e.cast(g.value, x.dtype) if dtypes.is_float(x.dtype) else None,)


RULES: dict[str, Callable[..., Gradients]] = {
    "add": lambda g, z, a, b: (g.value, g.value),
    "sub": lambda g, z, a, b: (g.value, -g.value),
    "mul": lambda g, z, a, b: (g.times(b), g.times(a)),
    "masked_mul": lambda g, z, a, b: (e.masked_mul(g.value, b), e.masked_mul(g.value, a)),
    "true_div": lambda g, z, a, b: (g.over(b), -g.times(z / b)),
    "mod": lambda g, z, a, b: (g.value, -g.times(e.floor_div(a, b))),
    "pow": _pow,
    "maximum": lambda g, z, a, b: _split(e.ge(a, b) | e.isnan(a), g),
    "minimum": lambda g, z, a, b: _split(e.le(a, b) | e.isnan(a), g),
    "arctan2": _arctan2,
    "logaddexp": _logaddexp,
    "neg": lambda g, z, x: (-g.value,),
    "abs": lambda g, z, x: (g.times(e.sign(x)),),
    "square": lambda g, z, x: (g.times(2 * x),),
    "exp": lambda g, z, x: (g.times(z),),
    "exp2": lambda g, z, x: (g.times(z * _LN2),),
    "expm1": lambda g, z, x: (g.times(e.exp(x)),),
    "log": lambda g, z, x: (g.over(x),),
    "log2": lambda g, z, x: (g.over(x * _LN2),),
    "log10": lambda g, z, x: (g.over(x * _LN10),),
    "log1p": lambda g, z, x: (g.over(1 + x),),
    "sqrt": lambda g, z, x: (g.over(2 * z),),
    "rsqrt": lambda g, z, x: (g.times(-0.5 * z / x),),
    "reciprocal": lambda g, z, x: (-g.times(e.square(z)),),
    "sin": lambda g, z, x: (g.times(e.cos(x)),),
    "cos": lambda g, z, x: (-g.times(e.sin(x)),),
    "tan": lambda g, z, x: (g.times(1 + e.square(z)),),
    "arcsin": lambda g, z, x: (g.times(e.rsqrt(1 - e.square(x))),),
    "arccos": lambda g, z, x: (-g.times(e.rsqrt(1 - e.square(x))),),
    "arctan": lambda g, z, x: (g.over(1 + e.square(x)),),
    "sinh": lambda g, z, x: (g.times(e.cosh(x)),),
    "cosh": lambda g, z, x: (g.times(e.sinh(x)),),
    "tanh": lambda g, z, x: (g.times(1 - e.square(z)),),
    "erf": lambda g, z, x: (g.times(_ERF * e.exp(-e.square(x))),),
    "sigmoid": lambda g, z, x: (g.times(z * (1 - z)),),
    "softplus": lambda g, z, x: (g.times(e.sigmoid(x)),),
    "relu": lambda g, z, x: (e.where(e.gt(x, 0), g.value, 0),),
    "where": _where,
    "clip": _clip,
    "cast": _cast,
}
