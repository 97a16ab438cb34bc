"""Theano's further distributions: what is drawn, how often, and that each call draws anew."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError
from symconv.tensor.shared_randomstreams import RandomStreams


def drawn(result):
    """Two calls of one function."""
    draw = sc.compile([], result)
    return draw(), draw()


def test_random_integers_include_both_ends():
    first, second = drawn(RandomStreams(1).random_integers((1000,), 2, 4))
    assert set(first) == {2, 3, 4}
    assert (first != second).any()


def test_permutations():
    first, second = drawn(RandomStreams(2).permutation((500,), n=3))
    for each in (first, second):
        assert each.dtype == np.int64
        np.testing.assert_array_equal(np.sort(each, axis=1), np.tile([0, 1, 2], (500, 1)))
    kinds, counts = np.unique(first, axis=0, return_counts=True)
    assert len(kinds) == 6
    assert counts.min() > 50  # 83 expected of each, deviation 8.3


def test_shuffled_rows():
    rows = np.arange(60.0).reshape(3, 20)
    first, second = drawn(RandomStreams(3).shuffle_row_elements(T.constant(rows)))
    np.testing.assert_array_equal(np.sort(first, axis=1), rows)
    assert (first[0] != second[0]).any()
    assert (first[0] + 20 != first[1]).any()


@pytest.mark.parametrize("n", [1, 5])
def test_multinomial(n):
    chances = np.array([[0.1, 0.0, 0.9], [0.5, 0.25, 0.25]] * 2000, "float32")
    first, second = drawn(RandomStreams(4).multinomial(n=n, pvals=T.constant(chances)))
    assert first.shape == chances.shape
    np.testing.assert_array_equal(first.sum(1), np.full(4000, n))
    assert (first != second).any()
    for row in (0, 1):
        np.testing.assert_allclose(first[row::2].mean(0), n * chances[row], atol=5 * np.sqrt(n * 0.25 / 2000))
    assert first[::2, 1].sum() == 0


def test_choices():
    stream, values = RandomStreams(5), np.array([10.0, 20.0, 30.0])
    first, _ = drawn(stream.choice((2000,), a=T.constant(values), p=[0.2, 0.0, 0.8]))
    assert set(first) == {10.0, 30.0}
    np.testing.assert_allclose((first == 10).mean(), 0.2, atol=0.045)
    assert set(drawn(stream.choice((200,), a=3))[0]) == {0, 1, 2}
    few, others = drawn(stream.choice((4,), a=9, replace=False))
    assert len(set(few)) == len(set(others)) == 4
    assert set(few) | set(others) <= set(range(9))


def test_mistakes():
    stream = RandomStreams(6)
    for wrong in (lambda: stream.multinomial(pvals=None), lambda: stream.multinomial(n=0, pvals=[1.0]),
                  lambda: stream.multinomial(size=(3,), pvals=[1.0]), lambda: stream.choice((2, 2), a=3, replace=False)):
        with pytest.raises(ArgumentError):
            wrong()
    with pytest.raises(AttributeError, match="with NumPy"):
        _ = stream.poisson
