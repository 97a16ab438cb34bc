"""Softmax, log-softmax and their gradients in C against SciPy and formulas in float64."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from kernel_runner import run_kernel

from symconv.codegen.softmax import GeneratedSoftmax
from symconv.ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad

C_KERNEL = GeneratedSoftmax()
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_against_scipy(dtype, axis):
    rng = np.random.default_rng(axis)
    whole = (rng.standard_normal((6, 70, 11)) * 5).astype(dtype)
    for x in (whole, whole[::2, ::-1, 2:].transpose(2, 0, 1)):
        wide = x.astype(np.float64)
        (y,) = run_kernel(C_KERNEL, Softmax(axis), x)
        np.testing.assert_allclose(y, scipy.special.softmax(wide, axis), rtol=TOLERANCE[dtype], atol=1e-7)
        (logs,) = run_kernel(C_KERNEL, LogSoftmax(axis), x)
        np.testing.assert_allclose(logs, scipy.special.log_softmax(wide, axis), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("axis", [0, 1])
def test_gradients(axis):
    rng = np.random.default_rng(9)
    x, gy = rng.standard_normal((2, 40, 33))
    y, logs = scipy.special.softmax(x, axis), scipy.special.log_softmax(x, axis)
    (gx,) = run_kernel(C_KERNEL, SoftmaxGrad(axis), gy, y)
    np.testing.assert_allclose(gx, y * (gy - (gy * y).sum(axis, keepdims=True)), rtol=1e-12, atol=1e-14)
    (gx,) = run_kernel(C_KERNEL, LogSoftmaxGrad(axis), gy, logs)
    np.testing.assert_allclose(gx, gy - np.exp(logs) * gy.sum(axis, keepdims=True), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", [0, 1])
def test_stable_and_special_rows(axis):
    """Large differences do not overflow; NaN, +∞ and all -∞ give what SciPy gives."""
    rows = np.array([[0, 1000], [300, -500], [np.nan, 1], [np.inf, 1], [-np.inf, -np.inf], [-np.inf, 0]], np.float32)
    x = rows if axis == 1 else np.ascontiguousarray(rows.T)
    (logs,) = run_kernel(C_KERNEL, LogSoftmax(axis), x)
    (y,) = run_kernel(C_KERNEL, Softmax(axis), x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(logs, scipy.special.log_softmax(x, axis), rtol=1e-6)
        np.testing.assert_allclose(y, scipy.special.softmax(x, axis), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (1,), (5, 1), (1, 5)])
def test_empty_and_single(shape):
    x = np.ones(shape, np.float32)
    for axis in range(len(shape)):
        (y,) = run_kernel(C_KERNEL, Softmax(axis), x)
        np.testing.assert_allclose(y, scipy.special.softmax(x, axis) if x.size else x)


def test_long_rows_keep_precision():
    x = np.random.default_rng(0).random((2, 500_000)).astype(np.float32)
    (y,) = run_kernel(C_KERNEL, Softmax(1), x)
    np.testing.assert_allclose(y, scipy.special.softmax(x.astype(np.float64), 1), rtol=1e-6)


@pytest.mark.parametrize("classes", [1, 2, 10, 32, 33])
@pytest.mark.parametrize("rows", [1, 15, 16, 500])
def test_short_rows(rows, classes):
    """Short rows are done together, one vector lane each; also strided ones, and with infinities."""
    rng = np.random.default_rng(4)
    whole = (rng.standard_normal((rows, 2 * classes)) * 20).astype("float32")
    whole[0, 0], whole[-1, -1] = -np.inf, np.inf
    gy = rng.standard_normal((rows, classes)).astype("float32")
    for x in (whole[:, :classes], whole[:, ::2]):
        with np.errstate(all="ignore"):
            logs, y = scipy.special.log_softmax(x.astype(np.float64), 1), scipy.special.softmax(x.astype(np.float64), 1)
            gradient = gy - np.exp(logs) * gy.sum(1, keepdims=True)
        np.testing.assert_allclose(run_kernel(C_KERNEL, LogSoftmax(1), x)[0], logs, rtol=3e-6, atol=3e-6)
        np.testing.assert_allclose(run_kernel(C_KERNEL, Softmax(1), x)[0], y, rtol=3e-6, atol=1e-7)
        (found,) = run_kernel(C_KERNEL, LogSoftmaxGrad(1), gy, logs.astype("float32"))
        np.testing.assert_allclose(found, gradient, rtol=2e-5, atol=2e-5)
