"""Losses against their formulas in float64, labels out of range, gradients, and logits of any size."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from support import check_gradient, evaluate, variable_for

from symconv.errors import GraphTypeError, IndexRangeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.graph.gradient import grad
from symconv.tensor import nnet


def run(function, *arrays, known=True):
    variables = [variable_for(array, known) for array in arrays]
    return evaluate([function(*variables)], dict(zip(variables, arrays, strict=True)))[0]


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
@pytest.mark.parametrize("known", [True, False])
def test_integer_classes_pick_one_logarithm_of_each_row(dtype, known):
    rng = np.random.default_rng(0)
    logits, labels = rng.standard_normal((6, 4)), rng.integers(0, 4, 6).astype(dtype)
    expected = [-scipy.special.log_softmax(row)[label] for row, label in zip(logits, labels, strict=True)]
    np.testing.assert_allclose(run(nnet.softmax_cross_entropy, logits, labels, known=known), expected, rtol=1e-12)
    probabilities = scipy.special.softmax(logits, axis=1)
    np.testing.assert_allclose(run(nnet.categorical_crossentropy, probabilities, labels, known=known), expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_classes_along_any_axis(axis):
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((3, 4, 5))
    logarithms = np.moveaxis(scipy.special.log_softmax(logits, axis=axis), axis, -1)
    labels = rng.integers(0, logarithms.shape[-1], logarithms.shape[:-1])
    expected = np.zeros(labels.shape)
    for place in np.ndindex(labels.shape):
        expected[place] = -logarithms[(*place, labels[place])]
    np.testing.assert_allclose(run(lambda x, y: nnet.softmax_cross_entropy(x, y, axis), logits, labels), expected)
    weights = scipy.special.softmax(rng.standard_normal(logits.shape), axis=axis)
    np.testing.assert_allclose(run(lambda x, y: nnet.softmax_cross_entropy(x, y, axis), logits, weights),
                               -(weights * scipy.special.log_softmax(logits, axis=axis)).sum(axis), rtol=1e-12)


def test_distributions():
    rng = np.random.default_rng(2)
    coding, true = (scipy.special.softmax(rng.standard_normal((5, 3)), axis=1) for _ in range(2))
    np.testing.assert_allclose(run(nnet.categorical_crossentropy, coding, true), -(true * np.log(coding)).sum(1))


def test_one_example_and_no_examples():
    logits = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(run(nnet.softmax_cross_entropy, logits, np.array(2)), -scipy.special.log_softmax(logits)[2])
    assert run(nnet.softmax_cross_entropy, np.zeros((0, 3)), np.zeros(0, "int64")).shape == (0,)
    assert run(nnet.softmax_cross_entropy, np.zeros((0, 3)), np.zeros(0, "int64"), known=False).shape == (0,)


def test_large_logits_are_exact_and_their_gradients_finite():
    logits, labels = np.array([[0, 1000], [300, -500]], "float32"), np.array([0, 0])
    np.testing.assert_array_equal(run(nnet.softmax_cross_entropy, logits, labels), [1000, 0])
    x, y = variable_for(logits), variable_for(labels)
    gradient = grad(nnet.softmax_cross_entropy(x, y).sum(), x)
    np.testing.assert_array_equal(evaluate([gradient], {x: logits, y: labels})[0], [[-1, 1], [0, 0]])


def test_an_excluded_class_of_probability_zero_adds_nothing():
    logits, weights = np.array([[-np.inf, 0.0, 0.0]]), np.array([[0.0, 0.5, 0.5]])
    np.testing.assert_allclose(run(nnet.softmax_cross_entropy, logits, weights), [np.log(2)])
    x, y = variable_for(logits), variable_for(weights)
    gradient = grad(nnet.softmax_cross_entropy(x, y).sum(), x)
    np.testing.assert_allclose(evaluate([gradient], {x: logits, y: weights})[0], [[0, 0, 0]], atol=1e-15)


@pytest.mark.parametrize("label", [-5, -1, 4, 100])
@pytest.mark.parametrize("loss", [nnet.softmax_cross_entropy, nnet.categorical_crossentropy])
def test_a_class_out_of_range_is_an_error_and_never_wraps(label, loss):
    with pytest.raises(IndexRangeError):
        run(loss, np.full((3, 4), 0.25), np.array([0, label, 1]))


def test_binary_forms():
    rng = np.random.default_rng(3)
    logits, target = rng.standard_normal((4, 3)) * 3, rng.uniform(size=(4, 3))
    p = scipy.special.expit(logits)
    expected = -(target * np.log(p) + (1 - target) * np.log(1 - p))
    np.testing.assert_allclose(run(nnet.binary_crossentropy, p, target), expected, rtol=1e-12)
    np.testing.assert_allclose(run(nnet.sigmoid_binary_crossentropy, logits, target), expected, rtol=1e-12)


def test_the_binary_form_from_logits_is_exact_far_out():
    logits, target = np.array([1000.0, -1000.0, 1000.0, -1000.0, 50.0, 0.0]), np.array([1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    expected = [0, 0, 1000, 1000, np.exp(-50), np.log(2)]
    np.testing.assert_allclose(run(nnet.sigmoid_binary_crossentropy, logits, target), expected, rtol=1e-12)
    x, t = variable_for(logits), variable_for(target)
    gradient = grad(nnet.sigmoid_binary_crossentropy(x, t).sum(), x)
    np.testing.assert_allclose(evaluate([gradient], {x: logits, t: target})[0], scipy.special.expit(logits) - target,
                               atol=1e-15)


def test_gradients():
    rng = np.random.default_rng(4)
    logits, labels = rng.standard_normal((4, 3)), np.array([0, 2, 1, 1])
    p, q = (scipy.special.softmax(rng.standard_normal((4, 3)), axis=1) for _ in range(2))
    check_gradient(nnet.softmax_cross_entropy, logits, labels, order=2)
    check_gradient(nnet.softmax_cross_entropy, logits, q, order=2)
    check_gradient(lambda x, y: nnet.softmax_cross_entropy(x, y, 0), logits, np.array([3, 0, 1]))
    check_gradient(nnet.categorical_crossentropy, p, labels)
    check_gradient(nnet.categorical_crossentropy, p, q)
    check_gradient(nnet.binary_crossentropy, p, q)
    check_gradient(nnet.sigmoid_binary_crossentropy, logits, q, order=2)


def test_integer_targets_and_dtypes():
    p, t = Variable(TensorType("float32", (3,))), Variable(TensorType("int64", (3,)))
    assert nnet.binary_crossentropy(p, t).dtype == nnet.sigmoid_binary_crossentropy(p, t).dtype == "float32"
    assert nnet.softmax_cross_entropy(Variable(TensorType("float16", (3, 2))), t).dtype == "float16"


@pytest.mark.parametrize("loss", [nnet.softmax_cross_entropy, nnet.categorical_crossentropy])
@pytest.mark.parametrize(("labels", "error", "text"), [
    (TensorType("float32", (3,)), GraphTypeError, "classes are integers"),
    (TensorType("int64", ()), GraphTypeError, "the ranks of scores and labels"),
    (TensorType("int64", (3, 4, 1)), GraphTypeError, "the ranks of scores and labels"),
    (TensorType("int64", (5,)), ShapeError, "one class for each row"),
])
def test_labels_that_do_not_fit(loss, labels, error, text):
    with pytest.raises(error, match=text):
        loss(Variable(TensorType("float32", (3, 4))), Variable(labels))
