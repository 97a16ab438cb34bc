"""Gradients of pooling through the gradient driver: first and second order, dynamic shapes, ties."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate

from symconv.graph import TensorType, Variable, apply_op
from symconv.graph.gradient import grad
from symconv.ops.elementwise import square
from symconv.ops.pooling import MODES, Pool


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ignore_border", [True, False])
def test_first_and_second_order(mode, ignore_border):
    x = np.random.default_rng(5).permutation(2 * 4 * 5).reshape(2, 4, 5) / 7.0
    pool = Pool(mode, (3, 2), (2, 1), (1, 0), (0, 1), ignore_border)
    check_gradient(lambda v: square(apply_op(pool, v)) * apply_op(pool, v), x, order=2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_the_batch_and_image_may_be_unknown_when_built(mode):
    x = Variable(TensorType("float64", (None, None)))
    z = apply_op(Pool(mode, (2,), (2,), (0,), (0,)), x)
    gradient = grad((z * z).sum(), x)
    values = np.array([[1.0, 3.0, 2.0, 2.0], [0.0, -1.0, 5.0, 4.0]])
    pooled = {"max": [[3, 3, 2, 2], [0, 0, 5, 5]], "sum": [[4, 4, 4, 4], [-1, -1, 9, 9]]}.get(
        mode, [[2, 2, 2, 2], [-0.5, -0.5, 4.5, 4.5]])
    weight = {"max": [[0, 1, 1, 0], [1, 0, 1, 0]], "sum": np.ones((2, 4))}.get(mode, np.full((2, 4), 0.5))
    np.testing.assert_allclose(evaluate([gradient], {x: values})[0], 2 * np.array(pooled) * weight)


def test_tied_maxima_give_the_whole_gradient_to_the_first():
    x = Variable(TensorType("float32", (1, 4, 4)))
    gradient = grad(apply_op(Pool("max", (2, 2), (2, 2), (0, 0), (0, 0)), x).sum(), x)
    (value,) = evaluate([gradient], {x: np.ones((1, 4, 4), "float32")})
    np.testing.assert_array_equal(value[0], [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_batch_has_an_empty_gradient(mode):
    x = Variable(TensorType("float64", (0, 4)))
    gradient = grad(apply_op(Pool(mode, (2,), (2,), (0,), (0,)), x).sum(), x)
    assert evaluate([gradient], {x: np.zeros((0, 4))})[0].shape == (0, 4)
