"""cuDNN's three operations, their attribute structures, and Theano's names for cuDNN."""
from __future__ import annotations

import enum
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
from symconv.tensor.nnet import (
    Conv_dgrad_attributes,
    Conv_fprop_attributes,
    Conv_wgrad_attributes,
    ConvDgradAttributes,
    ConvFpropAttributes,
    ConvWgradAttributes,
    conv_dgrad,
    conv_fprop,
    conv_wgrad,
    dnn,
)

Array = np.ndarray[Any, Any]
SETTING = Setting(2, 4, (7, 6), 6, (3, 2), (2, 1), (1, 2), [(1, 0), (0, 2)], 2, False)
X, W = np.random.default_rng(0).normal(size=(2, 4, 7, 6)), np.random.default_rng(1).normal(size=(6, 2, 3, 2))
Y = plain_fprop(X, W, SETTING)
U = np.random.default_rng(2).normal(size=Y.shape)
WORDS: dict[str, Any] = {"pre_padding": [1, 0], "post_padding": [0, 2], "stride": [2, 1], "dilation": [1, 2]}


class Mode(enum.Enum):
    CONVOLUTION = 0
    CROSS_CORRELATION = 1


def value(x: Variable) -> Array:
    return evaluate([x])[0]


def test_the_three_operations() -> None:
    np.testing.assert_allclose(value(conv_fprop(X, W, **WORDS)), Y, rtol=1e-10)
    gx, gw = conv_dgrad(U, W, **WORDS, image_shape=X.shape), conv_wgrad(X, U, **WORDS, weight_shape=W.shape)
    np.testing.assert_allclose(value(gx), plain_dgrad(U, W, SETTING), rtol=1e-10)
    np.testing.assert_allclose(value(gw), plain_wgrad(X, U, SETTING), rtol=1e-10)


def test_arguments_in_the_order_of_the_operations() -> None:
    result = conv_fprop(X, W, [1, 0], [0, 2], [2, 1], [1, 2], "CROSS_CORRELATION", "DOUBLE", "response")
    assert result.name == "response"
    np.testing.assert_allclose(value(result), Y, rtol=1e-10)


@pytest.mark.parametrize("mode", ["CONVOLUTION", "convolution", Mode.CONVOLUTION])
def test_both_convolution_modes(mode: Any) -> None:
    image, kernel = np.arange(9.0).reshape(1, 1, 3, 3), np.array([[[[1.0, 2], [3, 4]]]])
    np.testing.assert_array_equal(value(conv_fprop(image, kernel))[0, 0], [[27, 37], [57, 67]])
    np.testing.assert_array_equal(value(conv_fprop(image, kernel, convolution_mode=Mode.CROSS_CORRELATION))[0, 0],
                                  [[27, 37], [57, 67]])
    np.testing.assert_array_equal(value(conv_fprop(image, kernel, convolution_mode=mode))[0, 0], [[13, 23], [43, 53]])


def test_attribute_structures_anywhere() -> None:
    def filled(structure: Any) -> Any:
        return (structure.set_pre_padding([1, 0]).set_post_padding([0, 2]).set_stride([2, 1]).set_dilation([1, 2])
                .set_convolution_mode("CROSS_CORRELATION").set_compute_data_type("DOUBLE").set_name("out"))

    for result in (conv_fprop(X, W, filled(ConvFpropAttributes())), conv_fprop(filled(Conv_fprop_attributes()), X, W),
                   conv_fprop(X, W, attributes=filled(ConvFpropAttributes()))):
        assert result.name == "out"
        np.testing.assert_allclose(value(result), Y, rtol=1e-10)
    gx = conv_dgrad(U, W, filled(Conv_dgrad_attributes()), image_shape=X.shape)
    gw = conv_wgrad(X, U, filled(Conv_wgrad_attributes()), weight_shape=W.shape)
    np.testing.assert_allclose(value(gx), plain_dgrad(U, W, SETTING), rtol=1e-10)
    np.testing.assert_allclose(value(gw), plain_wgrad(X, U, SETTING), rtol=1e-10)
    assert (Conv_dgrad_attributes, Conv_wgrad_attributes) == (ConvDgradAttributes, ConvWgradAttributes)
    assert ConvFpropAttributes().set_padding([1, 1]) == ConvFpropAttributes(padding=[1, 1])


def test_symmetric_padding_and_other_ranks() -> None:
    for ndim in (1, 2, 3):
        image, weight = np.ones((1, 2, *(5,) * ndim)), np.ones((3, 2, *(3,) * ndim))
        assert conv_fprop(image, weight, padding=[1] * ndim).type.shape == (1, 3, *(5,) * ndim)
        assert conv_dgrad(np.ones((1, 3, *(5,) * ndim)), weight, padding=1).type.shape == image.shape
        assert conv_wgrad(image, np.ones((1, 3, *(5,) * ndim)), padding=1).type.shape == weight.shape


