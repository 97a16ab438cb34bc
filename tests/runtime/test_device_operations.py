"""Every op and its gradient on the emulator: generated CUDA, every access watched, against the NumPy references."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_every_gradient import CASES

import symconv as sc
import symconv.tensor as T
from symconv.errors import BackendError
from symconv.graph import Variable
from symconv.runtime.devices.find import find_device

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def watched(request):
    """The emulator, which watches every access here; CUDA where there is a GPU."""
    try:
        find_device(request.param)
    except BackendError as error:
        pytest.skip(" ".join(str(error).split()))
    return request.param


def compiled(build: Any, arrays: list[np.ndarray], **options: Any) -> Any:
    """The op's result and the gradients of the sum of its squares."""
    inputs = [T.tensor(f"x{number}", array.dtype, array.shape) for number, array in enumerate(arrays)]
    result = build(*inputs)
    gradients = sc.grad((result * result).sum(), inputs, disconnected_inputs="ignore")
    return sc.compile(inputs, [result, *gradients], on_unused_input="ignore", **options)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name, dtype, watched):
    build, points = CASES[name]
    arrays = [point.astype(dtype) for point in points]
    try:
        on_device = compiled(build, arrays, device=watched)
    except sc.UserError:
        if dtype == "float64":
            raise
        pytest.skip("the case mixes in float64 constants")
    wanted = compiled(build, arrays, mode="reference")(*arrays)
    for found, expected in zip(on_device(*arrays), wanted, strict=True):
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)


def test_nothing_but_generated_kernels_runs_a_training_step():
    rng = np.random.default_rng(0)
    x, labels = T.tensor4("x"), T.ivector("labels")
    filters = sc.shared(rng.normal(size=(4, 1, 3, 3)).astype(np.float32), name="filters")
    bias = sc.shared(np.zeros(4, np.float32), name="bias")
    weights = sc.shared((rng.normal(size=(4 * 9, 5)) * 0.1).astype(np.float32), name="weights")
    hidden = T.tanh(T.nnet.conv2d(x, filters) + bias.dimshuffle("x", 0, "x", "x"))
    pooled = T.signal.pool.pool_2d(hidden, (2, 2), ignore_border=True)
    loss = T.nnet.softmax_cross_entropy(T.dot(pooled.flatten(2), weights), labels).mean()
    parameters: list[Variable] = [filters, bias, weights]
    updates = [(each, each - 0.1 * gradient) for each, gradient in zip(parameters, sc.grad(loss, parameters), strict=True)]
    step = sc.compile([x, labels], loss, updates=updates, device="emulator")
    images, answers = rng.normal(size=(6, 1, 8, 8)).astype(np.float32), rng.integers(0, 5, 6).astype(np.int32)
    losses = [float(step(images, answers)) for _ in range(3)]
    assert losses[2] < losses[0]
    assert not [each.name for each in step.programs[-1].steps if each.kernel is None]
