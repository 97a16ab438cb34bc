"""Matrix products on CUDA cores, on the checked emulator."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import run

from symconv.codegen.cuda.matmul import MatMulTiles
from symconv.ops.linalg import MatMul


def random(shape, dtype):
    rng = np.random.default_rng(0)
    return rng.integers(-9, 9, shape).astype(dtype) if np.dtype(dtype).kind in "iu" else rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("sizes", [(5, 7, 3), (65, 17, 66), (1, 40, 1), (3, 0, 4), (0, 2, 3)])
def test_values(dtype, sizes):
    rows, depth, columns = sizes
    a, b = random((rows, depth), dtype), random((depth, columns), dtype)
    (found,) = run(MatMulTiles(), MatMul(), a, b)
    wide = np.float64 if np.dtype(dtype).kind == "f" else dtype
    wanted = a.astype(wide) @ b.astype(wide)
    rtol, atol = (2e-3, 1e-2) if dtype == "float16" else (1e-4, 1e-4)
    np.testing.assert_allclose(found, wanted.astype(dtype), rtol=rtol, atol=atol)


@pytest.mark.parametrize("view", ["transposed a", "transposed b", "reversed", "stepped"])
def test_operands_of_any_strides(view):
    a, b = random((20, 30), "float32"), random((30, 10), "float32")
    if view == "transposed a":
        a = random((30, 20), "float32").T
    if view == "transposed b":
        b = random((10, 30), "float32").T
    if view == "reversed":
        a, b = a[::-1, ::-1], b[::-1]
    if view == "stepped":
        a, b = random((40, 60), "float32")[::2, ::2], random((30, 40), "float32")[:, 5:25:2]
    np.testing.assert_allclose(run(MatMulTiles(), MatMul(), a, b)[0], a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)


def test_blocks_go_on_with_rows_and_pairs_beyond_the_grid(monkeypatch):
    monkeypatch.setattr("symconv.codegen.cuda.matmul._MOST_GRID", 2)
    a, b = random((5, 65 + 3 * 64, 33), "float32"), random((5, 33, 3), "float32")
    np.testing.assert_allclose(run(MatMulTiles(), MatMul(), a, b)[0], a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)


def test_leading_axes_broadcast():
    a, b = random((2, 1, 4, 5), "float32"), random((1, 3, 5, 6), "float32")
    np.testing.assert_allclose(run(MatMulTiles(), MatMul(), a, b)[0], a.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
