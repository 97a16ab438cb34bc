"""Pooling on CUDA, on the checked emulator, against the plain NumPy references."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import run

from symconv.codegen.cuda.pooling import AveragePoolSpread, MaxPoolWinners, PoolWindows
from symconv.ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from symconv.ops.pooling import MODES, AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool

POOLS = [
    ((2, 2), (2, 2), (0, 0), (0, 0), True),
    ((3, 2), (2, 1), (1, 0), (1, 1), True),
    ((3, 3), (2, 2), (0, 0), (0, 0), False),
    ((4,), (3,), (2,), (1,), True),
    ((2, 3, 2), (1, 2, 2), (0, 1, 1), (1, 1, 0), False),
    ((2, 2), (3, 3), (0, 0), (0, 0), False),
]


def image(rank, dtype="float32", size=7):
    values = np.random.default_rng(0).integers(-3, 4, (2, 3, *range(size, size - rank, -1))).astype(dtype)
    if dtype == "float32":
        values.flat[5] = np.nan
    return values


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pool", POOLS)
def test_values(pool, mode):
    op = Pool(mode, *pool)
    x = image(op.rank)
    np.testing.assert_allclose(run(PoolWindows(), op, x)[0], op.reference(x)[0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "int64"])
@pytest.mark.parametrize("mode", ["max", "sum"])
def test_dtypes(dtype, mode):
    op = Pool(mode, *POOLS[1])
    x = np.abs(image(2, "float64")).astype(dtype) if dtype == "uint8" else image(2, "float64").astype(dtype)
    found = run(PoolWindows(), op, x)[0]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, op.reference(x)[0])


@pytest.mark.parametrize("pool", POOLS)
def test_gradients(pool):
    rng = np.random.default_rng(1)
    largest = Pool("max", *pool)
    x = image(largest.rank)
    shape = largest.reference(x)[0].shape
    gz, v = rng.standard_normal(shape).astype(np.float32), rng.standard_normal(x.shape).astype(np.float32)
    for op, second in ((MaxPoolGrad(largest), gz), (MaxPoolGather(largest), v)):
        np.testing.assert_allclose(run(MaxPoolWinners(), op, x, second)[0], op.reference(x, second)[0], rtol=1e-6)
    for mode in MODES[1:]:
        op = AveragePoolGrad(Pool(mode, *pool), x.shape)
        sizes = np.array(x.shape)
        np.testing.assert_allclose(run(AveragePoolSpread(), op, gz, sizes)[0], op.reference(gz, sizes)[0], rtol=1e-5, atol=1e-6)


def test_empty_images_and_windows():
    op = Pool("max", *POOLS[0])
    assert run(PoolWindows(), op, np.zeros((0, 3, 4, 4), np.float32))[0].shape == (0, 3, 2, 2)
    x = np.ones((2, 3, 1, 4), np.float32)
    gradient = run(MaxPoolWinners(), MaxPoolGrad(op), x, np.zeros((2, 3, 0, 2), np.float32))[0]
    np.testing.assert_array_equal(gradient, np.zeros_like(x))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pool", POOLS)
def test_channels_last(pool, mode):
    op = Pool(mode, *pool)
    x = np.concatenate([image(op.rank), image(op.rank)[:, ::-1]], axis=1)
    wanted = op.reference(x)[0]
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    found = run(PoolWindows(), BlockedPool(op), last)[0]
    np.testing.assert_allclose(np.moveaxis(found, -1, 1), wanted, rtol=1e-6)
    gz = np.random.default_rng(1).standard_normal(wanted.shape).astype(np.float32)
    gz_last = np.ascontiguousarray(np.moveaxis(gz, 1, -1))
    gradient = BlockedPoolGrad(op, x.shape[2:])
    if mode == "max":
        wanted = MaxPoolGrad(op).reference(x, gz)[0]
        found = run(MaxPoolWinners(), gradient, last, gz_last)[0]
    else:
        wanted = AveragePoolGrad(op, x.shape).reference(gz, np.array(x.shape))[0]
        found = run(AveragePoolSpread(), gradient, gz_last)[0]
    np.testing.assert_allclose(np.moveaxis(found, -1, 1), wanted, rtol=1e-5, atol=1e-6)
