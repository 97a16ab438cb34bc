"""Optimizers: from a cost, or its gradients, to the updates of one training step.

    updates = adam(cost, parameters, learning_rate=1e-3)
    train = sc.compile([images, labels], cost, updates=updates)

Each returns a list of (shared variable, new value): the parameters and the optimizer's own state, which is made here, starts
at zero and is named after the parameter (`velocity_W`, or by its place: `velocity_0`).  g is the gradient, η the learning
rate; a state on the right of a formula is the old one unless it is primed.

Rates and coefficients are numbers, shared variables or symbolic scalars.  Everything about a parameter is computed and kept
in the parameter's dtype, whatever the dtype of the rate or of the gradient.  All of one parameter's updates are elementwise,
so that they compile to one kernel that reads and writes each array once.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes
from .errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from .graph import Variable
from .graph.gradient import grad
from .ops.constants import as_variable
from .ops.elementwise import cast, minimum, sqrt, square
from .ops.state import make_shared

__all__ = ["adagrad", "adam", "adamw", "clip_by_global_norm", "global_norm", "momentum", "nesterov", "rmsprop", "sgd"]

Updates = list[tuple[Any, Variable]]


def sgd(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any) -> Updates:
    """Plain gradient descent: p' = p - η·g.

    Args:
        cost_or_gradients: a float scalar, or one gradient for each parameter, of its shape.
        parameters: float shared variables, each one once.
        learning_rate: η: a number ≥ 0, or a scalar variable of any dtype.

    Returns:
        [(parameter, new value), …] for the `updates` of `compile`.

    Raises:
        ArgumentError: gradients and parameters of different number, a parameter given twice, a number out of range.
        GraphTypeError: a parameter that is no float shared variable, a rate that is no scalar.
        ShapeError: a gradient whose shape is not its parameter's.

    >>> import symconv as sc
    >>> w = sc.shared(4.0, "w")
    >>> step = sc.compile([], updates=sgd(w * w, [w], learning_rate=0.25))
    >>> _ = step()
    >>> float(w.get_value())
    2.0
    """
    return [(p, p - _scalar("learning_rate", learning_rate, p) * g) for p, g in _pairs(cost_or_gradients, parameters)]


def momentum(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any, momentum: Any = 0.9) -> Updates:
    """Gradient descent with a heavy ball: velocity' = μ·velocity - η·g;  p' = p + velocity'.

    `momentum` is μ, 0 ≤ μ < 1; state `velocity_*`; other arguments, result and errors as for `sgd`.  Polyak 1964, "Some
    methods of speeding up the convergence of iteration methods".
    """
    updates: Updates = []
    for number, (p, g) in enumerate(_pairs(cost_or_gradients, parameters)):
        velocity, moved = _velocity(p, g, number, learning_rate, momentum)
        updates += [(velocity, moved), (p, p + moved)]
    return updates


def nesterov(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any, momentum: Any = 0.9) -> Updates:
    """Nesterov's accelerated gradient: velocity' = μ·velocity - η·g;  p' = p + μ·velocity' - η·g.

    The parameter stands for the point that looks ahead, so the gradient is taken where the parameter is.  `momentum` is μ,
    0 ≤ μ < 1; state `velocity_*`; the rest as for `sgd`.  Nesterov 1983; Sutskever et al. 2013, "On the importance of
    initialization and momentum in deep learning".
    """
    updates: Updates = []
    for number, (p, g) in enumerate(_pairs(cost_or_gradients, parameters)):
        velocity, moved = _velocity(p, g, number, learning_rate, momentum)
        ahead = _fraction("momentum", momentum, p) * moved - _scalar("learning_rate", learning_rate, p) * g
        updates += [(velocity, moved), (p, p + ahead)]
    return updates


def rmsprop(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any = 1e-3, rho: Any = 0.9,
            epsilon: Any = 1e-8) -> Updates:
    """Steps divided by a running root mean square: square' = ρ·square + (1 - ρ)·g²;  p' = p - η·g/(√square' + ε).

    `rho` is 0 ≤ ρ < 1; state `mean_square_*`; the rest as for `sgd`.  Tieleman and Hinton 2012, Coursera lecture 6.5.
    """
    updates: Updates = []
    for number, (p, g) in enumerate(_pairs(cost_or_gradients, parameters)):
        kept = _fraction("rho", rho, p)
        old = _state("mean_square", p, number)
        new = kept * old + (1 - kept) * square(g)
        rate = _scalar("learning_rate", learning_rate, p)
        updates += [(old, new), (p, p - rate * g / (sqrt(new) + _scalar("epsilon", epsilon, p)))]
    return updates


def adagrad(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any = 1e-2, epsilon: Any = 1e-10) -> Updates:
    """Steps divided by the root of all squares so far: total' = total + g²;  p' = p - η·g/(√total' + ε).

    State `sum_of_squares_*`; arguments and errors as for `sgd`.  Duchi, Hazan and Singer 2011.
    """
    updates: Updates = []
    for number, (p, g) in enumerate(_pairs(cost_or_gradients, parameters)):
        old = _state("sum_of_squares", p, number)
        new = old + square(g)
        rate = _scalar("learning_rate", learning_rate, p)
        updates += [(old, new), (p, p - rate * g / (sqrt(new) + _scalar("epsilon", epsilon, p)))]
    return updates


def adam(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any = 1e-3, beta1: Any = 0.9, beta2: Any = 0.999,
         epsilon: Any = 1e-8) -> Updates:
    """Adaptive moments, with the bias correction of the paper's algorithm 1.

        step' = step + 1;  mean' = β₁·mean + (1 - β₁)·g;  square' = β₂·square + (1 - β₂)·g²
        p' = p - η·[mean'/(1 - β₁^step')] / (√[square'/(1 - β₂^step')] + ε)

    0 ≤ β₁, β₂ < 1.  State: one int64 count `adam_step` for all parameters, `mean_*` and `mean_square_*` for each.  The two
    corrections are computed in float64; the rest as for `sgd`.  Kingma and Ba 2015, arXiv:1412.6980.
    """
    return _adam(cost_or_gradients, parameters, learning_rate, beta1, beta2, epsilon, 0.0)


def adamw(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any = 1e-3, beta1: Any = 0.9, beta2: Any = 0.999,
          epsilon: Any = 1e-8, weight_decay: Any = 1e-2) -> Updates:
    """`adam` with decoupled weight decay: p' = p - η·(adam's direction + λ·p).

    `weight_decay` is λ: it is not part of the gradient, so the running squares do not divide it away.  The rest as for
    `adam`.  Loshchilov and Hutter 2019, arXiv:1711.05101.
    """
    return _adam(cost_or_gradients, parameters, learning_rate, beta1, beta2, epsilon, weight_decay)


def global_norm(gradients: Sequence[Any]) -> Variable:
    """√Σ g² over all elements of all gradients, a float64 scalar (so that squares of large float32 do not overflow)."""
    values = [as_variable(each) for each in gradients]
    if not values:
        raise ArgumentError(explain_error("the norm of no gradients was asked for", do="give at least one gradient"))
    total = square(cast(values[0], "float64")).sum()
    for value in values[1:]:
        total = total + square(cast(value, "float64")).sum()
    return sqrt(total)


def clip_by_global_norm(gradients: Sequence[Any], max_norm: Any) -> list[Variable]:
    """The gradients, all scaled by min(1, max_norm / global_norm), so that their directions stay as they are.

    Args:
        gradients: floats of any shapes; each keeps its dtype.
        max_norm: a number ≥ 0 or a scalar variable.

    A NaN in any gradient makes all of them NaN.  Pascanu et al. 2013, arXiv:1211.5063.

    >>> import symconv.tensor as T
    >>> gradients = clip_by_global_norm([T.constant([3.0, 0.0]), T.constant([0.0, 4.0])], 2.5)
    >>> [each.eval().tolist() for each in gradients]
    [[1.5, 0.0], [0.0, 2.0]]
    """
    values = [as_variable(each) for each in gradients]
    norm = global_norm(values)
    factor = minimum(_scalar("max_norm", max_norm, norm) / norm, 1.0)
    return [value * cast(factor, value.dtype) for value in values]


def _adam(cost_or_gradients: Any, parameters: Sequence[Any], learning_rate: Any, beta1: Any, beta2: Any, epsilon: Any,
          weight_decay: Any) -> Updates:
    pairs = _pairs(cost_or_gradients, parameters)
    step = make_shared(np.zeros((), "int64"), "adam_step")
    count = step + 1
    power = cast(count, "float64")
    corrections = [1 / (1 - _fraction(name, beta, power) ** power) for name, beta in (("beta1", beta1), ("beta2", beta2))]
    updates: Updates = [(step, count)]
    for number, (p, g) in enumerate(pairs):
        b1, b2 = _fraction("beta1", beta1, p), _fraction("beta2", beta2, p)
        c1, c2 = (cast(each, p.dtype) for each in corrections)
        mean, mean_square = _state("mean", p, number), _state("mean_square", p, number)
        new_mean, new_square = b1 * mean + (1 - b1) * g, b2 * mean_square + (1 - b2) * square(g)
        direction = new_mean * c1 / (sqrt(new_square * c2) + _scalar("epsilon", epsilon, p))
        if not _is_zero(weight_decay):
            direction = direction + _scalar("weight_decay", weight_decay, p) * p
        rate = _scalar("learning_rate", learning_rate, p)
        updates += [(mean, new_mean), (mean_square, new_square), (p, p - rate * direction)]
    return updates


def _velocity(p: Any, g: Variable, number: int, learning_rate: Any, momentum: Any) -> tuple[Any, Variable]:
    """The state of momentum and its new value."""
    velocity = _state("velocity", p, number)
    return velocity, _fraction("momentum", momentum, p) * velocity - _scalar("learning_rate", learning_rate, p) * g


def _pairs(cost_or_gradients: Any, parameters: Sequence[Any]) -> list[tuple[Any, Variable]]:
    """Each parameter with its gradient, in the parameter's dtype."""
    chosen = list(parameters)
    for parameter in chosen:
        _check_parameter(parameter)
    repeated = [parameter for parameter, times in Counter(chosen).items() if times > 1]
    if repeated:
        raise ArgumentError(explain_error("a parameter was given twice", ", ".join(each.label for each in repeated)))
    is_list = isinstance(cost_or_gradients, (list, tuple))
    gradients = list(cost_or_gradients) if is_list else grad(as_variable(cost_or_gradients), chosen)
    if len(gradients) != len(chosen):
        raise ArgumentError(explain_error("there must be one gradient for each parameter",
                                          f"{len(gradients)} gradients and {len(chosen)} parameters"))
    return [(p, _gradient(p, as_variable(g))) for p, g in zip(chosen, gradients, strict=True)]


def _check_parameter(parameter: Any) -> None:
    if not isinstance(parameter, Variable) or not hasattr(parameter, "get_value"):
        raise GraphTypeError(explain_error("only shared variables can be trained", repr(parameter), "make it with sc.shared(...)"))
    if not dtypes.is_float(parameter.dtype):
        raise GraphTypeError(explain_error("only float parameters can be trained", f"{parameter.label}: {parameter.type}"))


def _gradient(parameter: Variable, gradient: Variable) -> Variable:
    if not parameter.type.accepts(gradient.type.with_dtype(parameter.dtype)):
        raise ShapeError(explain_error(f"the gradient of {parameter.label} must have its shape",
                                       f"{gradient.type} for {parameter.type}"))
    return cast(gradient, parameter.dtype)


def _scalar(name: str, value: Any, like: Variable) -> Variable:
    """A rate as a scalar of the parameter's dtype."""
    if isinstance(value, (int, float)) and not value >= 0:
        raise ArgumentError(explain_error(f"{name} is a number of at least 0", repr(value)))
    scalar = as_variable(value)
    if scalar.ndim:
        raise GraphTypeError(explain_error(f"{name} is one number for all elements", str(scalar.type), "give a scalar"))
    return as_variable(value, like.dtype)


def _fraction(name: str, value: Any, like: Variable) -> Variable:
    """A coefficient of a running mean, 0 ≤ value < 1."""
    if isinstance(value, (int, float)) and not 0 <= value < 1:
        raise ArgumentError(explain_error(f"{name} must be at least 0 and below 1", repr(value)))
    return _scalar(name, value, like)


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def _state(kind: str, parameter: Any, number: int) -> Any:
    """State of a parameter's shape and dtype, all zero."""
    zeros = np.zeros(parameter.get_value(borrow=True).shape, dtypes.numpy_dtype(parameter.dtype))
    return make_shared(zeros, f"{kind}_{parameter.name or number}", parameter.type.shape)
