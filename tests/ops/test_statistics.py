"""Mean, variance, standard deviation, logsumexp and norms against NumPy and SciPy."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from support import check_gradient, evaluate, variable_for

from symconv.config import config
from symconv.errors import ArgumentError, ShapeError
from symconv.graph import TensorType, Variable, toposort
from symconv.graph.gradient import grad
from symconv.ops import elementwise as e
from symconv.ops import statistics as s

RNG = np.random.default_rng(4)
CUBE = RNG.normal(size=(2, 3, 4))
AXES = [None, 0, -1, (0, 2), (1,)]


def value_of(variable, bindings=None):
    return evaluate([variable], bindings)[0]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_values(axis, keepdims):
    for known in (True, False):
        x = variable_for(CUBE, known)
        pairs = [(s.mean(x, axis, keepdims=keepdims), CUBE.mean(axis, keepdims=keepdims)),
                 (s.var(x, axis, keepdims=keepdims), CUBE.var(axis, keepdims=keepdims)),
                 (s.std(x, axis, 1, keepdims), CUBE.std(axis, ddof=1, keepdims=keepdims)),
                 (s.logsumexp(x, axis, keepdims), scipy.special.logsumexp(CUBE, axis, keepdims=keepdims))]
        for symbolic, wanted in pairs:
            assert not known or symbolic.type.shape == wanted.shape
            np.testing.assert_allclose(value_of(symbolic, {x: CUBE}), wanted, rtol=1e-13)


@pytest.mark.parametrize("axis", AXES)
def test_gradients(axis):
    for build in (s.mean, s.var, s.std, s.logsumexp, lambda x, axis: s.norm(x, 2, axis)):
        check_gradient(lambda x, build=build: build(x, axis=axis), CUBE)
        check_gradient(lambda x, build=build: build(x, axis=axis), CUBE[:, :2, :2], order=2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("dtype", "wanted"), [("int8", "float32"), ("bool", "float32"), ("uint16", "float32"),
                                               ("int64", "float64"), ("float16", "float16"), ("float32", "float32")])
def test_dtypes(dtype, wanted):
    x = np.ones(3, dtype)
    for build in (s.mean, s.var, s.std, s.logsumexp):
        assert build(x).dtype == wanted
    assert s.mean(x, dtype="float64").dtype == "float64"


def test_the_setting_of_floats_changes_no_dtype():
    x = Variable(TensorType("float32", (3,)))
    with config.change(floatX="float64"):
        for build in (s.mean, s.var, s.std, s.logsumexp, s.norm):
            assert {node.outputs[0].dtype for node in toposort([build(x)])} <= {"float32", "bool"}


def test_means_do_not_overflow():
    assert value_of(s.mean(np.array([100, 100, 100], "int8"))) == 100
    assert value_of(s.mean(np.full(1000, 1000.0, "float16"))) == 1000
    assert value_of(s.mean(np.array([True, False, False, False]))) == 0.25
    assert value_of(s.var(np.array([-100, 100], "int8"))) == 10000
    big = np.array([2**53, 2**53 + 2, 2**53 + 4])
    assert value_of(s.mean(big)) == 2**53 + 2


def test_empty_means_are_nan():
    assert np.isnan(value_of(s.mean(np.zeros(0))))
    assert np.isnan(value_of(s.var(np.zeros((2, 0)), 1))).all()
    assert np.isnan(value_of(s.var(np.ones(1), ddof=1)))
    assert np.isnan(value_of(s.var(np.ones(1), ddof=2)))
    with pytest.raises(ArgumentError, match="float"):
        s.mean(np.ones(2), dtype="int32")


def test_logsumexp_far_out():
    rows = np.array([[1000.0, 1000, -1000], [-np.inf, -np.inf, -np.inf], [-np.inf, 0, 1], [np.inf, 0, 1], [np.nan, 0, 1],
                     [-1e30, -1e30, -1e30]])
    x = variable_for(rows)
    result = s.logsumexp(x, 1)
    found, slope = evaluate([result, grad(result.sum(), x)], {x: rows})
    np.testing.assert_allclose(found, scipy.special.logsumexp(rows, 1))
    np.testing.assert_allclose(slope[:3], [[0.5, 0.5, 0], [0, 0, 0], scipy.special.softmax(rows[2])], atol=1e-12)
    np.testing.assert_allclose(slope[5], [1 / 3] * 3)
    with pytest.raises(ShapeError, match="empty"):
        s.logsumexp(np.zeros((2, 0)), 1)
    assert value_of(s.logsumexp(2.0)) == 2


def test_the_shift_of_logsumexp_costs_no_gradient():
    x = Variable(TensorType("float64", (4,)))
    point = RNG.normal(size=4)
    first = grad(s.logsumexp(x), x)
    second = grad((first * np.array([1.0, 0, 0, 0])).sum(), x)
    p = scipy.special.softmax(point)
    np.testing.assert_allclose(value_of(second, {x: point}), (np.diag(p) - np.outer(p, p))[0], atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, np.inf, -np.inf])
def test_norms(order):
    array = np.array([[3.0, 0, -4], [1, 2, 0.5]])
    np.testing.assert_allclose(value_of(s.norm(array, order, axis=1)), np.linalg.norm(array, order, axis=1))
    assert s.norm(array.astype("float32"), order).dtype == "float32"


def test_an_average_of_an_unknown_count_keeps_its_dtype():
    x = Variable(TensorType("float32", (None, 3)))
    assert s.mean(x).dtype == s.var(x, 0).dtype == "float32"
    np.testing.assert_array_equal(value_of(s.mean(e.exp(x), 0), {x: np.zeros((5, 3), "float32")}), [1, 1, 1])
