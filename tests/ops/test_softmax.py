"""Softmax and log-softmax against scipy, their gradients, infinities and NaN."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from support import check_gradient, evaluate

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable, apply_op
from symconv.graph.gradient import grad
from symconv.ops.softmax import LogSoftmax, Softmax, SoftmaxGrad, log_softmax, softmax

PAIRS = [(softmax, scipy.special.softmax), (log_softmax, scipy.special.log_softmax)]


def run(function, array, *arguments):
    x = Variable(TensorType(array.dtype.name, array.shape))
    return evaluate([function(x, *arguments)], {x: array})[0]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_every_axis_equals_scipy(ours, theirs, axis):
    x = np.random.default_rng(0).standard_normal((3, 4, 5)) * 10
    np.testing.assert_allclose(run(ours, x, axis), theirs(x, axis=axis), rtol=1e-13)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_infinities_and_nan_equal_scipy(ours, theirs):
    inf, nan = np.inf, np.nan
    x = np.array([[inf, 0, 1], [inf, inf, 0], [-inf, -inf, -inf], [-inf, 0, 1], [nan, 0, 1], [inf, -inf, 0], [inf, nan, 0]])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(ours, x), theirs(x, axis=1))


def test_large_logits_stay_exact():
    x = np.array([[0.0, 1000.0], [300.0, -500.0]], "float32")
    np.testing.assert_array_equal(run(log_softmax, x), [[-1000, 0], [0, -800]])
    np.testing.assert_array_equal(run(softmax, x), [[0, 1], [1, 0]])
    variable = Variable(TensorType("float32", (2, 2)))
    for function, rows in ((log_softmax, [[1, -1], [-1, 1]]), (softmax, [[0, 0], [0, 0]])):
        gradient = grad((function(variable) * np.array([[1, 0], [0, 1]], "float32")).sum(), variable)
        np.testing.assert_array_equal(evaluate([gradient], {variable: x})[0], rows)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_half_floats_are_computed_in_single(ours, theirs):
    x = np.random.default_rng(1).standard_normal((2, 3000)).astype("float16")
    result = run(ours, x)
    assert result.dtype == "float16"
    np.testing.assert_allclose(result.astype("float64"), theirs(x.astype("float64"), axis=1), rtol=1e-3, atol=6e-8)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1,), (5,)])
def test_small_and_empty_shapes(ours, theirs, shape):
    x = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    np.testing.assert_allclose(run(ours, x), theirs(x, axis=-1) if x.size else x)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("axis", [0, 1])
def test_gradients_of_first_and_second_order(ours, theirs, axis):
    x = np.random.default_rng(2).standard_normal((3, 4))
    check_gradient(lambda v: ours(v, axis), x, order=2, rtol=1e-5, atol=1e-5)


def test_integers_become_floats_and_constants_are_taken():
    assert softmax(np.array([1, 2, 3], "int8")).dtype == "float32"
    assert log_softmax([1.0, 2.0]).static_shape == (2,)


def test_errors():
    x = Variable(TensorType("float32", (2, 3)))
    with pytest.raises(ArgumentError, match="no axis 2"):
        softmax(x, 2)
    with pytest.raises(ArgumentError, match="no axis"):
        softmax(1.0)
    for op in (Softmax(0), LogSoftmax(0)):
        with pytest.raises(GraphTypeError, match="takes floats"):
            apply_op(op, Variable(TensorType("int32", (2,))))
    with pytest.raises(ShapeError, match="SoftmaxGrad"):
        apply_op(SoftmaxGrad(1), x, Variable(TensorType("float32", (2, 4))))
