"""Gradients of convolutions in front of max pooling read what the pooling received."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rewriting import WILLING, bound, leaf, ops

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.graph import Op, Variable
from symconv.ops.lowered.pooled_convolution import PooledConv
from symconv.tensor import nnet


def estimate(op: Op, *_: Any) -> float:
    """Times for which the law always pays."""
    return 1.0e-6 if isinstance(op, PooledConv) else 1.0e-3


EAGER = replace(WILLING, estimate=estimate)
SHAPES = {"x": (2, 3, 10, 10), "w": (4, 3, 3, 3)}


def values(rng: np.random.Generator) -> dict[Variable, np.ndarray[Any, Any]]:
    return {leaf("float64", shape, name): rng.standard_normal(shape) for name, shape in SHAPES.items()}


def gradients(x: Variable, w: Variable, size: int = 2, stride: int = 2) -> tuple[Variable, list[Variable]]:
    """A loss of a convolution and a pooling, and its gradients; the loss has a weight for each window."""
    pooled = nnet.max_pool_2d(nnet.conv_fprop(x, w), size, stride)
    loss = (T.tanh(pooled) * T.arange(pooled.shape[-1])).sum()
    return loss, sc.grad(loss, [x, w])


def test_both_gradients_and_the_pooling_itself() -> None:
    given = values(np.random.default_rng(0))
    x, w = given
    loss, wanted = gradients(x, w)
    graph, found, log = bound(given, [loss, *wanted], EAGER)
    _, plain, _ = bound(given, [loss, *wanted], EAGER, exclude=["pooled_gradients"])
    names = ops(graph)
    assert sum(name.startswith("PooledConv") for name in names) == 2
    assert sum(name.startswith("PoolPlaces") for name in names) == 1
    assert not any(name.startswith(("Pool{", "MaxPoolGrad")) for name in names)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert "skip_zeros_of_pooling" in {each.rule for each in log.applications}


def test_what_is_read_elsewhere_or_overlaps_stays() -> None:
    given = values(np.random.default_rng(0))
    x, w = given
    _, wanted = gradients(x, w, size=3, stride=2)
    assert not any(name.startswith("PooledConv") for name in ops(bound(given, wanted, EAGER)[0]))
    y = nnet.conv_fprop(x, w)
    loss = (nnet.max_pool_2d(y, 2) ** 2).sum()
    assert not any(name.startswith("PooledConv") for name in ops(bound(given, sc.grad(loss, [x, w, y]), EAGER)[0]))
    *both, inner = sc.grad(loss, [x, w, y])  # read by the two convolutions, and by an exponential that wants the zeros
    assert not any(name.startswith("PooledConv") for name in ops(bound(given, [*both, T.exp(inner)], EAGER)[0]))


def test_it_is_done_where_it_pays_only() -> None:
    given = values(np.random.default_rng(0))
    x, w = given
    _, wanted = gradients(x, w)
    dear = replace(WILLING, estimate=lambda op, *_: 1.0 if isinstance(op, PooledConv) else 1.0e-3)
    graph, _, log = bound(given, wanted, dear)
    assert not any(name.startswith("PooledConv") for name in ops(graph))
    assert any("without zeros an estimated" in each.reason for each in log.skips)
    with config.change(conv__implementation="conv_direct"):
        assert not any(name.startswith("PooledConv") for name in ops(bound(given, wanted, EAGER)[0]))


@pytest.mark.parametrize("relu", [False, True])
def test_compiled_steps_are_those_of_the_reference(relu: bool) -> None:
    """The whole way, with a bias and perhaps relu before the pooling, 5×5 filters of 20 channels."""
    rng = np.random.default_rng(1)
    x, w, b = T.tensor4("x"), T.tensor4("w"), T.vector("b")
    y = nnet.conv_fprop(x, w) + b.dimshuffle("x", 0, "x", "x")
    pooled = nnet.max_pool_2d(nnet.relu(y) if relu else y, 2)
    loss = (T.tanh(pooled / 8) * T.arange(pooled.shape[-1]).astype("float32")).sum()
    outputs = [loss, *sc.grad(loss, [x, w, b])]
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((16, 20, 12, 12), (50, 20, 5, 5), (50,))]
    function = sc.compile([x, w, b], outputs)
    for found, wanted in zip(function(*arrays), sc.compile([x, w, b], outputs, mode="reference")(*arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)
    told = str(function.explain())
    for name in ("conv_wgrad_behind_pool", "conv_dgrad_behind_pool", "pool_places"):
        assert name in told
