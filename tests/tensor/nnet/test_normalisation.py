"""Normalisation against its formulas in float64, gradients, shapes of parameters and errors."""
from __future__ import annotations

import numpy as np
import pytest
from support import check_gradient, evaluate, variable_for

from symconv.errors import ArgumentError, GraphTypeError, ShapeError
from symconv.graph import TensorType, Variable
from symconv.tensor import nnet

RNG = np.random.default_rng(0)
AXES = [("per-activation", (4, 3), (0,)), ("spatial", (4, 3, 2, 5), (0, 2, 3)), ("spatial", (4, 3), (0,)),
        ("spatial", (4, 3, 5), (0, 2)), ((0, 2), (3, 2, 4), (0, 2)), ((1, -1), (3, 2, 4), (1, 2)), (1, (3, 5), (1,))]


def run(outputs, *pairs):
    return evaluate(outputs, dict(pairs))


def parameters(shape, axes, full_rank):
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    small = kept if full_rank else [size for axis, size in enumerate(shape) if axis not in axes]
    return [RNG.uniform(0.5, 1.5, small) for _ in range(4)], kept


@pytest.mark.parametrize(("named", "shape", "axes"), AXES)
@pytest.mark.parametrize("full_rank", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_training(named, shape, axes, full_rank, known):
    x = RNG.standard_normal(shape) * 2 + 3
    (gamma, beta, old_mean, old_var), kept = parameters(shape, axes, full_rank)
    values = [x, gamma, beta, old_mean, old_var]
    v = [variable_for(value, known) for value in values]
    outputs = nnet.batch_normalization_train(*v[:3], named, 1e-3, 0.2, *v[3:])
    out, mean, invstd, new_mean, new_var = run(outputs, *zip(v, values, strict=True))
    m, var = x.mean(axes), x.var(axes)
    s = gamma.shape
    np.testing.assert_allclose(out, (x - m.reshape(kept)) / np.sqrt(var.reshape(kept) + 1e-3) * gamma.reshape(kept)
                               + beta.reshape(kept), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mean, m.reshape(s), rtol=1e-12)
    np.testing.assert_allclose(invstd, 1 / np.sqrt(var + 1e-3).reshape(s), rtol=1e-12)
    np.testing.assert_allclose(new_mean, 0.8 * old_mean + 0.2 * m.reshape(s), rtol=1e-12)
    np.testing.assert_allclose(new_var, 0.8 * old_var + 0.2 * x.var(axes, ddof=1).reshape(s), rtol=1e-12)


@pytest.mark.parametrize(("named", "shape", "axes"), AXES)
@pytest.mark.parametrize("full_rank", [True, False])
def test_prediction(named, shape, axes, full_rank):
    x = RNG.standard_normal(shape)
    (gamma, beta, mean, var), kept = parameters(shape, axes, full_rank)
    v = [variable_for(value) for value in (x, gamma, beta, mean, var)]
    (out,) = run([nnet.batch_normalization_test(*v, named)], *zip(v, (x, gamma, beta, mean, var), strict=True))
    g, b, m, s = (value.reshape(kept) for value in (gamma, beta, mean, var))
    np.testing.assert_allclose(out, (x - m) * g / np.sqrt(s + 1e-4) + b, rtol=1e-12)


def test_without_running_statistics_there_are_three_results():
    x, p = variable_for(np.zeros((4, 3))), variable_for(np.ones(3))
    assert len(nnet.batch_normalization_train(x, p, p)) == 3


def test_a_large_mean_does_not_swamp_the_variance():
    x = (np.array([[1.0], [2.0], [3.0], [4.0]]) + 4096).astype("float32")  # x² is not exact in float32
    v = variable_for(x)
    one, zero = np.ones(1, "float32"), np.zeros(1, "float32")
    out, _, invstd = run(nnet.batch_normalization_train(v, one, zero, epsilon=1e-5), (v, x))
    assert out.dtype == "float32"
    np.testing.assert_allclose(invstd, 1 / np.sqrt([1.25 + 1e-5]), rtol=1e-6)
    np.testing.assert_allclose(out[:, 0], np.array([-1.5, -0.5, 0.5, 1.5]) / np.sqrt(1.25), rtol=1e-5)


def test_half_floats_have_statistics_in_single():
    x = RNG.standard_normal((64, 3)).astype("float16") + np.float16(10)
    v, p = variable_for(x), variable_for(np.ones(3, "float16"))
    out, mean, invstd = run(nnet.batch_normalization_train(v, p, p), (v, x), (p, np.ones(3, "float16")))
    assert (out.dtype, mean.dtype, invstd.dtype) == ("float16", "float32", "float32")
    np.testing.assert_allclose(mean, x.astype("float64").mean(0), rtol=1e-6)


def test_gradients_of_batch_normalization():
    x, p, q = RNG.standard_normal((3, 2, 4)), RNG.uniform(1, 2, 2), RNG.uniform(1, 2, 2)
    check_gradient(lambda a, g, b: nnet.batch_normalization_train(a, g, b, "spatial")[0], x, p, q, rtol=1e-4, order=2)
    check_gradient(lambda a, g, b: nnet.batch_normalization_test(a, g, b, q, p, "spatial"), x, p, q)


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"axes": "batch"}, ArgumentError, "'per-activation', 'spatial'"),
    ({"axes": ()}, ArgumentError, "at least one axis"),
    ({"axes": (0, 0)}, ArgumentError, "given twice"),
    ({"axes": 4}, ArgumentError, "no axis 4"),
    ({"epsilon": 1e-6}, ArgumentError, "at least 1e-5"),
    ({"running_mean": np.zeros(3, "float32")}, ArgumentError, "go together"),
    ({"gamma": np.zeros((3, 1), "float32")}, ShapeError, "gamma has rank 2"),
    ({"gamma": np.zeros(5, "float32")}, ShapeError, "gamma has size 5 on axis 1"),
    ({"beta": np.zeros((2, 3, 1, 1), "float32")}, ShapeError, "beta has size 2 on axis 0"),
    ({"inputs": np.zeros((2, 3, 4, 5), "int32")}, GraphTypeError, "needs floats"),
])
def test_wrong_arguments(arguments, error, text):
    defaults = {"inputs": np.zeros((2, 3, 4, 5), "float32"), "gamma": np.ones(3, "float32"), "beta": np.ones(3, "float32"),
                "axes": "spatial"}
    with pytest.raises(error, match=text):
        nnet.batch_normalization_train(**{**defaults, **arguments})


