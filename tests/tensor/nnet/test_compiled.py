"""The vocabulary in compiled functions: the same values as the references, streams that move on, stable losses."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from support import evaluate

import symconv as sc
import symconv.tensor as T
from symconv.errors import IndexRangeError
from symconv.tensor import nnet
from symconv.tensor.random import RandomStream

FAR = np.array([[0.0, 1000.0], [300.0, -500.0]])


def compiled(outputs, *arrays):
    """Values of `outputs(variables)` from a compiled function and from the references."""
    variables = [T.tensor(f"x{i}", dtype=array.dtype.name, shape=(None,) * array.ndim) for i, array in enumerate(arrays)]
    results = outputs(*variables)
    return sc.compile(variables, results)(*arrays), evaluate(results, dict(zip(variables, arrays, strict=True)))


def test_a_net_of_everything_equals_the_references():
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((3, 4, 9, 8)).astype("float32"), np.array([0, 5, 2])
    weights = (rng.standard_normal((4 * 2 * 2, 6)) * 0.3).astype("float32")
    scale, shift = rng.uniform(0.5, 1.5, (2, 4)).astype("float32")

    def net(x, y, w, gamma, beta):
        h, mean, invstd = nnet.batch_normalization_train(x, gamma, beta, "spatial")
        h = nnet.max_pool_2d(nnet.gelu(nnet.local_response_normalization(h)), 3, 2, 1)
        h = nnet.pool_2d(nnet.elu(h), 2, False, pad=1, mode="average_exc_pad")[:, :, :2, :2]
        loss = nnet.softmax_cross_entropy(h.flatten(2).dot(w), y).mean()
        return [loss, mean, invstd, *sc.grad(loss, [x, w, gamma, beta])]

    found, expected = compiled(net, images, labels, weights, scale, shift)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_log_softmax_is_stable_however_it_is_written():
    rows = np.array([[-1000.0, 0.0], [0.0, -800.0]])

    def forms(x):
        p = nnet.softmax(x)
        return [T.log(p), T.log(p.T).T, T.log(p.reshape((4,))).reshape((2, 2)), T.log(p[:, ::-1])[:, ::-1],
                nnet.log_softmax(x)]

    for dtype in ("float32", "float64"):
        found, _ = compiled(forms, FAR.astype(dtype))
        for value in found:
            np.testing.assert_array_equal(value, rows)
        constant = sc.compile([], forms(T.constant(FAR.astype(dtype))))()
        for value in constant:
            np.testing.assert_array_equal(value, rows)


def test_logarithms_of_sigmoids_are_stable():
    def forms(x):
        s = nnet.sigmoid(x)
        return [T.log(s), T.log(1 - s), T.log(s.T).T, T.log((1 - s)[::-1])[::-1]]

    found, _ = compiled(forms, FAR)
    below, above = -np.logaddexp(0, -FAR), -np.logaddexp(0, FAR)
    for value, expected in zip(found, (below, above, below, above), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["classes", "probabilities"])
def test_cross_entropy_of_a_softmax_is_stable(kind):
    labels = np.array([0, 0]) if kind == "classes" else np.array([[1.0, 0.0], [1.0, 0.0]])

    def losses(x, y):
        loss = nnet.categorical_crossentropy(nnet.softmax(x), y)
        return [loss, sc.grad(loss.sum(), x)]

    (loss, gradient), _ = compiled(losses, FAR, labels)
    np.testing.assert_array_equal(loss, [1000, 0])
    np.testing.assert_array_equal(gradient, [[-1, 1], [0, 0]])


def test_binary_cross_entropy_of_a_sigmoid_is_stable():
    logits, target = np.array([1000.0, -1000.0, 1000.0, -1000.0, 3.0]), np.array([1.0, 0.0, 0.0, 1.0, 0.5])

    def losses(x, t):
        loss = nnet.binary_crossentropy(nnet.sigmoid(x), t)
        return [loss, sc.grad(loss.sum(), x)]

    (loss, gradient), _ = compiled(losses, logits, target)
    np.testing.assert_allclose(loss, [0, 0, 1000, 1000, 0.5 * np.logaddexp(0, 3) + 0.5 * np.logaddexp(0, -3)])
    np.testing.assert_allclose(gradient, scipy.special.expit(logits) - target, atol=1e-12)


@pytest.mark.parametrize("label", [-1, 2])
def test_a_class_out_of_range_stops_the_function(label):
    x, y = T.matrix("x"), T.tensor("y", dtype="int64", shape=(None,))
    function = sc.compile([x, y], nnet.softmax_cross_entropy(x, y))
    with pytest.raises(IndexRangeError, match="test_compiled"):
        function(np.zeros((3, 2), "float32"), np.array([0, label, 1]))
    np.testing.assert_allclose(function(np.zeros((3, 2), "float32"), np.array([0, 1, 1])), np.full(3, np.log(2)), rtol=1e-6)


def test_a_stream_moves_on_at_every_call_and_gives_what_the_reference_gives():
    stream, twin = RandomStream(21), RandomStream(21)

    def draws(source):
        return [source.uniform((3, 5)), source.normal((2, 3), 1.0, 2.0, "float64"), source.bernoulli(9, 0.3),
                source.integers(7, -2, 9), source.uniform(6, dtype="float64"), source.normal(5)]

    function, twins = sc.compile([], draws(stream)), draws(twin)
    calls = [function() for _ in range(3)]
    for call in calls:
        for found, expected in zip(call, evaluate(twins), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        for (state, _), value in zip(twin.updates(), evaluate([new for _, new in twin.updates()]), strict=True):
            state.set_value(value)
    assert not np.array_equal(calls[0][0], calls[1][0])


def test_dropout_with_a_size_known_at_the_call():
    x = T.matrix("x")
    function = sc.compile([x], nnet.dropout(x, 0.5, RandomStream(1)))
    first, second, third = (function(np.ones(shape, "float32")) for shape in ((40, 50), (40, 50), (7, 3)))
    assert {0.0, 2.0} == set(np.unique(first)) == set(np.unique(second))
    assert not np.array_equal(first, second)
    assert third.shape == (7, 3)
