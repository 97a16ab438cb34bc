"""The generator against published vectors, numbers from words, counters, and the statistics of the draws."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from support import evaluate

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.ops.philox import philox4x32, philox_words
from symconv.ops.random import STATE_TYPE, advanced, random

STATE = Variable(STATE_TYPE, "state")


def draw(distribution, size, dtype, key=7, counter=0):
    return evaluate([random(distribution, STATE, size, dtype)], {STATE: np.array([key, counter], np.uint64)})[0]


@pytest.mark.parametrize(("counter", "key", "answer"), [  # kat_vectors of Random123, "philox4x32 10"
    ((0, 0, 0, 0), (0, 0), (0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8)),
    ((0xffffffff,) * 4, (0xffffffff,) * 2, (0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd)),
    ((0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344), (0xa4093822, 0x299f31d0),
     (0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1)),
])
def test_known_answers(counter, key, answer):
    words = philox4x32(tuple(np.array([word], np.uint64) for word in counter), key)
    assert tuple(int(word[0]) for word in words) == answer


def plain_philox(counter, key):
    """One block with Python's integers."""
    c, k = [counter & 0xffffffff, counter >> 32, 0, 0], [key & 0xffffffff, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def test_words_of_large_keys_and_counters_that_wrap():
    key, first = 0xfedcba9876543210, 2**64 - 2
    expected = [plain_philox((first + block) % 2**64, key) for block in range(4)]
    np.testing.assert_array_equal(philox_words(key, first, 4), expected)
    np.testing.assert_array_equal(draw("bits", 16, "uint32", key, first), np.ravel(expected))
    pairs = [low | high << 32 for block in expected for low, high in (block[:2], block[2:])]
    np.testing.assert_array_equal(draw("bits", (2, 4), "uint64", key, first), np.reshape(np.array(pairs, np.uint64), (2, 4)))


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("float32", 24)])
def test_uniform_takes_the_upper_bits_of_a_word(dtype, bits):
    words = draw("bits", 1001, "uint32").tolist()
    np.testing.assert_array_equal(draw("uniform", 1001, dtype), np.array([(w >> 32 - bits) / 2**bits for w in words], dtype))


def test_uniform_in_double_and_normal_by_pairs():
    words = draw("bits", 1000, "uint64").tolist()
    np.testing.assert_array_equal(draw("uniform", 1000, "float64"), [(w >> 11) / 2**53 for w in words])
    cut = np.array([w >> 11 for w in words]) / 2**53
    radius = np.sqrt(-2 * np.log(cut[0::2] + 2.0**-54))
    expected = np.stack([radius * np.cos(2 * np.pi * cut[1::2]), radius * np.sin(2 * np.pi * cut[1::2])], 1).ravel()
    np.testing.assert_allclose(draw("normal", 1000, "float64"), expected, rtol=1e-12)
    small = np.array(draw("bits", 1000, "uint32").tolist()) / 2**32
    radius = np.sqrt(-2 * np.log(small[0::2] + 2.0**-33))
    expected = np.stack([radius * np.cos(2 * np.pi * small[1::2]), radius * np.sin(2 * np.pi * small[1::2])], 1).ravel()
    np.testing.assert_allclose(draw("normal", 1000, "float32"), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize(("dtype", "per_block"), [("float32", 4), ("float64", 2), ("float16", 4)])
def test_an_element_depends_on_its_counter_only(distribution, dtype, per_block):
    whole = draw(distribution, 40, dtype)
    np.testing.assert_array_equal(draw(distribution, (3, 5), dtype), whole[:15].reshape(3, 5))
    np.testing.assert_array_equal(draw(distribution, 9, dtype, counter=3), whole[3 * per_block:][:9])
    assert not np.array_equal(draw(distribution, 40, dtype, key=8), whole)


@pytest.mark.parametrize(("dtype", "blocks"), [("float32", 4), ("float64", 8), ("uint64", 8)])
def test_a_draw_uses_as_many_counters_as_it_has_blocks(dtype, blocks):
    n = Variable(TensorType("int64", ()))
    for size in ((3, 5), (3, n)):
        after = evaluate([advanced(STATE, size, dtype)], {STATE: np.array([7, 100], np.uint64), n: np.array(5)})[0]
        assert after.dtype == np.uint64
        np.testing.assert_array_equal(after, [7, 100 + blocks])
    empty = advanced(STATE, (0, 3), dtype)
    np.testing.assert_array_equal(evaluate([empty], {STATE: np.array([7, 1], np.uint64)})[0], [7, 1])


def test_symbolic_and_empty_sizes():
    n, x = Variable(TensorType("int64", ())), Variable(TensorType("float32", (None, 3)))
    state = {STATE: np.array([1, 2], np.uint64)}
    result = random("uniform", STATE, (n, 2), "float32")
    assert result.static_shape == (None, 2)
    assert evaluate([result], {**state, n: np.array(6)})[0].shape == (6, 2)
    like = random("normal", STATE, x.shape, "float32")
    assert like.static_shape == (None, 3)
    assert evaluate([like], {**state, x: np.zeros((4, 3), "float32")})[0].shape == (4, 3)
    assert draw("uniform", (), "float32").shape == ()
    assert draw("normal", (0, 4), "float64").shape == (0, 4)


def test_moments_and_distribution_of_uniform_and_normal():
    for dtype in ("float32", "float64"):
        u, z = draw("uniform", 200_000, dtype).astype("float64"), draw("normal", 200_000, dtype).astype("float64")
        assert u.min() >= 0
        assert u.max() < 1
        for sample, law in ((u, scipy.stats.uniform), (z, scipy.stats.norm)):
            assert scipy.stats.kstest(sample, law.cdf).pvalue > 0.01
            assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 0.01
        assert abs(z.mean()) < 0.01
        assert abs(z.std() - 1) < 0.01
        assert abs(scipy.stats.kurtosis(z)) < 0.05
        assert abs(scipy.stats.chisquare(np.histogram(u, 64, (0, 1))[0]).pvalue) > 0.01


def test_neighbouring_keys_are_independent():
    a, b = (draw("normal", 100_000, "float32", key).astype("float64") for key in (1, 2))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.01


def test_errors():
    with pytest.raises(ArgumentError, match="no such random distribution"):
        random("cauchy", STATE, 3, "float32")
    with pytest.raises(GraphTypeError, match="no dtype int32"):
        random("uniform", STATE, 3, "int32")
    with pytest.raises(GraphTypeError, match="no dtype float32"):
        random("bits", STATE, 3, "float32")
    with pytest.raises(GraphTypeError, match="uint64 vector"):
        random("uniform", Variable(TensorType("int64", (2,))), 3, "float32")
    with pytest.raises(ShapeError, match="sizes from 0"):
        random("uniform", STATE, (2, -1), "float32")
