"""Fifty steps of training, compiled, equal the same net written out in NumPy: forward pass, gradients and updates."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet

Array = np.ndarray[Any, Any]
STEPS, BATCH, SIZE, CLASSES = 50, 16, 10, 4
RATE, MOMENTUM, EPSILON, FACTOR = 0.02, 0.9, 1e-4, 0.1
TOLERANCES = {"float32": 1e-4, "float64": 1e-9}
MODES = ("fast_run", "reference")


# ---------------------------------------------------------------------------------------------------------------------
# The net in NumPy, float64: each layer returns its result and its backward pass


def plain_conv(x: Array, w: Array) -> tuple[Array, Any]:
    """True convolution of (N, C, H, W) with (K, C, k, k), "valid"."""
    k = w.shape[2]
    flipped = w[:, :, ::-1, ::-1]
    windows = sliding_window_view(x, (k, k), axis=(2, 3))
    y = np.einsum("nchwij,kcij->nkhw", windows, flipped)

    def backward(gy: Array) -> tuple[Array, Array]:
        gw = np.einsum("nchwij,nkhw->kcij", windows, gy)[:, :, ::-1, ::-1]
        padded = np.pad(gy, ((0, 0), (0, 0), (k - 1, k - 1), (k - 1, k - 1)))
        gx = np.einsum("nkhwij,kcij->nchw", sliding_window_view(padded, (k, k), axis=(2, 3)), w)
        return gx, gw

    return y, backward


def plain_max_pool(x: Array) -> tuple[Array, Any]:
    """Largest of every 2 × 2 window; the gradient goes to the first in row-major order."""
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
    first = windows.argmax(axis=4)[..., None]

    def backward(gy: Array) -> Array:
        g = np.zeros_like(windows)
        np.put_along_axis(g, first, gy[..., None], axis=4)
        return g.reshape(n, c, h // 2, w // 2, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)

    return np.take_along_axis(windows, first, axis=4)[..., 0], backward


def plain_cross_entropy(scores: Array, labels: Array) -> tuple[float, Array]:
    """The mean cross-entropy of a softmax and its gradient."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    gradient = np.exp(logarithms)
    gradient[rows, labels] -= 1
    return float(-logarithms[rows, labels].mean()), gradient / len(labels)


def plain_batch_norm(x: Array, gamma: Array, beta: Array) -> tuple[Array, Array, Array, Any]:
    """Normalised by channel; also the mean and the biased variance of the batch."""
    axes, count = (0, 2, 3), x[:, 0].size
    mean, var = x.mean(axes), x.var(axes)
    scale = 1 / np.sqrt(var + EPSILON)
    normal = (x - mean[:, None, None]) * scale[:, None, None]

    def backward(gy: Array) -> tuple[Array, Array, Array]:
        ggamma, gbeta = (gy * normal).sum(axes), gy.sum(axes)
        inner = count * gy - gbeta[:, None, None] - normal * ggamma[:, None, None]
        return (gamma * scale / count)[:, None, None] * inner, ggamma, gbeta

    return normal * gamma[:, None, None] + beta[:, None, None], mean, var, backward


