"""Pooling in blocks of channels against loops over windows in float64."""
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernel_runner import make_problem, run_kernel

from symconv.codegen.pooling import PoolBlocks
from symconv.ops.layout import array_from_blocked, array_to_blocked
from symconv.ops.lowered.blocked_pooling import BlockedPool
from symconv.ops.pooling import Pool
from symconv.target import Target

Array = np.ndarray[Any, Any]
POOLS = [
    Pool("max", (3, 3), (2, 2), (1, 1), (1, 1)),
    Pool("max", (2, 3), (1, 4), (0, 2), (1, 0)),
    Pool("max", (2, 2), (2, 2), (0, 0), (0, 0), ignore_border=False),
    Pool("sum", (3, 2), (1, 2), (1, 0), (0, 1)),
    Pool("average_exc_pad", (3, 3), (2, 2), (1, 1), (1, 1)),
    Pool("average_inc_pad", (3, 3), (2, 3), (1, 2), (2, 1)),
    Pool("average_exc_pad", (2, 2), (3, 3), (0, 0), (0, 0), ignore_border=False),
]


def _pooled(pool: Pool, x: Array) -> Array:
    """Window by window; of the padded image, elements outside the image count for `average_inc_pad` only."""
    shape = pool.output_shape(x.shape)
    result = np.zeros([size or 0 for size in shape])
    for place in itertools.product(*map(range, result.shape[2:])):
        spans = [(p * u - lo, p * u - lo + w) for p, u, lo, w in zip(place, pool.stride, pool.pad_lo, pool.window, strict=True)]
        window = x[(..., *(slice(max(a, 0), min(b, size)) for (a, b), size in zip(spans, x.shape[2:], strict=True)))]
        values = window.reshape(*x.shape[:2], -1).astype(np.float64)
        count = values.shape[-1]
        if pool.mode == "average_inc_pad":
            count = int(np.prod([min(b, size + hi) - max(a, -lo) for (a, b), size, lo, hi in zip(
                spans, x.shape[2:], pool.pad_lo, pool.pad_hi, strict=True)]))
        result[(..., *place)] = (values.max(-1) if pool.mode == "max" else values.sum(-1) / (1 if pool.mode == "sum" else count))
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_every_mode(pool: Pool, dtype: str) -> None:
    x = np.random.default_rng(2).standard_normal((2, 16, 9, 11)).astype(dtype)
    blocked = np.ascontiguousarray(array_to_blocked(x, 8))
    for threads in (1, 2):
        (found,) = run_kernel(PoolBlocks(), BlockedPool(pool), blocked, threads=threads)
        assert found.dtype == dtype
        np.testing.assert_allclose(array_from_blocked(found, 8), _pooled(pool, x), rtol=2e-6, atol=2e-6)
    reference = array_from_blocked(BlockedPool(pool).reference(blocked)[0], 8)
    np.testing.assert_allclose(reference, _pooled(pool, x), rtol=2e-6, atol=2e-6)


def test_nan_and_infinities_are_kept() -> None:
    x = np.random.default_rng(2).standard_normal((1, 8, 6, 6)).astype("float32")
    x[0, 3, 2, 2], x[0, 4, 1, 1], x[0, 5] = np.nan, np.inf, -np.inf
    (found,) = run_kernel(PoolBlocks(), BlockedPool(POOLS[0]), np.ascontiguousarray(array_to_blocked(x, 8)))
    np.testing.assert_array_equal(array_from_blocked(found, 8), _pooled(POOLS[0], x))
    assert np.isnan(found).any()


def test_integers_are_refused() -> None:
    problem = make_problem(BlockedPool(POOLS[0]), np.zeros((1, 1, 5, 5, 8), "int32"))
    assert "int32" in str(PoolBlocks().refuse(problem, Target()))
