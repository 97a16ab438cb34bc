"""Random kernels against Philox written out with Python's integers."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from kernel_runner import run_kernel

from symconv.codegen.random import IMPLEMENTATIONS
from symconv.ops.random import PRECISION, Random

Array = np.ndarray[Any, Any]
(KERNEL,) = IMPLEMENTATIONS[Random]


def philox(key: int, counter: int) -> list[int]:
    """The four words of a block, after the paper."""
    low = 0xFFFFFFFF
    c = [counter & low, counter >> 32, 0, 0]
    k = [key & low, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def words(state: tuple[int, int], count: int, bits: int) -> list[int]:
    """The first `count` words of 32 or 64 bits of a draw."""
    result: list[int] = []
    for block in range(count):
        four = philox(state[0], (state[1] + block) % 2**64)
        result += four if bits == 32 else [four[1] << 32 | four[0], four[3] << 32 | four[2]]
        if len(result) >= count:
            break
    return result


def draw(distribution: str, dtype: str, state: tuple[int, int], shape: tuple[int, ...], threads: int = 2) -> Array:
    op = Random(distribution, dtype, (None,) * len(shape))
    return run_kernel(KERNEL, op, np.array(state, "uint64"), np.array(shape, "int64"), threads=threads)[0]


STATES = [(0, 0), (0x123456789ABCDEF0, 2**32 - 3), (2**64 - 1, 2**64 - 40)]
SHAPES = [(), (0, 3), (1,), (5, 7), (256,), (3, 171)]


def test_the_known_answer_of_the_generator() -> None:
    assert draw("bits", "uint32", (0, 0), (4,)).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_bits(dtype: str) -> None:
    for state in STATES:
        for shape in SHAPES:
            count = math.prod(shape)
            wanted = np.array(words(state, count, 8 * np.dtype(dtype).itemsize)[:count], dtype).reshape(shape)
            np.testing.assert_array_equal(draw("bits", dtype, state, shape), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_uniform(dtype: str) -> None:
    bits, precision = (64 if dtype == "float64" else 32), PRECISION[dtype]
    for state in STATES:
        numbers = words(state, 513, bits)[:513]
        wanted = np.array([(number >> (bits - precision)) * 2.0**-precision for number in numbers], dtype)
        found = draw("uniform", dtype, state, (27, 19))
        np.testing.assert_array_equal(found.ravel(), wanted)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("float32", 2.5e-7), ("float64", 2e-15)])
def test_normal(dtype: str, tolerance: float) -> None:
    bits = 64 if dtype == "float64" else 32
    for state in STATES:
        numbers = [number >> 11 if bits == 64 else number for number in words(state, 1200, bits)]
        scale = 2.0**-(53 if bits == 64 else 32)
        wanted = []
        for v, w in zip(numbers[0::2], numbers[1::2], strict=True):
            radius, angle = math.sqrt(-2 * math.log((v + 0.5) * scale)), 2 * math.pi * (w * scale)
            wanted += [radius * math.cos(angle), radius * math.sin(angle)]
        found = draw("normal", dtype, state, (1199,))
        smallest = 1e-15 if bits == 64 else 1e-9
        np.testing.assert_allclose(found, np.array(wanted[:1199]).astype(dtype), rtol=tolerance, atol=smallest)


def test_moments_of_the_normal_distribution() -> None:
    for dtype in ("float32", "float64"):
        z = draw("normal", dtype, (7, 0), (400_000,)).astype("float64")
        assert abs(z.mean()) < 0.01
        assert abs(z.std() - 1) < 0.01
        assert abs((z**4).mean() - 3) < 0.1


def test_same_bits_for_any_number_of_threads() -> None:
    for distribution in ("uniform", "normal"):
        one, two = (draw(distribution, "float32", (3, 9), (40_001,), threads=threads) for threads in (1, 2))
        np.testing.assert_array_equal(one, two)
