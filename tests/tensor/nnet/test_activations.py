"""Activations against their formulas in NumPy and SciPy, at ordinary points, infinities and NaN; gradients."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from support import check_gradient, evaluate

from symconv.graph import TensorType, Variable
from symconv.graph.gradient import grad
from symconv.tensor import nnet

POINTS = np.array([-700.0, -20.0, -3.0, -1.0, -0.3, -0.0, 0.0, 0.2, 1.0, 2.5, 20.0, 700.0])

FORMULAS = {
    "relu": (nnet.relu, lambda x: np.maximum(x, 0)),
    "relu with a slope": (lambda x: nnet.relu(x, 0.3), lambda x: np.where(x > 0, x, 0.3 * x)),
    "leaky_relu": (nnet.leaky_relu, lambda x: np.maximum(x, 0.01 * x)),
    "elu": (nnet.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "elu with alpha": (lambda x: nnet.elu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(np.minimum(x, 0)))),
    "selu": (nnet.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))),
    "gelu": (nnet.gelu, lambda x: x * scipy.special.ndtr(x)),
    "gelu by tanh": (lambda x: nnet.gelu(x, approximate=True),
                     lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
    "silu": (nnet.silu, lambda x: x * scipy.special.expit(x)),
    "swish": (lambda x: nnet.swish(x, 1.5), lambda x: x * scipy.special.expit(1.5 * x)),
    "sigmoid": (nnet.sigmoid, scipy.special.expit),
    "hard_sigmoid": (nnet.hard_sigmoid, lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    "softplus": (nnet.softplus, lambda x: np.logaddexp(x, 0)),
    "softsign": (nnet.softsign, lambda x: x / (1 + np.abs(x))),
    "tanh": (nnet.tanh, np.tanh),
}


def run(function, array):
    x = Variable(TensorType(array.dtype.name, array.shape))
    return evaluate([function(x)], {x: array})[0]


def slope(function, array):
    x = Variable(TensorType(array.dtype.name, array.shape))
    return evaluate([grad(function(x).sum(), x)], {x: array})[0]


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name):
    ours, formula = FORMULAS[name]
    np.testing.assert_allclose(run(ours, POINTS), formula(POINTS), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(run(ours, POINTS.astype("float32")), formula(POINTS), rtol=1e-5, atol=1e-6)
    assert run(ours, POINTS.astype("float16")).dtype == "float16"


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients(name):
    ours, _ = FORMULAS[name]
    check_gradient(ours, np.array([-4.0, -1.3, -0.2, 0.3, 1.1, 3.0]), order=2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_gradients_are_finite_far_out(name):
    assert np.isfinite(slope(FORMULAS[name][0], POINTS)).all()
    assert np.isfinite(slope(FORMULAS[name][0], POINTS.astype("float32"))).all()


@pytest.mark.parametrize("name", FORMULAS)
def test_nan_stays_nan(name):
    assert np.isnan(run(FORMULAS[name][0], np.array([np.nan]))).all()


@pytest.mark.parametrize(("name", "low", "high"), [
    ("relu", 0, np.inf), ("leaky_relu", -np.inf, np.inf), ("elu", -1, np.inf), ("selu", -1.7580993408473766, np.inf),
    ("sigmoid", 0, 1), ("hard_sigmoid", 0, 1), ("softplus", 0, np.inf), ("tanh", -1, 1)])
def test_limits_at_infinity(name, low, high):
    np.testing.assert_allclose(run(FORMULAS[name][0], np.array([-np.inf, np.inf])), [low, high])


def test_gradient_of_relu_at_zero_is_its_slope():
    zeros = np.array([0.0, -0.0])
    np.testing.assert_array_equal(slope(nnet.relu, zeros), [0, 0])
    np.testing.assert_array_equal(slope(lambda x: nnet.relu(x, 0.25), zeros), [0.25, 0.25])
    np.testing.assert_array_equal(slope(nnet.relu, np.array([np.nan, np.inf, -np.inf]))[1:], [1, 0])


def test_learned_slopes_have_gradients():
    x = np.random.default_rng(0).standard_normal((3, 4))
    check_gradient(lambda v, a: nnet.relu(v, a), x, np.array([0.1, 0.2, 0.3, 0.4]))
    check_gradient(lambda v, a: nnet.elu(v, a), x, np.array([0.5, 1.0, 1.5, 2.0]))


def test_python_slopes_keep_float32_and_integers_become_floats():
    x = Variable(TensorType("float32", (3,)))
    assert {function(x).dtype for function, _ in FORMULAS.values()} == {"float32"}
    whole = Variable(TensorType("int8", (3,)))
    assert nnet.relu(whole).dtype == "int8"
    assert nnet.relu(whole, 0.5).dtype == nnet.gelu(whole).dtype == "float32"
