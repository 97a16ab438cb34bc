"""Stable forms: values that are exact where the expression as written overflows, for inputs, constants and gradients."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from rewriting import bound, leaf, ops, symbolic
from scipy import special

import symconv.tensor as T
from symconv.graph import Variable
from symconv.graph.gradient import grad
from symconv.tensor import nnet

X = np.array([[0.0, 1000.0], [300.0, -500.0]])
LOG = special.log_softmax(X, axis=1)
SOFT = special.softmax(X, axis=1)


def by_hand(x: Variable) -> Variable:
    return T.exp(x) / T.exp(x).sum(axis=1, keepdims=True)


def shifted(x: Variable) -> Variable:
    powers = T.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def summed_apart(x: Variable) -> Variable:
    return T.exp(x) / T.exp(x).sum(axis=1).dimshuffle(0, "x")


def row_gradient(weights: np.ndarray) -> np.ndarray:
    """Gradient of Σ weights · log_softmax(X)."""
    return weights - SOFT * weights.sum(axis=1, keepdims=True)


ONES = np.ones((2, 2))
FIRST = np.array([[1.0, 1.0], [0.0, 0.0]])
PICKED = np.array([[1.0, 0.0], [0.0, 1.0]])

CASES: dict[str, tuple[Callable[[Variable], Variable], np.ndarray, np.ndarray]] = {
    "log softmax": (lambda x: T.log(nnet.softmax(x)), LOG, row_gradient(ONES)),
    "transposed outside": (lambda x: T.log(nnet.softmax(x)).T, LOG.T, row_gradient(ONES)),
    "transposed inside": (lambda x: T.log(nnet.softmax(x).T), LOG.T, row_gradient(ONES)),
    "reshaped": (lambda x: T.log(nnet.softmax(x).reshape((-1,))), LOG.ravel(), row_gradient(ONES)),
    "with a new axis": (lambda x: T.log(nnet.softmax(x).dimshuffle(0, "x", 1)), LOG[:, None], row_gradient(ONES)),
    "sliced": (lambda x: T.log(nnet.softmax(x)[:1]), LOG[:1], row_gradient(FIRST)),
    "one row": (lambda x: T.log(nnet.softmax(x)[0]), LOG[0], row_gradient(FIRST)),
    "picked": (lambda x: T.log(nnet.softmax(x)[np.array([0, 1]), np.array([0, 1])]), LOG.diagonal(), row_gradient(PICKED)),
    "weighted": (lambda x: T.log(nnet.softmax(x)) * PICKED, LOG * PICKED, row_gradient(PICKED)),
    "written out": (lambda x: T.log(by_hand(x)), LOG, row_gradient(ONES)),
    "with the maximum": (lambda x: T.log(shifted(x)), LOG, row_gradient(ONES)),
    "sum without keepdims": (lambda x: T.log(summed_apart(x)), LOG, row_gradient(ONES)),
    "x - log sum exp": (lambda x: x - T.log(T.exp(x).sum(axis=1, keepdims=True)), LOG, row_gradient(ONES)),
    "softmax by hand": (by_hand, SOFT, np.zeros((2, 2))),
    "log sum exp": (lambda x: T.log(T.exp(x).sum(axis=1)), special.logsumexp(X, 1), SOFT),
    "log sum exp of all": (lambda x: T.log(T.exp(x).sum()), special.logsumexp(X), special.softmax(X)),
    "log sigmoid": (lambda x: T.log(T.sigmoid(x)), -np.logaddexp(0, -X), special.expit(-X)),
    "log(1 - sigmoid)": (lambda x: T.log(1 - T.sigmoid(x)), -np.logaddexp(0, X), -special.expit(X)),
    "log sigmoid, transposed": (lambda x: T.log(T.sigmoid(x).T), -np.logaddexp(0, -X.T), special.expit(-X)),
    "log(1 + exp)": (lambda x: T.log(1 + T.exp(x)), np.logaddexp(0, X), special.expit(X)),
    "1 / (1 + exp(-x))": (lambda x: 1 / (1 + T.exp(-x)), special.expit(X), special.expit(X) * special.expit(-X)),
    "1 / (1 + exp(x))": (lambda x: 1 / (1 + T.exp(x)), special.expit(-X), -special.expit(X) * special.expit(-X)),
    "binary cross-entropy": (lambda x: -(0.3 * T.log(T.sigmoid(x)) + 0.7 * T.log(1 - T.sigmoid(x))),
                             0.3 * np.logaddexp(0, -X) + 0.7 * np.logaddexp(0, X), special.expit(X) - 0.3),
    "log(exp(x))": (lambda x: T.log(T.exp(x)), X, ONES),
    "√(x²)": (lambda x: T.sqrt(T.square(x * 1e200)), np.abs(X) * 1e200, None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("known", [True, False])
def test_values_and_gradients(name: str, known: bool) -> None:
    build, expected, slope = CASES[name]
    x = leaf("float64", X.shape if known else (None, None))
    outputs = [build(x)] if slope is None else [build(x), grad(build(x).sum(), x)]
    found = bound({x: X}, outputs)[1]
    np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-300)
    if slope is not None:
        np.testing.assert_allclose(found[1], slope, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_constants(name: str) -> None:
    build, expected, _ = CASES[name]
    graph, (found,), _ = bound({}, [build(T.constant(X))])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)
    assert [name for name in ops(graph) if not name.startswith("BroadcastTo")] == []


def test_example_of_the_issue() -> None:
    x = T.constant(np.array([[0.0, 1000.0], [300.0, -500.0]]))
    np.testing.assert_array_equal(bound({}, [T.log(nnet.softmax(x).T)])[1][0], [[-1000, 0], [0, -800]])


def test_expected_graphs() -> None:
    x = T.dmatrix("x")
    assert ops(symbolic([x], [T.log(nnet.softmax(x).T)])) == ["LogSoftmax{axis=1}", "DimShuffle{(1, 0)}"]
    assert ops(symbolic([x], [by_hand(x)])) == ["Softmax{axis=1}"]
    assert ops(symbolic([x], [shifted(x)])) == ["Softmax{axis=1}"]
    assert ops(symbolic([x], [T.log(1 - T.sigmoid(x))])) == ["softplus", "neg"]
    assert ops(symbolic([x], [T.exp(x) - 1])) == ["expm1"]
    assert ops(symbolic([x], [T.log(1 + x)])) == ["log1p"]


def test_near_matches_stay() -> None:
    x, y = T.dmatrix("x"), T.dmatrix("y")
    assert "Softmax{axis=1}" not in ops(symbolic([x, y], [T.exp(x) / T.exp(y).sum(axis=1, keepdims=True)]))
    wrong_axis = T.exp(x) / T.exp(x).sum(axis=1).dimshuffle("x", 0)
    assert not any("Softmax" in name for name in ops(symbolic([x], [wrong_axis])))
    assert "log1p" not in ops(symbolic([x], [T.log(2 + x)]))
    assert "exp" in ops(symbolic([x], [T.exp(x) * (1 / (1 + T.exp(y)))]))


def test_wrong_axis_keeps_its_value() -> None:
    x = leaf("float64", (2, 2), "x")
    value = np.array([[0.5, 1.0], [2.0, -1.0]])
    wrong_axis = T.exp(x) * (x.sum(axis=1) / T.exp(x).sum(axis=1)).dimshuffle("x", 0)
    expected = np.exp(value) * (value.sum(1) / np.exp(value).sum(1))[None]
    np.testing.assert_allclose(bound({x: value}, [wrong_axis])[1][0], expected, rtol=1e-12)


def test_log_of_the_sum_over_an_axis_that_may_be_empty_stays() -> None:
    x = leaf("float64", (3, None), "x")
    assert "max" not in " ".join(ops(symbolic([x], [T.log(T.exp(x).sum(axis=1))])))
    found = bound({x: np.zeros((3, 0))}, [T.log(T.exp(x).sum(axis=1))])[1][0]
    np.testing.assert_array_equal(found, np.full(3, -np.inf))
    found = bound({x: np.full((3, 1), 1000.0)}, [T.log(T.exp(x).sum(axis=1))])[1][0]
    np.testing.assert_array_equal(found, np.full(3, 1000.0))