def test_layer_group_and_instance():
    x, gamma, beta = RNG.standard_normal((2, 4, 3, 5)), RNG.uniform(1, 2, 4), RNG.uniform(1, 2, 4)
    v = variable_for(x)

    def standardised(array, axes):
        return (array - array.mean(axes, keepdims=True)) / np.sqrt(array.var(axes, keepdims=True) + 1e-5)

    layer, group, instance, plain = run([
        nnet.layer_normalization(v, beta=np.arange(5.0), axes=(1, 2, 3)), nnet.group_normalization(v, 2, gamma, beta),
        nnet.instance_normalization(v, gamma, beta), nnet.layer_normalization(v)], (v, x))
    by_channel = gamma[None, :, None, None], beta[None, :, None, None]
    np.testing.assert_allclose(layer, standardised(x, (1, 2, 3)) + np.arange(5), rtol=1e-10)
    grouped = standardised(x.reshape(2, 2, 2, 3, 5), (2, 3, 4)).reshape(x.shape)
    np.testing.assert_allclose(group, grouped * by_channel[0] + by_channel[1], rtol=1e-10)
    np.testing.assert_allclose(instance, standardised(x, (2, 3)) * by_channel[0] + by_channel[1], rtol=1e-10)
    np.testing.assert_allclose(plain, standardised(x, -1), rtol=1e-10)
    check_gradient(lambda a: nnet.layer_normalization(a), x[0, :2, :2])
    with pytest.raises(ShapeError, match="equal groups"):
        nnet.group_normalization(v, 3)
    with pytest.raises(GraphTypeError, match="spatial axes"):
        nnet.instance_normalization(variable_for(x[0, 0]))


def lrn_loop(x, n, alpha, beta, k):
    result = np.zeros_like(x)
    for c in range(x.shape[1]):
        first, last = max(0, c - n // 2), min(x.shape[1] - 1, c + n // 2)
        result[:, c] = x[:, c] / (k + alpha * (x[:, first:last + 1] ** 2).sum(1)) ** beta
    return result


@pytest.mark.parametrize("shape", [(2, 7), (2, 7, 3), (2, 4, 3, 2), (1, 6, 2, 1, 3), (0, 4, 2, 2)])
@pytest.mark.parametrize("known", [True, False])
def test_local_response_normalization_equals_the_formula_of_the_paper(shape, known):
    x = RNG.standard_normal(shape) * 5
    v = variable_for(x, known)
    for n, alpha, beta, k in ((5, 1e-4, 0.75, 2.0), (3, 0.1, 0.5, 1.0), (1, 0.2, 1.0, 1.0), (9, 0.1, 0.75, 2.0)):
        (out,) = run([nnet.local_response_normalization(v, n, alpha, beta, k)], (v, x))
        np.testing.assert_allclose(out, lrn_loop(x, n, alpha, beta, k), rtol=1e-10)


def test_local_response_normalization_gradient_and_errors():
    x = RNG.standard_normal((2, 5, 3))
    check_gradient(lambda a: nnet.local_response_normalization(a, 3, 0.3), x, order=2, rtol=1e-4)
    with pytest.raises(ArgumentError, match="odd number"):
        nnet.local_response_normalization(Variable(TensorType("float32", (2, 3, 4))), n=4)
    with pytest.raises(GraphTypeError, match=r"\[N, C"):
        nnet.local_response_normalization(Variable(TensorType("float32", (2,))))
