"""Check gradients against finite differences."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import GradientError, explain_error
from ..graph import Variable
from ..graph.gradient import grad
from ..graph.operators import meaning
from .compile import compile

Array = np.ndarray[Any, Any]
_STEPS = {"float64": 1e-6, "float32": 1e-3, "float16": 1e-1}
_TOLERANCES = {"float64": 1e-5, "float32": 1e-2, "float16": 5e-2}


def verify_grad(fun: Callable[..., Variable], pt: Sequence[Any], n_tests: int = 2, rng: np.random.Generator | None = None,
                eps: float | None = None, abs_tol: float | None = None, rel_tol: float | None = None,
                mode: Any = None) -> None:
    """Compare the gradient of `fun` with central differences at a point.

    Args:
        fun: takes one variable for each array of `pt`, gives a float expression of any rank.
        pt: float arrays; the differences are taken in each element of each.
        n_tests: how many random projections of the result are checked.
        rng: random generator of the projections; seeded with 0 by default.
        eps: step of the differences; by dtype 1e-6, 1e-3 or 1e-1 by default.
        abs_tol, rel_tol: an element fails only if both are exceeded; by dtype 1e-5, 1e-2 or 5e-2 by default.
        mode: mode to compile in.

    Raises:
        GradientError: names the argument, the element, both values and both errors.

    Theano: `theano.gradient.verify_grad` (there: forward differences).

    >>> import numpy as np, symconv.tensor as T
    >>> verify_grad(lambda x: T.exp(x).sum(), [np.array([0.5, -1.0])])
    """
    generator = rng or np.random.default_rng(0)
    points = [np.array(point) for point in pt]
    narrow = min((point.dtype.name for point in points), key=lambda name: np.dtype(name).itemsize)
    step, tolerance = eps or _STEPS[narrow], _TOLERANCES[narrow]
    variables = [meaning("as_variable")(point).type for point in points]
    leaves = [Variable(type, f"argument {number}") for number, type in enumerate(variables)]
    result = fun(*leaves)
    weights = Variable(result.type, "projection")
    cost = (result * weights).sum()
    value = compile([*leaves, weights], cost, mode=mode, on_unused_input="ignore", allow_input_downcast=True)
    gradients = compile([*leaves, weights], grad(cost, leaves, disconnected_inputs="ignore"), mode=mode,
                        on_unused_input="ignore", allow_input_downcast=True)
    shape = compile(leaves, result.shape, mode=mode, on_unused_input="ignore")(*points)
    for _ in range(n_tests):
        projection = generator.normal(size=tuple(shape)).astype(result.dtype)
        found = gradients(*points, projection)
        for number, analytic in enumerate(found):
            numeric = _differences(value, points, number, projection, step)
            _compare(number, analytic, numeric, abs_tol or tolerance, rel_tol or tolerance)


def _differences(value: Callable[..., Any], points: list[Array], number: int, projection: Array, step: float) -> Array:
    """Central differences of the projected value in every element of one argument."""
    result = np.zeros(points[number].shape, np.float64)
    for index in np.ndindex(points[number].shape):
        sides = []
        for sign in (1, -1):
            moved = [point.copy() for point in points]
            moved[number][index] += sign * step
            sides.append((float(value(*moved, projection)), float(moved[number][index])))
        result[index] = (sides[0][0] - sides[1][0]) / (sides[0][1] - sides[1][1])
    return result


def _compare(number: int, analytic: Array, numeric: Array, abs_tol: float, rel_tol: float) -> None:
    absolute = np.abs(analytic - numeric)
    relative = absolute / np.maximum(np.abs(analytic) + np.abs(numeric), 1e-30)
    bad = ((absolute > abs_tol) & (relative > rel_tol)) | (np.isnan(analytic) != np.isnan(numeric))
    if not bad.any():
        return
    index = tuple(int(place) for place in np.argwhere(bad)[0])
    raise GradientError(explain_error(
        f"the gradient with respect to argument {number} is wrong at {index}",
        f"{analytic[index]!r} where differences give {numeric[index]!r} (absolute error {absolute[index]:.3g}, "
        f"relative {relative[index]:.3g}; {int(bad.sum())} of {bad.size} elements are off)"))
