"""Positions of maxima and minima by generated CUDA on the emulator, against NumPy."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import run

from symconv.codegen.cuda.arg_reductions import CudaArgReduction
from symconv.ops.reductions import ArgReduce

IMPLEMENTATION = CudaArgReduction()


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((1, 3), 0), ((5, 40), 1), ((5, 40), 0), ((3, 4, 5), 1), ((2, 3000), 1),
                                             ((3000,), 0), ((1,), 0), ((4, 1, 3), 1)])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_first_of_equal_values(kind, shape, axis, checked):
    x = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
    (found,) = run(IMPLEMENTATION, ArgReduce(kind, axis), x, checked=checked)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, getattr(np, kind)(x, axis=axis))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_dtypes(dtype, axis):
    x = np.random.default_rng(2).integers(0, 2 if dtype == "bool" else 100, (6, 50)).astype(dtype)
    for kind in ("argmax", "argmin"):
        (found,) = run(IMPLEMENTATION, ArgReduce(kind, axis), x)
        np.testing.assert_array_equal(found, getattr(np, kind)(x, axis=axis))


@pytest.mark.parametrize("places", [(0,), (33, 900), (1999,), (64, 32, 5)])
def test_the_first_nan_wins(places):
    x = np.random.default_rng(3).normal(size=2000).astype(np.float32)
    x[list(places)] = np.nan
    for kind in ("argmax", "argmin"):
        assert run(IMPLEMENTATION, ArgReduce(kind, 0), x, checked=False)[0] == min(places)


def test_infinities_lose_to_nothing_smaller():
    x = np.array([[-np.inf] * 40, [np.inf] * 40], np.float32)
    for kind in ("argmax", "argmin"):
        np.testing.assert_array_equal(run(IMPLEMENTATION, ArgReduce(kind, 1), x)[0], [0, 0])


def test_strides():
    x = np.random.default_rng(4).integers(0, 9, (20, 30)).astype(np.float32)
    for view, axis in ((x[::-1, ::2], 0), (x[::-1, ::-3], 1), (x.T, 0), (np.broadcast_to(x[:1], (4, 30)), 0)):
        np.testing.assert_array_equal(run(IMPLEMENTATION, ArgReduce("argmax", axis), view)[0], view.argmax(axis))