@dataclass
class PlainNet:
    """Two convolutions (relu, tanh), each followed by max-pooling where it fits, and two dense layers."""

    state: dict[str, Array]
    with_norm: bool
    velocity: dict[str, Array] = field(default_factory=dict)

    def step(self, images: Array, labels: Array, mask: Array | None) -> float:
        """One step of momentum SGD; the loss before it."""
        s, g = self.state, {}
        c1, back_c1 = plain_conv(images, s["W1"])
        if self.with_norm:
            a1, mean, var, back_norm = plain_batch_norm(c1, s["gamma"], s["beta"])
        else:
            a1 = c1 + s["b1"][:, None, None]
        r1 = np.maximum(a1, 0)
        p1, back_p1 = plain_max_pool(r1)
        c2, back_c2 = plain_conv(p1, s["W2"])
        t2 = np.tanh(c2 + s["b2"][:, None, None])
        p2, back_p2 = plain_max_pool(t2)
        flat = p2.reshape(len(p2), -1)
        dense = np.maximum(flat @ s["W3"] + s["b3"], 0)
        dropped = dense if mask is None else dense * mask
        loss, gscores = plain_cross_entropy(dropped @ s["W4"] + s["b4"], labels)

        g["W4"], g["b4"] = dropped.T @ gscores, gscores.sum(0)
        gdense = gscores @ s["W4"].T
        gdense = (gdense if mask is None else gdense * mask) * (dense > 0)
        g["W3"], g["b3"] = flat.T @ gdense, gdense.sum(0)
        gt2 = back_p2((gdense @ s["W3"].T).reshape(p2.shape)) * (1 - t2 ** 2)
        g["b2"] = gt2.sum((0, 2, 3))
        gp1, g["W2"] = back_c2(gt2)
        ga1 = back_p1(gp1) * (a1 > 0)
        if self.with_norm:
            gc1, g["gamma"], g["beta"] = back_norm(ga1)
            count = c1[:, 0].size
            s["running_mean"] = (1 - FACTOR) * s["running_mean"] + FACTOR * mean
            s["running_var"] = (1 - FACTOR) * s["running_var"] + FACTOR * var * count / (count - 1)
        else:
            gc1, g["b1"] = ga1, ga1.sum((0, 2, 3))
        _, g["W1"] = back_c1(gc1)
        for name, gradient in g.items():
            self.velocity[name] = MOMENTUM * self.velocity.get(name, 0) - RATE * gradient
            s[name] = s[name] + self.velocity[name]
        return loss


# ---------------------------------------------------------------------------------------------------------------------
# The same net in symconv


def start_state(with_norm: bool) -> dict[str, Array]:
    """The first weights, float32 numbers so that every dtype starts from the same point."""
    generator = np.random.default_rng(3)
    shapes = {"W1": (4, 2, 3, 3), "W2": (6, 4, 3, 3), "b2": (6,), "W3": (6, 12), "b3": (12,),
              "W4": (12, CLASSES), "b4": (CLASSES,)}
    state = {name: generator.normal(0, 0.4, shape) for name, shape in shapes.items()}
    if with_norm:
        state |= {"gamma": generator.uniform(0.5, 1.5, 4), "beta": generator.normal(0, 0.3, 4),
                  "running_mean": np.zeros(4), "running_var": np.ones(4)}
    else:
        state["b1"] = generator.normal(0, 0.3, 4)
    return {name: array.astype("float32").astype("float64") for name, array in state.items()}


def compiled_net(state: dict[str, Array], dtype: str, mode: str, with_norm: bool,
                 with_mask: bool) -> tuple[sc.Function, dict[str, sc.SharedVariable]]:
    """A function of a batch that makes one step and returns the loss, and the state that it updates."""
    shared = {name: sc.shared(array.astype(dtype), name) for name, array in state.items()}
    images, labels, mask = T.tensor4("images", dtype=dtype), T.lvector("labels"), T.matrix("mask", dtype=dtype)
    updates: list[tuple[sc.SharedVariable, Any]] = []
    h = nnet.conv2d(images, shared["W1"])
    if with_norm:
        h, _, _, mean, var = nnet.batch_normalization_train(
            h, shared["gamma"], shared["beta"], "spatial", EPSILON, FACTOR, shared["running_mean"], shared["running_var"])
        updates += [(shared["running_mean"], mean), (shared["running_var"], var)]
    else:
        h = h + shared["b1"].dimshuffle("x", 0, "x", "x")
    h = nnet.max_pool_2d(nnet.relu(h), 2)
    h = T.tanh(nnet.conv2d(h, shared["W2"]) + shared["b2"].dimshuffle("x", 0, "x", "x"))
    h = nnet.max_pool_2d(h, 2).flatten(2)
    h = nnet.relu(T.dot(h, shared["W3"]) + shared["b3"])
    if with_mask:
        h = h * mask
    loss = nnet.softmax_cross_entropy(T.dot(h, shared["W4"]) + shared["b4"], labels).mean()
    trained = [variable for name, variable in shared.items() if not name.startswith("running")]
    for variable, gradient in zip(trained, sc.grad(loss, trained), strict=True):
        velocity = sc.shared(np.zeros_like(variable.get_value()))
        moved = MOMENTUM * velocity - RATE * gradient
        updates += [(velocity, moved), (variable, variable + moved)]
    inputs = [images, labels, mask] if with_mask else [images, labels]
    return sc.compile(inputs, loss, updates=updates, mode=mode), shared


