"""Gradients by central differences in float64, of first and second order."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support import evaluate

from symconv.graph import TensorType, Variable
from symconv.graph.gradient import grad

Array = np.ndarray[Any, Any]
Function = Callable[..., Variable]


def assert_gradient(function: Function, *points: Array, order: int = 1, step: float = 1e-5, tolerance: float = 1e-6) -> None:
    """The gradients of a weighted sum of `function` at float64 points equal differences; `order=2`: those of it also."""
    rng = np.random.default_rng(11)
    variables = [Variable(TensorType("float64", point.shape)) for point in points]
    cost = _weighted(function(*variables), rng)
    gradients = grad(cost, variables)
    _compare(cost, variables, gradients, points, step, tolerance)
    if order == 2:
        second = sum((_weighted(each, rng) for each in gradients[1:]), _weighted(gradients[0], rng))
        zeros = grad(second, variables, disconnected_inputs="ignore")
        _compare(second, variables, zeros, points, step, tolerance)


def _weighted(x: Variable, rng: np.random.Generator) -> Variable:
    shape = tuple(size for size in x.static_shape if size is not None)
    assert len(shape) == x.ndim, f"{x} has an unknown shape {x.static_shape}"
    return (x * rng.standard_normal(shape)).sum()


def _compare(cost: Variable, variables: list[Variable], gradients: list[Variable], points: tuple[Array, ...], step: float,
             tolerance: float) -> None:
    found = evaluate(gradients, dict(zip(variables, points, strict=True)))
    for number, point in enumerate(points):
        expected = np.zeros_like(point)
        for place in np.ndindex(point.shape):
            ends = []
            for shift in (step, -step):
                moved = [each.copy() for each in points]
                moved[number][place] += shift
                ends.append(float(evaluate([cost], dict(zip(variables, moved, strict=True)))[0]))
            expected[place] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(found[number], expected, rtol=tolerance, atol=tolerance)
