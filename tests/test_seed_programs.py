"""Programs as Theano's users write them, with only their imports changed, against NumPy and SciPy."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.signal import correlate

import symconv as sc
import symconv.tensor as T
from symconv.errors import BackendError
from symconv.tensor import nnet
from symconv.tensor.nnet import conv2d, dnn

Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _settings_put_back() -> Iterator[None]:
    """The programs set `config.dnn.enabled` as an attribute."""
    before = sc.config.dnn.enabled
    yield
    sc.config.dnn.enabled = before


def arrays(seed: int = 0) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    return (generator.normal(size=(10, 3, 32, 32)).astype("float32"), generator.normal(size=(16, 3, 3, 3)).astype("float32"))


def correlation(image: Array, weight: Array) -> Array:
    """Every filter slid over every image, "valid", in float64 by SciPy."""
    return np.array([[correlate(picture.astype("float64"), filter.astype("float64"), "valid")[0] for filter in weight]
                     for picture in image])


def convolution(image: Array, weight: Array) -> Array:
    """The true convolution: with flipped filters."""
    return correlation(image, weight[:, :, ::-1, ::-1])


def test_batches() -> None:
    X = T.tensor4("X")
    W = T.tensor4("W")
    conv_out = conv2d(X, W)
    f = sc.function(inputs=[X, W], outputs=conv_out)
    X_data, W_data = arrays()
    result = f(X_data, W_data)
    assert result.shape == (10, 16, 30, 30)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, convolution(X_data, W_data), rtol=1e-4, atol=1e-4)


def test_shared_state() -> None:
    X_data, W_data = arrays()
    X_shared = sc.shared(X_data)
    W_shared = sc.shared(W_data)
    conv_out = conv2d(X_shared, W_shared)
    f = sc.function(inputs=[], outputs=conv_out)
    np.testing.assert_allclose(f(), convolution(X_data, W_data), rtol=1e-4, atol=1e-4)
    programs = f.programs
    X_data, W_data = arrays(1)
    X_shared.set_value(X_data)
    W_shared.set_value(W_data)
    np.testing.assert_allclose(f(), convolution(X_data, W_data), rtol=1e-4, atol=1e-4)
    assert f.programs == programs, "new values of the same shapes must not compile again"


@pytest.mark.parametrize("name", ["conv2d", "dnn_conv"])
def test_cudnn_required_but_absent(name: str) -> None:
    dnn_conv = getattr(dnn, name)
    sc.config.dnn.enabled = True
    X = T.tensor4("X")
    W = T.tensor4("W")
    with pytest.raises(BackendError, match=r"config\.dnn\.enabled is True") as caught:
        sc.function(inputs=[X, W], outputs=dnn_conv(X, W))
    text = str(caught.value)
    assert "found: " in text
    assert "do: set config.dnn.enabled" in text
    assert all(looked_for in text for looked_for in ("the Python package cudnn", "the library cudnn", "the library cuda"))


@pytest.mark.parametrize(("enabled", "reason"), [("auto", "the device is cpu"), (False, "config.dnn.enabled is False")])
@pytest.mark.parametrize("name", ["conv2d", "dnn_conv"])
def test_cudnn_not_required(name: str, enabled: Any, reason: str) -> None:
    dnn_conv = getattr(dnn, name)
    sc.config.dnn.enabled = enabled
    X = T.tensor4("X")
    W = T.tensor4("W")
    f = sc.function(inputs=[X, W], outputs=dnn_conv(X, W))
    X_data, W_data = arrays()
    np.testing.assert_allclose(f(X_data, W_data), convolution(X_data, W_data), rtol=1e-4, atol=1e-4)
    text = f.explain()
    assert "cuDNN" in text
    assert reason in text


# cuDNN's three operations: a plain loop in float64 says what they are

LOW, HIGH, STRIDE, DILATION = (1, 0), (2, 1), (2, 1), (1, 2)


def plain_fprop(image: Array, weight: Array, low: Any, high: Any, stride: Any, dilation: Any) -> Array:
    """Cross-correlation by its definition: a sum over filter elements of strided slices of the padded image."""
    padded = np.pad(image, ((0, 0), (0, 0), *zip(low, high, strict=True)))
    sizes = [(padded.shape[2 + a] - (weight.shape[2 + a] - 1) * dilation[a] - 1) // stride[a] + 1 for a in (0, 1)]
    result = np.zeros((len(image), len(weight), *sizes))
    for row in range(weight.shape[2]):
        for column in range(weight.shape[3]):
            part = padded[:, :, row * dilation[0]:, column * dilation[1]:][:, :, ::stride[0], ::stride[1]]
            result += np.einsum("nchw,kc->nkhw", part[:, :, :sizes[0], :sizes[1]], weight[:, :, row, column])
    return result


def transposed(function: Any, shape: tuple[int, ...], loss: Array) -> Array:
    """The adjoint of a linear function, applied to `loss`: one unit vector after the other."""
    result = np.zeros(shape)
    for index in np.ndindex(*shape):
        unit = np.zeros(shape)
        unit[index] = 1
        result[index] = (function(unit) * loss).sum()
    return result


def problem() -> tuple[Array, Array, Array]:
    generator = np.random.default_rng(2)
    image, weight = generator.normal(size=(2, 2, 6, 7)), generator.normal(size=(3, 2, 3, 2))
    return image, weight, generator.normal(size=plain_fprop(image, weight, LOW, HIGH, STRIDE, DILATION).shape)


def parameters(how: str, structure: Any) -> dict[str, Any]:
    """The parameters of one problem as arguments, or as an attribute structure."""
    if how == "arguments":
        return {"pre_padding": LOW, "post_padding": HIGH, "stride": STRIDE, "dilation": DILATION,
                "convolution_mode": "CROSS_CORRELATION", "compute_data_type": "DOUBLE", "name": "response"}
    return {"attributes": structure().set_pre_padding(LOW).set_post_padding(HIGH).set_stride(STRIDE).set_dilation(DILATION)
            .set_convolution_mode("CROSS_CORRELATION").set_compute_data_type("DOUBLE").set_name("response")}


@pytest.mark.parametrize("how", ["arguments", "structure"])
def test_the_three_operations(how: str) -> None:
    image, weight, loss = problem()
    x, w, g = (T.tensor4(name, dtype="float64") for name in ("image", "weight", "loss"))
    response = nnet.conv_fprop(x, w, **parameters(how, nnet.Conv_fprop_attributes))
    data = nnet.conv_dgrad(g, w, image_shape=image.shape, **parameters(how, nnet.Conv_dgrad_attributes))
    weights = nnet.conv_wgrad(x, g, weight_shape=weight.shape, **parameters(how, nnet.Conv_wgrad_attributes))
    assert response.name == data.name == weights.name == "response"
    found = sc.function([x, w, g], [response, data, weights])(image, weight, loss)
    words = (LOW, HIGH, STRIDE, DILATION)
    np.testing.assert_allclose(found[0], plain_fprop(image, weight, *words), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[1], transposed(lambda unit: plain_fprop(unit, weight, *words), image.shape, loss),
                               rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[2], transposed(lambda unit: plain_fprop(image, unit, *words), weight.shape, loss),
                               rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", ["CROSS_CORRELATION", "CONVOLUTION"])
def test_symmetric_padding_and_mode(mode: str) -> None:
    """With stride 1 a gradient knows its result's shape, and none need be given."""
    image, weight, _ = problem()
    kernel = weight if mode == "CROSS_CORRELATION" else weight[:, :, ::-1, ::-1]

    def run(unit: Array, filter: Array) -> Array:
        return plain_fprop(unit, filter, (1, 1), (1, 1), (1, 1), (1, 1))

    loss = np.random.default_rng(3).normal(size=run(image, kernel).shape)
    words = {"padding": 1, "convolution_mode": mode}
    response = nnet.conv_fprop(image, weight, **words).eval()
    data = nnet.conv_dgrad(loss, weight, **words).eval()
    weights = nnet.conv_wgrad(image, loss, **words).eval()
    np.testing.assert_allclose(response, run(image, kernel), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(data, transposed(lambda unit: run(unit, kernel), image.shape, loss), rtol=1e-10, atol=1e-10)
    wanted = transposed(lambda unit: run(image, unit), weight.shape, loss)
    np.testing.assert_allclose(weights, wanted if kernel is weight else wanted[:, :, ::-1, ::-1], rtol=1e-10, atol=1e-10)


def test_attribute_structures_chain() -> None:
    for structure in (nnet.Conv_fprop_attributes, nnet.Conv_dgrad_attributes, nnet.Conv_wgrad_attributes):
        made = structure()
        assert made.set_padding([1, 1]).set_stride([2, 2]).set_dilation([1, 1]).set_name("a") \
            .set_compute_data_type("FLOAT").set_convolution_mode("CONVOLUTION") is made
        assert (made.padding, made.stride, made.dilation, made.name) == ([1, 1], [2, 2], [1, 1], "a")


def test_a_shape_that_cannot_be_known_is_asked_for() -> None:
    image, weight, loss = problem()
    with pytest.raises(sc.UserError, match="give the shape of the image"):
        nnet.conv_dgrad(loss, weight, LOW, HIGH, STRIDE, DILATION)
    with pytest.raises(sc.UserError, match="give the shape of the filters"):
        nnet.conv_wgrad(image, loss, LOW, HIGH, STRIDE, DILATION)