def batches() -> list[tuple[Array, Array, Array]]:
    """Five batches in turn; the class of an image decides which quarter is bright. Masks drop a third of the dense layer."""
    generator = np.random.default_rng(4)
    result = []
    for _ in range(5):
        labels = generator.integers(0, CLASSES, BATCH)
        images = generator.normal(0, 1, (BATCH, 2, SIZE, SIZE))
        for image, label in zip(images, labels, strict=True):
            image[:, 5 * (label // 2):5 * (label // 2) + 5, 5 * (label % 2):5 * (label % 2) + 5] += 2
        mask = (generator.random((BATCH, 12)) < 2 / 3) * 1.5
        result.append((images.astype("float32").astype("float64"), labels, mask))
    return [result[step % 5] for step in range(STEPS)]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("extras", ["plain", "norm_and_dropout"])
def test_training_equals_numpy(mode: str, dtype: str, extras: str) -> None:
    with_extras = extras != "plain"
    plain = PlainNet(start_state(with_extras), with_extras)
    train, shared = compiled_net(plain.state, dtype, mode, with_extras, with_extras)
    losses = []
    for images, labels, mask in batches():
        given = (images, labels, mask) if with_extras else (images, labels)
        found = train(*(array.astype(dtype) if array.dtype == np.float64 else array for array in given))
        wanted = plain.step(images, labels, mask if with_extras else None)
        losses.append(wanted)
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])
        assert found.dtype == dtype
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5]), "the net learns nothing, so the test shows little"
    for name, variable in shared.items():
        np.testing.assert_allclose(variable.get_value(), plain.state[name], rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype],
                                   err_msg=name)


def test_the_plain_gradients_are_right() -> None:
    """The oracle itself, against differences of its loss."""
    images, labels, mask = batches()[0]
    for with_norm in (False, True):
        start = start_state(with_norm)
        net = PlainNet(dict(start), with_norm)
        net.step(images, labels, mask)
        generator = np.random.default_rng(5)
        for name in net.velocity:
            index = tuple(int(generator.integers(size)) for size in start[name].shape)
            sides = []
            for sign in (1, -1):
                moved = {key: array.copy() for key, array in start.items()}
                moved[name][index] += sign * 1e-6
                sides.append(PlainNet(moved, with_norm).step(images, labels, mask))
            np.testing.assert_allclose(-net.velocity[name][index] / RATE, (sides[0] - sides[1]) / 2e-6, rtol=1e-5, atol=1e-8)


def test_training_equals_pytorch() -> None:
    torch = pytest.importorskip("torch")
    start = start_state(False)
    train, shared = compiled_net(start, "float64", "fast_run", False, False)
    weights = {name: torch.tensor(array, requires_grad=True) for name, array in start.items()}
    optimizer = torch.optim.SGD(list(weights.values()), lr=RATE, momentum=MOMENTUM)
    F = torch.nn.functional
    for images, labels, _ in batches():
        optimizer.zero_grad()
        h = F.max_pool2d(F.relu(F.conv2d(torch.tensor(images), weights["W1"].flip(2, 3), weights["b1"])), 2)
        h = F.max_pool2d(torch.tanh(F.conv2d(h, weights["W2"].flip(2, 3), weights["b2"])), 2).flatten(1)
        h = F.relu(h @ weights["W3"] + weights["b3"])
        loss = F.cross_entropy(h @ weights["W4"] + weights["b4"], torch.tensor(labels))
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(train(images, labels), loss.item(), rtol=1e-9)
    for name, variable in shared.items():
        np.testing.assert_allclose(variable.get_value(), weights[name].detach().numpy(), rtol=1e-9, atol=1e-9)
