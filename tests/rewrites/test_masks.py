"""Masks of gradients: computed by the kernels that need them, in place of being stored. Values against NumPy written out."""
from __future__ import annotations

import numpy as np
import pytest
from rewriting import bound, leaf

import symconv.tensor as T
from symconv.graph.gradient import grad
from symconv.ops.convolution import Conv
from symconv.tensor import nnet

RNG = np.random.default_rng(3)
SHAPE = (8, 8, 40, 40)
x, w, v = leaf("float64", SHAPE, "x"), leaf("float64", (8, 8, 1, 1), "w"), leaf("float64", (8, 8, 1, 1), "v")
scale, shift = leaf("float64", (8,), "scale"), leaf("float64", (8,), "shift")
VALUES = {each: RNG.normal(size=each.type.shape) for each in (x, w, v, scale, shift)}
X, W, V, SCALE, SHIFT = VALUES.values()


def pixelwise(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
    return np.einsum("nchw,kc->nkhw", image, filters[:, :, 0, 0])


def stored_masks(graph) -> list[str]:
    """Every large bool variable that some kernel writes."""
    return [variable.label for node in graph.nodes for variable in node.outputs
            if variable.dtype == "bool" and variable.type.shape == SHAPE]


def normalised_by_hand(y: np.ndarray, limit: float) -> tuple[np.ndarray, ...]:
    """clip(batch normalisation) of y, and the gradients of 0.5 Σ (pixelwise(that, V))² in y, scale and shift."""
    axes, n = (0, 2, 3), y.size // y.shape[1]
    mean, var = y.mean(axes, keepdims=True), y.var(axes, keepdims=True)
    normal = (y - mean) / np.sqrt(var + 1e-5)
    before = normal * SCALE[:, None, None] + SHIFT[:, None, None]
    z = np.clip(before, 0, limit)
    above = pixelwise(pixelwise(z, V), V.transpose(1, 0, 2, 3))
    g = np.where((before >= 0) & (before <= limit), above, 0)
    gscale, gshift = (g * normal).sum(axes), g.sum(axes)
    gy = SCALE[:, None, None] / np.sqrt(var + 1e-5) * (g - gshift[:, None, None] / n - normal * gscale[:, None, None] / n)
    return z, gy, gscale, gshift


def test_clip_after_batch_normalisation_stores_no_mask() -> None:
    y = nnet.conv2d(x, w, filter_flip=False)
    z = T.clip(nnet.batch_normalization_train(y, scale, shift, "spatial", 1e-5)[0], 0, 1)
    loss = 0.5 * T.square(nnet.conv2d(z, v, filter_flip=False)).sum()
    graph, found, log = bound(VALUES, grad(loss, [w, scale, shift]))
    assert stored_masks(graph) == []
    assert not any(node.op.epilogue for node in graph.nodes if isinstance(node.op, Conv) and "where" in str(node.op))
    assert any("mask" in each.reason for each in log.skips)
    _, gy, gscale, gshift = normalised_by_hand(pixelwise(X, W), 1.0)
    for value, exact in zip(found, (np.einsum("nkhw,nchw->kc", gy, X)[:, :, None, None], gscale, gshift), strict=True):
        np.testing.assert_allclose(value, exact, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("activation", ["clip", "maximum", "relu"])
def test_a_mask_without_normalisation_is_computed_in_the_epilogue(activation: str) -> None:
    act = {"clip": lambda y: T.clip(y, -0.5, 0.5), "maximum": lambda y: T.maximum(y, 0.25), "relu": T.relu}[activation]
    low, high = {"clip": (-0.5, 0.5), "maximum": (0.25, np.inf), "relu": (0, np.inf)}[activation]
    y = nnet.conv2d(x, w, filter_flip=False)
    loss = 0.5 * T.square(nnet.conv2d(act(y), v, filter_flip=False)).sum()
    graph, found, _ = bound(VALUES, grad(loss, [w, x]))
    assert stored_masks(graph) == []
    assert sum("where" in str(node.op) for node in graph.nodes if isinstance(node.op, Conv)) == 1
    before = pixelwise(X, W)
    above = pixelwise(pixelwise(np.clip(before, low, high), V), V.transpose(1, 0, 2, 3))
    g = np.where((before > low if activation == "relu" else before >= low) & (before <= high), above, 0)
    np.testing.assert_allclose(found[0][:, :, 0, 0], np.einsum("nkhw,nchw->kc", g, X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1], pixelwise(g, W.transpose(1, 0, 2, 3)), rtol=1e-9, atol=1e-9)


def test_a_mask_of_two_tensors_stays_an_operand() -> None:
    y = nnet.conv2d(x, w, filter_flip=False)
    other = leaf("float64", SHAPE, "other")
    result = T.where(x > T.exp(other), y, 0)
    values = {**VALUES, other: RNG.normal(size=SHAPE)}
    graph, (found,), _ = bound(values, [result])
    assert len(stored_masks(graph)) == 1
    assert "where" in str(graph.nodes[-1].op)
    np.testing.assert_allclose(found, np.where(np.exp(values[other]) < X, pixelwise(X, W), 0), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["gt", "lt"])
def test_comparison_beyond_a_limit(name: str) -> None:
    """max(x, 0) > 6 is x > 6, but max(x, 6) > 0 is not x > 0 for negative x; NaN and the limits themselves included."""
    special = np.resize([np.nan, -1.0, -0.0, 0.0, 3.0, 6.0, 6.5, np.inf, -np.inf], SHAPE)
    cases = {"gt": [(0.0, 6.0), (6.0, 0.0), (6.0, 6.0)], "lt": [(6.0, 0.0), (0.0, 6.0), (0.0, 0.0)]}[name]
    for limit, bound_value in cases:
        limited = T.maximum(x, limit) if name == "gt" else T.minimum(x, limit)
        result = limited > bound_value if name == "gt" else limited < bound_value
        graph, (found,), _ = bound({x: special}, [result])
        by_numpy = np.maximum(special, limit) > bound_value if name == "gt" else np.minimum(special, limit) < bound_value
        np.testing.assert_array_equal(found, by_numpy)
        simpler = limit <= bound_value if name == "gt" else limit >= bound_value
        assert ("m" + ("aximum" if name == "gt" else "inimum") in str(graph.nodes[-1].op)) != simpler
