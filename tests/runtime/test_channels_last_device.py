"""A training step in half precision on a device: tensor cores with channels last, the values of the NumPy references."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.graph import Variable
from symconv.tensor import nnet

RNG = np.random.default_rng(7)
KINDS = (": fprop", ": dgrad", ": wgrad")


def weights(*shape: int) -> Any:
    return sc.shared((RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("float16"), shape=shape)


def step() -> tuple[Variable, list[Variable]]:
    """Two 3x3 convolutions with a residual, a pool and a 1x1 convolution; the loss and the gradients of all weights."""
    x = T.tensor("x", "float16", (2, 16, 10, 10))
    filters, bias = [weights(32, 16, 3, 3), weights(32, 32, 3, 3), weights(16, 32, 1, 1)], weights(32, 1).get_value()[:, 0]
    b = sc.shared(bias, name="b", shape=(32,))
    h = nnet.relu(nnet.conv2d(x, filters[0], border_mode=1) + b.dimshuffle("x", 0, "x", "x"))
    h = nnet.max_pool_2d(nnet.relu(h + nnet.conv2d(h, filters[1], border_mode=1)), (2, 2))
    loss = (nnet.conv2d(h, filters[2]).mean(axis=(2, 3)) ** 2).sum()
    return x, [loss, *sc.grad(loss, [*filters, b])]


@pytest.mark.parametrize("layout", ["auto", "always", "off"])
def test_a_training_step_in_half_precision(layout: str) -> None:
    x, outputs = step()
    image = RNG.standard_normal((2, 16, 10, 10)).astype("float16")
    wanted = sc.compile([x], outputs, mode="reference")(image)
    with config.change(layout=layout, emulator__checked=False):
        function = sc.compile([x], outputs, device="emulator")
        found = function(image)
    for result, reference in zip(found, wanted, strict=True):
        scale = float(abs(np.float32(reference)).max())
        np.testing.assert_allclose(np.float32(result), np.float32(reference), rtol=4e-3, atol=4e-3 * scale)
    text = function.explain()
    assert "conv_tensor" in text
    problems = [line for line in text.splitlines() if line.startswith("  step ") and any(word in line for word in KINDS)]
    assert len(problems) == 3 + 2 + 3
    assert all(("nhwc" in line) == (layout != "off") for line in problems)
