"""Matrix products against NumPy in float64, for all strides, sizes around the tiles, batch axes and whole numbers."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from kernel_runner import make_problem, run_kernel

from symconv.codegen.matmul import MATMUL_IMPLEMENTATIONS
from symconv.ops.linalg import MatMul
from symconv.target import Target

Array = np.ndarray[Any, Any]
TOLERANCE = {"float32": 2e-6, "float64": 1e-14}  # of the sum of the magnitudes of the terms, for each doubling of the depth


def layouts(array: Array) -> Iterator[Array]:
    """The array as it is, transposed in memory, reversed, and as every second element of a larger one full of NaN or 99."""
    yield array
    yield np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    yield np.ascontiguousarray(array[..., ::-1, ::-1])[..., ::-1, ::-1]
    larger = np.full([2 * size for size in array.shape], np.nan if array.dtype.kind == "f" else 99).astype(array.dtype)
    view = larger[tuple(slice(0, 2 * size, 2) for size in array.shape)]
    view[...] = array
    yield view


def check(a: Array, b: Array, threads: int = 2) -> None:
    wanted = np.matmul(a, b) if a.dtype.kind != "f" else a.astype(np.float64) @ b.astype(np.float64)
    ran = 0
    for implementation in MATMUL_IMPLEMENTATIONS:
        if implementation.refuse(make_problem(MatMul(), a, b), Target()) is not None:
            continue
        ran += 1
        (found,) = run_kernel(implementation, MatMul(), a, b, threads=threads)
        assert found.shape == wanted.shape
        if a.dtype.kind == "f":
            scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
            assert (np.abs(found - wanted) <= 4 * TOLERANCE[a.dtype.name] * scale).all(), implementation.name
        else:
            np.testing.assert_array_equal(found, wanted)
    assert ran


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (6, 16, 8), (13, 33, 257), (100, 50, 600), (7, 1, 20), (1, 9, 20),
                                   (12, 16, 300), (3, 40, 0), (0, 4, 5), (4, 0, 5), (70, 17, 1025)])
def test_sizes_and_strides(sizes: tuple[int, int, int]) -> None:
    rows, columns, depth = sizes
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for a in layouts(rng.standard_normal((rows, depth)).astype(dtype)):
            for b in layouts(rng.standard_normal((depth, columns)).astype(dtype)):
                check(a, b)


@pytest.mark.parametrize("shapes", [((3, 4, 5), (3, 5, 6)), ((2, 3, 4, 5), (1, 3, 5, 1)), ((40, 70, 80), (40, 80, 30)),
                                    ((2, 200, 200), (2, 200, 200)), ((0, 3, 4), (0, 4, 5)), ((2, 1, 6), (2, 6, 9))])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_batch_axes(shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> None:
    rng = np.random.default_rng(1)
    for a in layouts(rng.integers(-9, 9, shapes[0]).astype(dtype)):
        for b in layouts(rng.integers(-9, 9, shapes[1]).astype(dtype)):
            check(a, b)


def test_broadcast_batch_axis() -> None:
    rng = np.random.default_rng(2)
    a = rng.standard_normal((4, 7, 9)).astype(np.float32)
    b = np.broadcast_to(rng.standard_normal((9, 5)).astype(np.float32), (4, 9, 5))
    check(a, b)
    check(np.broadcast_to(a[:1], (4, 7, 9)), rng.standard_normal((4, 9, 5)).astype(np.float32))


def test_integers_wrap() -> None:
    a = np.full((2, 3), 127, np.int8)
    check(a, a.T)


def test_threads_do_not_change_bits() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((150, 700)).astype(np.float32), rng.standard_normal((700, 130)).astype(np.float32)
    one, two = (run_kernel(MATMUL_IMPLEMENTATIONS[0], MatMul(), a, b, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shape", [(1000, 1280), (4, 60000), (9000, 40), (333, 201)], ids=str)
def test_large_matrices_times_a_vector(shape: tuple[int, int]) -> None:
    """Vector times matrix: the matrix is cut along the sum, and the bits do not depend on the threads."""
    rng = np.random.default_rng(4)
    columns, depth = shape
    x, a = rng.standard_normal((1, depth)).astype("float32"), rng.standard_normal((depth, columns)).astype("float32")
    one, two = (run_kernel(MATMUL_IMPLEMENTATIONS[1], MatMul(), x, a, threads=threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    wanted, size = x.astype(float) @ a, np.abs(x).astype(float) @ np.abs(a)
    assert np.all(np.abs(one - wanted) <= 3e-6 * size)


def test_refusals_say_why() -> None:
    half = np.zeros((2, 2), np.float16)
    reasons = [each.refuse(make_problem(MatMul(), half, half), Target()) for each in MATMUL_IMPLEMENTATIONS]
    assert all(reason is not None for reason in reasons)
    assert "float16" in (reasons[0] or "")
