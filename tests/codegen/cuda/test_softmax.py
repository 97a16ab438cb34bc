"""Softmax and its relatives on CUDA, on the checked emulator, against float64 formulas."""
from __future__ import annotations

import numpy as np
import pytest
from cuda_launching import run
from scipy import special

from symconv.codegen.cuda.softmax import SoftmaxRows
from symconv.ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad

SHAPES = [((5, 200), 1), ((5, 7), 1), ((70, 4, 3), 1), ((4,), 0), ((3, 1), 1), ((0, 5), 1), ((2, 129), 0)]
TOLERANCE = {"float64": 1e-13, "float32": 1e-6, "float16": 2e-3}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_values(shape, axis, dtype):
    rng = np.random.default_rng(0)
    x = (3 * rng.standard_normal(shape)).astype(dtype)
    wide = x.astype(np.float64)
    if x.size == 0:
        assert run(SoftmaxRows(), Softmax(axis), x)[0].shape == shape
        return
    tolerance = TOLERANCE[dtype]
    np.testing.assert_allclose(run(SoftmaxRows(), Softmax(axis), x)[0], special.softmax(wide, axis), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(run(SoftmaxRows(), LogSoftmax(axis), x)[0], special.log_softmax(wide, axis), rtol=10 * tolerance,
                               atol=10 * tolerance)


@pytest.mark.parametrize(("shape", "axis"), SHAPES[:5])
def test_gradients(shape, axis):
    rng = np.random.default_rng(0)
    gy, y = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    one, other = gy.astype(np.float64), y.astype(np.float64)
    wanted = (one - (one * other).sum(axis, keepdims=True)) * other
    np.testing.assert_allclose(run(SoftmaxRows(), SoftmaxGrad(axis), gy, y)[0], wanted, rtol=1e-4, atol=1e-4)
    wanted = one - np.exp(other) * one.sum(axis, keepdims=True)
    np.testing.assert_allclose(run(SoftmaxRows(), LogSoftmaxGrad(axis), gy, y)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [3, 100])
def test_infinities_and_nan(length):
    x = np.zeros((5, length), np.float32)
    x[0, 1], x[1, 1], x[2], x[3, 0] = np.inf, np.nan, -np.inf, -np.inf
    with np.errstate(all="ignore"):
        softmax, log_softmax = Softmax(1).reference(x)[0], LogSoftmax(1).reference(x)[0]
    np.testing.assert_allclose(run(SoftmaxRows(), Softmax(1), x)[0], softmax, rtol=1e-6)
    np.testing.assert_allclose(run(SoftmaxRows(), LogSoftmax(1), x)[0], log_softmax, rtol=1e-6)
