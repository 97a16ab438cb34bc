"""Convolutions in Theano's words: values, sizes, shape hints, transposed and separable forms, and errors."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from plain_convolution import Setting, plain_dgrad, plain_fprop, plain_wgrad
from support import evaluate

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.ops.constants import constant
from symconv.tensor import nnet
from symconv.tensor.nnet import conv2d

Array = np.ndarray[Any, Any]


def value(x: Variable) -> Array:
    return evaluate([x])[0]


def variable(name: str, *shape: int | None, dtype: str = "float64") -> Variable:
    return Variable(TensorType(dtype, shape), name)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def test_seed_program_batches() -> None:
    X, W = T.tensor4("X"), T.tensor4("W")
    conv_out = conv2d(X, W)
    f = sc.function(inputs=[X, W], outputs=conv_out)
    x, w = normal(10, 3, 32, 32).astype(np.float32), normal(16, 3, 3, 3).astype(np.float32)
    setting = Setting(10, 3, (32, 32), 16, (3, 3), (1, 1), (1, 1), "valid", 1, True)
    found = f(x, w)
    assert (found.shape, found.dtype) == ((10, 16, 30, 30), np.float32)
    np.testing.assert_allclose(found, plain_fprop(x.astype(float), w.astype(float), setting), rtol=1e-4, atol=1e-4)


def test_seed_program_shared_state() -> None:
    x, w = normal(2, 3, 8, 8).astype(np.float32), normal(4, 3, 3, 3).astype(np.float32)
    X_shared, W_shared = sc.shared(x), sc.shared(w)
    f = sc.function(inputs=[], outputs=conv2d(X_shared, W_shared))
    setting = Setting(2, 3, (8, 8), 4, (3, 3), (1, 1), (1, 1), "valid", 1, True)
    np.testing.assert_allclose(f(), plain_fprop(x.astype(float), w.astype(float), setting), rtol=1e-4, atol=1e-4)
    X_shared.set_value(2 * x)
    W_shared.set_value(w[::-1])
    np.testing.assert_allclose(f(), plain_fprop(2.0 * x, w[::-1].astype(float), setting), rtol=1e-4, atol=1e-4)


def test_the_flip_is_the_default_and_can_be_left_out() -> None:
    image, kernel = constant(np.arange(9.0).reshape(1, 1, 3, 3)), constant(np.array([[[[1.0, 2], [3, 4]]]]))
    np.testing.assert_array_equal(value(conv2d(image, kernel))[0, 0], [[13, 23], [43, 53]])
    np.testing.assert_array_equal(value(conv2d(image, kernel, filter_flip=False))[0, 0], [[27, 37], [57, 67]])


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("mode", ["valid", "full", "half", "same", "same_lower", "causal", 2, "pairs"])
def test_every_rank_and_mode(ndim: int, mode: Any) -> None:
    if mode == "pairs":
        mode = ((1, 0), (0, 2), (1, 1))[:ndim]
    setting = Setting(2, 4, (6, 5, 4)[:ndim], 6, (3, 2, 2)[:ndim], (2, 1, 2)[:ndim], (1, 2, 1)[:ndim], mode, 2, True)
    x, w = normal(2, 4, *setting.image), normal(6, 2, *setting.kernel, seed=1)
    function = {1: nnet.conv1d, 2: nnet.conv2d, 3: nnet.conv3d}[ndim]
    found = value(function(x, w, border_mode=mode, subsample=setting.stride, filter_dilation=setting.dilation, num_groups=2))
    np.testing.assert_allclose(found, plain_fprop(x, w, setting), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_with_respect_to_inputs_and_weights(ndim: int) -> None:
    setting = Setting(2, 4, (7, 6, 5)[:ndim], 6, (3, 2, 2)[:ndim], (2, 1, 2)[:ndim], (1, 2, 1)[:ndim], "half", 2, True)
    x, w = normal(2, 4, *setting.image), normal(6, 2, *setting.kernel, seed=1)
    u = normal(*plain_fprop(x, w, setting).shape, seed=2)
    inputs = getattr(nnet, f"conv{ndim}d_grad_wrt_inputs")
    weights = getattr(nnet, f"conv{ndim}d_grad_wrt_weights")
    words = {"border_mode": "half", "subsample": setting.stride, "filter_dilation": setting.dilation, "num_groups": 2}
    np.testing.assert_allclose(value(inputs(u, w, x.shape, w.shape, **words)), plain_dgrad(u, w, setting), rtol=1e-10)
    np.testing.assert_allclose(value(weights(x, u, w.shape, x.shape, **words)), plain_wgrad(x, u, setting), rtol=1e-10)


def test_symbolic_shapes_of_gradients() -> None:
    x, w, u = variable("x", None, None, None), variable("w", None, None, None), variable("u", None, None, None)
    gx = nnet.conv1d_grad_wrt_inputs(u, w, x.shape, subsample=2)
    gw = nnet.conv1d_grad_wrt_weights(x, u, w.shape, subsample=2)
    setting = Setting(2, 3, (8,), 4, (3,), (2,), (1,), "valid", 1, True)
    values = {x: normal(2, 3, 8), w: normal(4, 3, 3, seed=1), u: normal(2, 4, 3, seed=2)}
    found = evaluate([gx, gw], values)
    np.testing.assert_allclose(found[0], plain_dgrad(values[u], values[w], setting), rtol=1e-10)
    np.testing.assert_allclose(found[1], plain_wgrad(values[x], values[u], setting), rtol=1e-10)


def test_transposed_sizes() -> None:
    image, filters = np.ones((1, 4, 50)), np.ones((4, 2, 3))
    words = {"border_mode": 4, "input_dilation": 2, "filter_dilation": 3}
    assert nnet.conv1d_transpose(image, filters, **words).type.shape == (1, 2, 97)
    assert nnet.conv1d_transpose(image, filters, **words, output_padding=1).type.shape == (1, 2, 98)
    assert nnet.conv1d_transpose(image, filters, (98,), **words).type.shape == (1, 2, 98)
    assert nnet.conv1d_transpose(image, filters, (None, None, 98), **words).type.shape == (1, 2, 98)
    assert nnet.conv1d_transpose(image, filters, border_mode="same", input_dilation=3).type.shape == (1, 2, 150)
    x, w = variable("x", None, 4, None), variable("w", 4, 2, None)
    for mode in ("half", "full", "causal", "same", 1):
        result = nnet.conv1d_transpose(x, w, border_mode=mode, input_dilation=2)
        for kernel in (3, 4):
            (found,) = evaluate([result], {x: normal(1, 4, 9), w: normal(4, 2, kernel)})
            pads = {"half": kernel // 2 * 2, "full": 2 * (kernel - 1), "causal": kernel - 1, 1: 2, "same": kernel - 2}[mode]
            assert found.shape == (1, 2, 8 * 2 - pads + kernel)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_transposed_convolution_is_the_adjoint(ndim: int) -> None:
    forward, transposed = getattr(nnet, f"conv{ndim}d"), getattr(nnet, f"conv{ndim}d_transpose")
    shape = (2, 4, *(7, 6, 5)[:ndim])
    x, w = normal(*shape), normal(6, 2, *(3, 2, 2)[:ndim], seed=1)
    for mode in ("valid", "half", "same", 1):
        y = value(forward(x, w, border_mode=mode, subsample=(2,) * ndim, num_groups=2))
        u = normal(*y.shape, seed=3)
        for output_shape in (shape, shape[2:], (None, None, *shape[2:])):
            back = value(transposed(u, w, output_shape, border_mode=mode, input_dilation=(2,) * ndim, num_groups=2))
            assert back.shape == shape
            assert np.isclose((back * x).sum(), (u * y).sum(), rtol=1e-10)


def test_depthwise_with_a_multiplier() -> None:
    x, w = normal(2, 3, 6, 5), normal(6, 1, 3, 3, seed=1)
    wanted = np.concatenate([plain_fprop(x[:, c:c + 1], w[2 * c:2 * c + 2],
                                         Setting(2, 1, (6, 5), 2, (3, 3), (2, 1), (1, 1), "half", 1, True))
                             for c in range(3)], axis=1)
    np.testing.assert_allclose(value(nnet.depthwise_conv2d(x, w, border_mode="half", subsample=(2, 1))), wanted, rtol=1e-10)
    unknown = variable("x", None, None, None, None)
    found = evaluate([nnet.depthwise_conv2d(unknown, w, border_mode="half", subsample=(2, 1), num_channels=3)], {unknown: x})
    np.testing.assert_allclose(found[0], wanted, rtol=1e-10)
    with pytest.raises(ShapeError, match="needs the number of channels"):
        nnet.depthwise_conv2d(unknown, w)
    assert nnet.depthwise_conv1d(np.ones((1, 3, 5)), np.ones((3, 1, 2))).type.shape == (1, 3, 4)
    assert nnet.depthwise_conv3d(np.ones((1, 3, 5, 5, 5)), np.ones((3, 1, 2, 2, 2))).type.shape == (1, 3, 4, 4, 4)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_separable(ndim: int) -> None:
    image, kernel = (6, 5, 4)[:ndim], (3, 2, 2)[:ndim]
    x, w, p = normal(2, 3, *image), normal(6, 1, *kernel, seed=1), normal(5, 6, *(1,) * ndim, seed=2)
    one, two = (1,) * ndim, (2,) * ndim
    between = plain_fprop(x, w, Setting(2, 3, image, 6, kernel, two, one, "half", 3, True))
    wanted = np.einsum("nc...,kc->nk...", between, p.reshape(5, 6))
    found = value(getattr(nnet, f"separable_conv{ndim}d")(x, w, p, 3, border_mode="half", subsample=two))
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
    with pytest.raises(ShapeError, match="pointwise filters have kernels of size 1"):
        getattr(nnet, f"separable_conv{ndim}d")(x, w, normal(5, 6, *two), 3)


def test_causal_convolution_does_not_look_ahead() -> None:
    x, w = normal(1, 2, 9), normal(3, 2, 3, seed=1)
    before = value(nnet.causal_conv1d(x, w, filter_dilation=2))
    assert before.shape == (1, 3, 9)
    setting = Setting(1, 2, (9,), 3, (3,), (1,), (2,), [(4, 0)], 1, True)
    np.testing.assert_allclose(before, plain_fprop(x, w, setting), rtol=1e-10)
    x[:, :, 5:] = np.nan
    after = value(nnet.causal_conv1d(x, w, w.shape, filter_dilation=2))
    np.testing.assert_array_equal(after[:, :, :5], before[:, :, :5])


def test_shape_hints_give_static_shapes_and_are_checked_on_every_call() -> None:
    x, w = variable("x", None, None, None, None), variable("w", None, None, None, None)
    y = conv2d(x, w, input_shape=(None, 3, 8, T.constant(9)), filter_shape=(4, 3, 3, 3))
    assert y.type.shape == (None, 4, 6, 7)
    good = {x: normal(2, 3, 8, 9), w: normal(4, 3, 3, 3)}
    assert evaluate([y], good)[0].shape == (2, 4, 6, 7)
    text = "was said to have the shape (?, 3, 8, 9)\n  found: it has the shape (2, 3, 9, 8)"
    with pytest.raises(ShapeError, match=re.escape(text)):
        evaluate([y], {**good, x: normal(2, 3, 9, 8)})


def test_shape_hints_that_are_wrong() -> None:
    x, w = variable("x", None, 3, 8, 8), variable("w", 4, 3, 3, 3)
    text = "input_shape contradicts the shape of x\n  found: input_shape (?, 3, 9, 8), x has the shape (?, 3, 8, 8)"
    with pytest.raises(ShapeError, match=re.escape(text)):
        conv2d(x, w, input_shape=(None, 3, 9, 8))
    with pytest.raises(ArgumentError, match="filter_shape must have 4 elements"):
        conv2d(x, w, filter_shape=(4, 3, 3))
    with pytest.raises(ArgumentError, match="input_shape takes whole numbers from 0, or None"):
        conv2d(x, w, input_shape=(None, 3, -8, 8))
    with pytest.raises(ArgumentError, match="input_shape takes sizes that are known when the graph is built"):
        conv2d(x, w, input_shape=(x.shape[0], 3, 8, 8))
    with pytest.raises(GraphTypeError, match="input_shape is a tuple of sizes"):
        conv2d(x, w, input_shape=8)


def test_the_deprecated_name_of_input_shape() -> None:
    x, w = variable("x", None, 3, None, None), variable("w", 4, 3, 3, 3)
    with pytest.warns(DeprecationWarning, match="image_shape is deprecated"):
        assert conv2d(x, w, image_shape=(2, 3, 8, 8)).type.shape == (2, 4, 6, 6)
    with pytest.raises(ArgumentError, match="should not be provided at the same time"):
        conv2d(x, w, input_shape=(2, 3, 8, 8), image_shape=(2, 3, 8, 8))


X, W = variable("x", 2, 3, 8, 8), variable("w", 4, 3, 3, 3)
ERRORS = [
    (lambda: conv2d(X, W, padding=1), TypeError, "unexpected keyword argument 'padding'"),
    (lambda: conv2d(X, W, unshared=True), TypeError, "unexpected keyword argument 'unshared'"),
    (lambda: conv2d(X, W, subsample=(2,)), ArgumentError, "subsample must have 2 elements"),
    (lambda: conv2d(X, W, filter_dilation=0), ArgumentError, "filter_dilation must be 1 or more"),
    (lambda: conv2d(X, W, num_groups=0), ArgumentError, "num_groups must be 1 or more"),
    (lambda: conv2d(X, W, num_groups=2), ShapeError, "the image's 3 channels do not divide into 2 groups"),
    (lambda: conv2d(X, W, border_mode="reflect"), ArgumentError, "border_mode does not take this value\n  found: 'reflect'"),
    (lambda: conv2d(X, W[0]), GraphTypeError, "the filters of a 2-D convolution must have 4 axes"),
    (lambda: nnet.conv3d(X, W), GraphTypeError, "the image of a 3-D convolution must have 5 axes"),
    (lambda: conv2d(X[:, :2], W), ShapeError, "the filters take 3 channels, the image has 2"),
    (lambda: conv2d(X[:, :, :, :2], W), ShapeError, "larger than the padded image along spatial axis 1 (axis 3"),
    (lambda: conv2d(X.astype("int64"), W), GraphTypeError, "a convolution takes float tensors"),
    (lambda: nnet.conv2d_transpose(X, W), ShapeError, "the output gradient has 3 channels for 4 filters"),
    (lambda: nnet.conv2d_transpose(X, W[:3], output_padding=1), ArgumentError, "output_padding must be 0 or more and less"),
    (lambda: nnet.conv2d_transpose(X, W[:3], (9, 10), border_mode=0), ShapeError, "asked for (2, 3, 9, 10)"),
    (lambda: nnet.conv2d_transpose(X, W[:3], (15, 15), input_dilation=2, output_padding=1), ArgumentError, "thing twice"),
    (lambda: nnet.conv2d_transpose(X, W[:3], (20, 18), input_dilation=2), ShapeError, "give a response (2, 3, 9, 8)"),
]


@pytest.mark.parametrize(("build", "error", "text"), ERRORS)
def test_wrong_uses_are_told_with_the_users_line(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)) as caught:
        build()
    assert error is TypeError or "where: " + __file__ in str(caught.value)
