"""Inference batch normalisation after a convolution vanishes into weights and bias that are made once for each state."""
from __future__ import annotations

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet

GENERATOR = np.random.default_rng(5)


def state(*shape, name):
    return sc.shared(GENERATOR.uniform(0.5, 1.5, shape), name)


@pytest.fixture
def parts():
    x = T.tensor4("x", "float64")
    w, statistics = state(6, 3, 3, 3, name="w"), [state(6, name=name) for name in ("gamma", "beta", "mean", "var")]
    y = nnet.relu(nnet.batch_normalization_test(nnet.conv2d(x, w, border_mode=1), *statistics, axes="spatial"))
    return x, w, statistics, y


def expected(x, w, statistics, image):
    """The same in NumPy, the convolution by the reference of a plain correlation."""
    gamma, beta, mean, var = (each.get_value()[:, None, None] for each in statistics)
    plain = sc.compile([x], nnet.conv2d(x, w, border_mode=1), mode="reference")(image)
    return np.maximum((plain - mean) * gamma / np.sqrt(var + 1e-4) + beta, 0)


def test_one_kernel_runs_on_a_call_and_the_state_is_followed(parts):
    x, w, statistics, y = parts
    function = sc.compile([x], y)
    image = GENERATOR.normal(size=(2, 3, 5, 6))
    np.testing.assert_allclose(function(image), expected(x, w, statistics, image), rtol=1e-9, atol=1e-9)
    (program,) = function.programs
    assert len(program.steps) - program.n_prepared == 1
    for each in (w, statistics[0], statistics[3]):
        each.set_value(GENERATOR.uniform(0.5, 1.5, each.get_value().shape))
        np.testing.assert_allclose(function(image), expected(x, w, statistics, image), rtol=1e-9, atol=1e-9)


def test_state_that_the_function_updates_stays_out_of_the_weights(parts):
    x, w, statistics, y = parts
    function = sc.compile([x], y, updates=[(statistics[3], statistics[3] * 1.5)])
    image = GENERATOR.normal(size=(1, 3, 4, 4))
    for _ in range(3):
        wanted = expected(x, w, statistics, image)
        np.testing.assert_allclose(function(image), wanted, rtol=1e-9, atol=1e-9)
