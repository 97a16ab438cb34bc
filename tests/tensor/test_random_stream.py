"""Streams: parameters, seeds, updates, gradients, statistics; dropout."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from support import evaluate

from symconv.config import config
from symconv.errors import ArgumentError, GraphTypeError
from symconv.graph import TensorType, Variable
from symconv.graph.gradient import grad
from symconv.tensor import nnet
from symconv.tensor.random import RandomStream


def values(*outputs, bindings=None):
    return evaluate(outputs, bindings or {})


def step(stream):
    """What a compiled function does after a call: every state takes its next value."""
    new = values(*(after for _, after in stream.updates()))
    for (state, _), value in zip(stream.updates(), new, strict=True):
        state.set_value(value)


def test_the_same_seed_gives_the_same_numbers_and_every_tensor_its_own():
    first, second, other = (RandomStream(seed) for seed in (3, 3, 4))
    a, b = values(first.uniform(100), first.uniform(100))
    np.testing.assert_array_equal(values(second.uniform(100), second.uniform(100)), [a, b])
    assert not np.array_equal(a, b)
    assert not np.array_equal(values(other.uniform(100))[0], a)


def test_updates_move_on_without_overlap_and_seed_goes_back():
    stream = RandomStream(5)
    x = stream.uniform(10)
    one = values(x)[0]
    np.testing.assert_array_equal(values(x)[0], one)
    step(stream)
    two = values(x)[0]
    assert not set(one) & set(two)
    stream.seed()
    np.testing.assert_array_equal(values(x)[0], one)
    stream.seed(6)
    assert not np.array_equal(values(x)[0], one)
    np.testing.assert_array_equal(values(x), values(RandomStream(6).uniform(10)))


def test_parameters():
    stream = RandomStream(1)
    low, high = np.array([[0.0], [10.0]]), np.array([[1.0], [30.0]])
    u, z, b, k, c = values(stream.uniform((2, 20_000), low, high, "float64"), stream.normal(20_000, -3, 0.5),
                           stream.bernoulli((2, 20_000), np.array([[0.2], [0.9]])), stream.integers(20_000, -3, 4),
                           stream.bernoulli(20_000, dtype="float32"))
    assert (u.dtype, z.dtype, b.dtype, k.dtype, c.dtype) == ("float64", config.floatX, "bool", "int64", "float32")
    for row, start, end in zip(u, (0, 10), (1, 30), strict=True):
        assert scipy.stats.kstest(row, scipy.stats.uniform(start, end - start).cdf).pvalue > 0.01
    assert scipy.stats.kstest(z.astype("float64"), scipy.stats.norm(-3, 0.5).cdf).pvalue > 0.01
    np.testing.assert_allclose(b.mean(1), [0.2, 0.9], atol=0.01)
    assert abs(c.mean() - 0.5) < 0.01
    assert scipy.stats.chisquare(np.bincount(k + 3, minlength=7)).pvalue > 0.01
    assert set(k) == set(range(-3, 4))


def test_binomial_counts_trials():
    stream = RandomStream(4)
    once, many = values(stream.binomial((3, 4)), stream.binomial((2, 20_000), 5, np.array([[0.3], [0.6]])))
    assert once.dtype == many.dtype == "int64"
    assert set(np.unique(once)) <= {0, 1}
    for counts, p in zip(many, (0.3, 0.6), strict=True):
        expected = scipy.stats.binom(5, p).pmf(np.arange(6)) * 20_000
        assert scipy.stats.chisquare(np.bincount(counts, minlength=6), expected).pvalue > 0.01


def test_probabilities_zero_and_one_are_certain():
    stream = RandomStream(2)
    never, always = values(stream.bernoulli(1000, 0.0), stream.bernoulli(1000, 1.0))
    assert not never.any()
    assert always.all()


def test_low_and_deviation_have_gradients():
    stream = RandomStream(8)
    low, high, mean, std = (Variable(TensorType("float64", ())) for _ in range(4))
    u, z = stream.uniform(50, low, high, "float64"), stream.normal(50, mean, std, "float64")
    gradients = grad((u + z).sum(), [low, high, mean, std])
    bindings = dict(zip((low, high, mean, std), map(np.array, (1.0, 3.0, 2.0, 5.0)), strict=True))
    drawn_u, drawn_z, *found = evaluate([u, z, *gradients], bindings)
    unit = (drawn_u - 1) / 2
    np.testing.assert_allclose(found, [(1 - unit).sum(), unit.sum(), 50, ((drawn_z - 2) / 5).sum()])


def test_wrong_parameters():
    stream = RandomStream()
    for call, error, text in (
        (lambda: RandomStream(-1), ArgumentError, "whole number"),
        (lambda: RandomStream(1.5), ArgumentError, "whole number"),
        (lambda: stream.bernoulli(3, 1.5), ArgumentError, "between 0 and 1"),
        (lambda: stream.binomial(3, 0), ArgumentError, "from 1"),
        (lambda: stream.integers(3, 5, 5), ArgumentError, "low < high"),
        (lambda: stream.integers(3, dtype="float32"), GraphTypeError, "integer dtype"),
        (lambda: stream.uniform(3, dtype="int8"), GraphTypeError, "no dtype int8"),
        (lambda: stream.uniform(2.5), GraphTypeError, "sizes"),
        (lambda: stream.normal(3, Variable(TensorType("float64", ())), dtype="float32"), GraphTypeError, "wider dtype"),
    ):
        with pytest.raises(error, match=text):
            call()
    assert stream.states == []


@pytest.mark.parametrize("known", [True, False])
def test_dropout_keeps_the_mean_and_its_gradient_uses_the_same_mask(known):
    x = Variable(TensorType("float32", (200, 300) if known else (None, None)))
    stream = RandomStream(9)
    y = nnet.dropout(x, 0.25, stream)
    gradient = grad(y.sum(), x)
    ones = np.ones((200, 300), "float32")
    out, slope = evaluate([y, gradient], {x: ones})
    assert out.dtype == "float32"
    np.testing.assert_allclose(np.unique(out), [0, 1 / 0.75], rtol=1e-6)
    assert abs((out == 0).mean() - 0.25) < 0.01
    np.testing.assert_array_equal(slope, out)


def test_dropout_of_whole_channels_and_by_a_symbolic_rate():
    x, rate = Variable(TensorType("float32", (None, 50, 3, 4))), Variable(TensorType("float64", ()))
    ones = np.ones((20, 50, 3, 4), "float32")
    (out,) = evaluate([nnet.dropout(x, rate, RandomStream(3), shared_axes=(2, 3))], {x: ones, rate: np.array(0.5)})
    assert out.dtype == "float32"
    np.testing.assert_array_equal(out, np.broadcast_to(out[:, :, :1, :1], out.shape))
    assert abs(out[:, :, 0, 0].mean() - 1) < 0.1
    assert set(np.unique(out)) == {0, 2}


def test_dropout_does_nothing_when_predicting_and_drops_infinities():
    x = Variable(TensorType("float32", (3,)))
    stream = RandomStream(3)
    assert nnet.dropout(x, 0.5, stream, train=False) is x
    assert nnet.dropout(x, 0, stream) is x
    assert stream.states == []
    infinite = np.full(64, np.inf, "float32")
    (out,) = evaluate([nnet.dropout(infinite, 0.5, stream)])
    assert set(out) == {0, np.inf}


def test_wrong_dropout():
    x = Variable(TensorType("float32", (3,)))
    with pytest.raises(ArgumentError, match="probability of zero"):
        nnet.dropout(x, 1.0, RandomStream())
    with pytest.raises(GraphTypeError, match="RandomStream"):
        nnet.dropout(x, 0.5, 42)