def test_groups_are_told_by_the_shapes() -> None:
    unknown = Variable(TensorType("float64", (None, None, 7, 6)), "x")
    assert conv_fprop(X, W).apply.op.spec.groups == 2  # type: ignore[union-attr]
    assert conv_fprop(unknown, W, groups=2).apply.op.spec.groups == 2  # type: ignore[union-attr]
    (found,) = evaluate([conv_fprop(unknown, W, **WORDS, groups=2)], {unknown: X})
    np.testing.assert_allclose(found, Y, rtol=1e-10)
    with pytest.raises(ShapeError, match="the filters take 2 channels, the image has 4"):
        evaluate([conv_fprop(unknown, W)], {unknown: X})


def test_the_compute_dtype() -> None:
    x = np.array([1.0, 2.0**-30, -1.0], np.float32).reshape(1, 3, 1)
    w = np.ones((1, 3, 1), np.float32)
    assert value(conv_fprop(x, w, compute_data_type="DOUBLE")).item() == 2.0**-30
    assert conv_fprop(x, w, compute_data_type="FLOAT").apply.op.spec.compute_dtype == "float32"  # type: ignore[union-attr]
    assert value(conv_fprop(x, w, compute_data_type=np.float64)).item() == 2.0**-30


ERRORS = [
    (lambda: conv_fprop(X, W, padding=1, pre_padding=1), ArgumentError, "padding says what pre_padding and post_padding"),
    (lambda: conv_fprop(X, W, pre_padding=-1), ArgumentError, "pre_padding must not be negative"),
    (lambda: conv_fprop(X, W, post_padding=[1]), ArgumentError, "post_padding must have 2 elements"),
    (lambda: conv_fprop(X, W, padding=[1, 1, 1]), ArgumentError, "padding must have one entry for each of the 2"),
    (lambda: conv_fprop(X, W, stride=[0, 1]), ArgumentError, "stride must be 1 or more"),
    (lambda: conv_fprop(X, W, convolution_mode="cross"), ArgumentError, "convolution_mode does not take this value"),
    (lambda: conv_fprop(X, W, compute_data_type="HALF"), ArgumentError, "summed in float32 or float64"),
    (lambda: conv_fprop(X, W, strides=2), TypeError, "unexpected keyword argument 'strides'"),
    (lambda: conv_fprop(X, W, ConvFpropAttributes().set_stride(2), stride=1), ArgumentError, "stride is given twice"),
    (lambda: conv_fprop(X, W, ConvDgradAttributes()), GraphTypeError, "conv_fprop takes one ConvFpropAttributes"),
    (lambda: conv_fprop(np.ones((3, 3)), W), GraphTypeError, "tensors of 3, 4 or 5 axes"),
    (lambda: conv_dgrad(U, W, **WORDS), ShapeError, "not told by the inputs of a dgrad"),
    (lambda: conv_wgrad(X, U, **WORDS), ShapeError, "not told by the inputs of a wgrad"),
]


@pytest.mark.parametrize(("build", "error", "text"), ERRORS)
def test_wrong_uses_are_told_with_the_users_line(build: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)) as caught:
        build()
    assert error is TypeError or "where: " + __file__ in str(caught.value)


def test_seed_program_dnn() -> None:
    x, w = X.astype(np.float32), W[:, :1].repeat(4, axis=1).astype(np.float32)
    wanted = plain_fprop(x.astype(float), w.astype(float), Setting(2, 4, (7, 6), 6, (3, 2), (1, 1), (1, 1), 0, 1, True))
    image, kernel = T.tensor4("X"), T.tensor4("W")
    for convolution in (dnn.conv2d, dnn.dnn_conv):
        with sc.config.change(dnn__enabled="auto"):
            f = sc.function(inputs=[image, kernel], outputs=convolution(image, kernel))
            np.testing.assert_allclose(f(x, w), wanted, rtol=1e-4, atol=1e-5)


def test_theanos_dnn_functions() -> None:
    words: dict[str, Any] = {"border_mode": ((1, 0), (0, 2)), "subsample": (2, 1), "dilation": (1, 2), "conv_mode": "cross",
                             "num_groups": 2}
    np.testing.assert_allclose(value(dnn.dnn_conv(X, W, **words)), Y, rtol=1e-10)
    np.testing.assert_allclose(value(dnn.dnn_gradinput(W, U, X.shape, **words)), plain_dgrad(U, W, SETTING), rtol=1e-10)
    np.testing.assert_allclose(value(dnn.dnn_gradweight(X, U, W.shape, **words)), plain_wgrad(X, U, SETTING), rtol=1e-10)
    x, w = np.ones((1, 2, 4, 4, 4)), np.ones((3, 2, 2, 2, 2))
    y = dnn.dnn_conv3d(x, w, precision="float64")
    assert y.type.shape == (1, 3, 3, 3, 3)
    assert dnn.dnn_gradinput3d(w, y, x.shape).type.shape == x.shape
    assert dnn.dnn_gradweight3d(x, y, w.shape).type.shape == w.shape
    for keywords, text in (({"conv_mode": "both"}, "conv_mode does not take this value"),
                           ({"precision": "float16"}, "precision does not take this value")):
        with pytest.raises(ArgumentError, match=text):
            dnn.dnn_conv(X, W, **keywords)
    with pytest.raises(TypeError, match="algo"):
        dnn.dnn_conv(X, W, algo="time_once")
