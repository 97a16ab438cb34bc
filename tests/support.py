"""Helpers of the tests."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symconv.graph import Constant, TensorType, Variable
from symconv.graph.gradient import grad
from symconv.runtime.interpret import evaluate

__all__ = ["check_gradient", "evaluate", "numerical_gradient", "variable_for"]

Array = np.ndarray[Any, Any]


def variable_for(array: Array, known: bool = True) -> Variable:
    """An input with the dtype of an array, and its shape where `known`, else of unknown sizes."""
    return Variable(TensorType(array.dtype.name, array.shape if known else (None,) * array.ndim))


def numerical_gradient(function: Callable[..., float], arrays: list[Array], which: int, step: float = 1e-6) -> Array:
    """Central differences of a scalar function of float64 arrays with respect to one of them."""
    result = np.zeros(arrays[which].shape)
    for place in np.ndindex(*result.shape):
        ends = []
        for sign in (1, -1):
            moved = [array.copy() for array in arrays]
            moved[which][place] += sign * step
            ends.append(function(*moved))
        result[place] = (ends[0] - ends[1]) / (2 * step)
    return result


def check_gradient(build: Callable[..., Variable], *arrays: Any, order: int = 1, rtol: float = 1e-5, atol: float = 1e-7,
                   wrt: tuple[int, ...] | None = None) -> None:
    """Compare the symbolic gradients of `build(*inputs)` with central differences, in float64.

    The result is weighted with fixed random numbers and summed.  Checked with static shapes and with unknown ones; with
    `order` 2 the gradients of the gradients too.  `wrt` are the positions of the inputs to differentiate (default: all
    that are floats; float ones must be float64).
    """
    values = [np.asarray(array) for array in arrays]
    chosen = tuple(place for place, array in enumerate(values) if array.dtype == np.float64) if wrt is None else wrt
    for known in (True, False):
        inputs = [variable_for(array, known) for array in values]
        bindings = dict(zip(inputs, values, strict=True))
        output = build(*inputs)
        (shown,) = evaluate([output], bindings)
        weights = Constant(np.random.default_rng(7).uniform(0.5, 1.5, shown.shape).astype(shown.dtype))
        cost = (output * weights).sum()
        gradients = grad(cost, [inputs[place] for place in chosen])

        def run(*moved: Array, cost: Variable = cost, inputs: list[Variable] = inputs) -> float:
            return float(evaluate([cost], dict(zip(inputs, moved, strict=True)))[0])

        for place, found in zip(chosen, evaluate(gradients, bindings), strict=True):
            assert found.shape == values[place].shape, f"the gradient of {values[place].shape} has shape {found.shape}"
            np.testing.assert_allclose(found, numerical_gradient(run, values, place), rtol=rtol, atol=atol,
                                       err_msg=f"gradient of input {place}, shapes {'known' if known else 'unknown'}")
    if order > 1:
        for place in chosen:
            check_gradient(lambda *inputs, place=place: _first_gradient(build, place, inputs), *arrays, order=order - 1,
                           rtol=rtol, atol=atol, wrt=wrt)


def _first_gradient(build: Callable[..., Variable], place: int, inputs: tuple[Variable, ...]) -> Variable:
    """The gradient of the sum of squares of the result (so that gradients of it depend on all inputs)."""
    output = build(*inputs)
    return grad((output * output).sum(), inputs[place])
