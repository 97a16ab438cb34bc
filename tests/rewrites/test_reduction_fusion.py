"""Reductions of the same elements in one kernel, values computed again, masks and sums through max pooling."""
from __future__ import annotations

import numpy as np
import pytest
from rewriting import bound, leaf, ops

import symconv.tensor as T
from symconv.graph.gradient import grad
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.lowered.reduce_many import ReduceMany
from symconv.ops.reductions import Reduce
from symconv.tensor import nnet

RNG = np.random.default_rng(6)
SHAPE = (8, 64, 40)
x, y = leaf("float64", SHAPE, "x"), leaf("float64", SHAPE, "y")
VALUES = {each: RNG.normal(size=SHAPE) for each in (x, y)}
X, Y = VALUES[x], VALUES[y]


def kinds(graph):
    return [type(node.op) for node in graph.nodes]


def test_sums_of_one_variable_are_one_kernel():
    axes = (0, 2)
    graph, found, _ = bound(VALUES, [x.sum(axes), T.square(x).sum(axes), (x * y).sum(axes), x.max(axes)])
    assert kinds(graph) == [ReduceMany]
    for value, exact in zip(found, (X, X**2, X * Y), strict=False):
        np.testing.assert_allclose(value, exact.sum((0, 2)), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(found[3], X.max((0, 2)))


def test_no_more_than_four():
    graph, found, _ = bound(VALUES, [(x * k).sum(axis=1) for k in (1.5, 2.5, 3.5, 4.5, 5.5)])
    assert sorted(kinds(graph), key=str) == sorted([ReduceMany, Reduce], key=str)
    for value, k in zip(found, (1.5, 2.5, 3.5, 4.5, 5.5), strict=True):
        np.testing.assert_allclose(value, (X * k).sum(1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("build", [
    lambda: [x.sum(axis=0), y.sum(axis=0)],
    lambda: [x.sum(axis=0), (x * 2.5).sum(axis=1)],
    lambda: [x.sum(axis=0), (x * 2.5).sum(axis=0, keepdims=True)],
], ids=["nothing in common", "other axes", "other form"])
def test_what_stays_apart(build):
    assert ReduceMany not in kinds(bound(VALUES, build())[0])


def test_no_reduction_depends_on_its_own_kernel():
    """The second sum needs the first; a third that needs neither may go with one of them, and all values are right."""
    total = x.sum(axis=(0, 2), keepdims=True)
    second = (x * total).sum(axis=(0, 2), keepdims=True)
    third = (x * y).sum(axis=(0, 2), keepdims=True)
    fourth = (x * y * second).sum(axis=(0, 2), keepdims=True)
    graph, found, _ = bound(VALUES, [total, second, third, fourth])
    assert kinds(graph).count(ReduceMany) == 1
    exact = X.sum((0, 2), keepdims=True)
    exact_second = (X * exact).sum((0, 2), keepdims=True)
    for value, wanted in zip(found, (exact, exact_second, (X * Y).sum((0, 2), keepdims=True),
                                     (X * Y * exact_second).sum((0, 2), keepdims=True)), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)


def test_crossed_dependencies_give_no_cycle():
    """a feeds d and c feeds b, where a, b and c, d would each be one kernel: only the levels forbid it."""
    def total(value):
        return value.sum(axis=(0, 2), keepdims=True)

    a, c = total(x * 1.5), total(y * 1.5)
    b, d = total(x * c), total(y * a)
    _, found, _ = bound(VALUES, [a, b, c, d])
    exact_a, exact_c = ((each * 1.5).sum((0, 2), keepdims=True) for each in (X, Y))
    for value, wanted in zip(found, (exact_a, (X * exact_c).sum((0, 2), keepdims=True), exact_c,
                                     (Y * exact_a).sum((0, 2), keepdims=True)), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)


def test_a_cheap_value_is_computed_again():
    """x · y is read by a sum and by an elementwise kernel that needs the sum."""
    product = x * y
    graph, (found,), _ = bound(VALUES, [product - product.sum(axis=(0, 2), keepdims=True)])
    assert kinds(graph) == [Reduce, FusedElementwise]
    exact = X * Y
    np.testing.assert_allclose(found, exact - exact.sum((0, 2), keepdims=True), rtol=1e-10)


@pytest.mark.parametrize("function", [T.tanh, lambda value: T.tanh(value) + y], ids=["dear", "cheap on top of dear"])
def test_a_dear_value_is_kept(function):
    value = function(x)
    graph, (found,), _ = bound(VALUES, [value - value.sum(axis=(0, 2), keepdims=True)])
    assert str(ops(graph)).count("tanh") == 1
    exact = np.tanh(X) if function is T.tanh else np.tanh(X) + Y
    np.testing.assert_allclose(found, exact - exact.sum((0, 2), keepdims=True), rtol=1e-10, atol=1e-12)


def test_a_small_value_is_kept():
    small = leaf("float64", (8, 4), "small")
    value = small * 2.5 + 1.5
    graph, _, _ = bound({small: np.ones((8, 4))}, [value - value.sum(axis=0)])
    assert len(graph.nodes) == 3


def test_a_result_is_kept():
    value = T.where(y > 0, x, 0)
    graph, found, _ = bound(VALUES, [value, value - value.sum(axis=(0, 2), keepdims=True)])
    assert str(ops(graph)).count("where") == 1
    np.testing.assert_array_equal(found[0], np.where(Y > 0, X, 0))


def test_batch_normalisation_passes():
    """Training: statistics, normalise and relu; backwards one pass of sums and one elementwise."""
    shape, channels = (8, 16, 24, 24), (16,)
    image, slope = leaf("float32", shape, "image"), leaf("float32", shape, "slope")
    gamma, beta = leaf("float32", channels, "gamma"), leaf("float32", channels, "beta")
    values = {image: RNG.normal(2, 3, shape).astype("float32"), slope: RNG.normal(size=shape).astype("float32"),
              gamma: RNG.uniform(0.5, 1.5, channels).astype("float32"), beta: RNG.normal(size=channels).astype("float32")}
    result = nnet.relu(nnet.batch_normalization_train(image, gamma, beta, "spatial", 1e-5)[0])
    cost = (result * slope).sum()
    outputs = [result, *grad(cost, [image, gamma, beta])]
    graph, found, _ = bound(values, outputs)
    large = [node for node in graph.nodes if any(each.type.shape == shape for each in (*node.inputs, *node.outputs))
             and isinstance(node.op, (Reduce, ReduceMany, FusedElementwise))]
    assert [type(node.op) for node in large] == [ReduceMany, FusedElementwise, ReduceMany, FusedElementwise]
    for value, exact in zip(found, plain_batch_norm(*(values[each].astype("float64") for each in (image, slope, gamma, beta))),
                            strict=True):
        np.testing.assert_allclose(value, exact, rtol=2e-4, atol=2e-4)


def plain_batch_norm(image, slope, gamma, beta):
    axes, count = (0, 2, 3), image[:, 0].size
    scale = 1 / np.sqrt(image.var(axes, keepdims=True) + 1e-5)
    normal = (image - image.mean(axes, keepdims=True)) * scale
    out = normal * gamma[:, None, None] + beta[:, None, None]
    g = np.where(out > 0, slope, 0)
    gbeta, ggamma = g.sum(axes), (g * normal).sum(axes)
    inner = count * g - gbeta[:, None, None] - normal * ggamma[:, None, None]
    return np.maximum(out, 0), gamma[:, None, None] * scale / count * inner, ggamma, gbeta


POOLS = [{"ws": (2, 2)}, {"ws": (3, 3), "stride": (2, 2), "pad": (1, 1)}, {"ws": (3, 2), "stride": (2, 1), "ignore_border": False}]


@pytest.mark.parametrize("options", POOLS, ids=str)
def test_relu_before_max_pooling(options):
    """The mask of relu is taken at the windows; the values are those without the law, to the bit, for NaN and zeros too."""
    image = leaf("float32", (2, 3, 9, 8), "image")
    bias = leaf("float32", (3,), "bias")
    pooled = nnet.max_pool_2d(nnet.relu(image + bias.dimshuffle("x", 0, "x", "x")), **options)
    weights = T.constant(RNG.normal(size=pooled.type.shape).astype("float32"))
    data = RNG.integers(-3, 3, (2, 3, 9, 8)).astype("float32")
    data[0, 0, 3, 3] = np.nan
    values = {image: data, bias: np.float32([0.0, 0.5, -0.5])}
    outputs = [*grad((pooled * weights).sum(), [image, bias]), pooled]
    graph, found, log = bound(values, outputs)
    applied = [application.rule for application in log.applications]
    assert "mask_after_pooling" in applied
    assert "sum_before_pooling" in applied
    assert len([name for name in ops(graph) if name.startswith("MaxPoolGrad")]) == 1
    _, plain, _ = bound(values, outputs, exclude=("mask_after_pooling", "sum_before_pooling"))
    np.testing.assert_array_equal(found[0], plain[0])
    np.testing.assert_allclose(found[1], plain[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("computed", [True, False])
def test_a_factor_out_of_a_sum(sign, computed):
    """Only where the sum without the factor is there anyway."""
    factor = leaf("float64", (1, 64, 1), "factor")
    values = VALUES | {factor: RNG.normal(size=(1, 64, 1))}
    product = x * factor if sign > 0 else -(x * factor)
    wanted = [product.sum(axis=(0, 2), keepdims=True), *([x.sum(axis=(0, 2), keepdims=True)] if computed else [])]
    graph, found, log = bound(values, wanted)
    assert ("factor_out_of_sum" in [application.rule for application in log.applications]) == computed
    assert sum(isinstance(node.op, (Reduce, ReduceMany)) for node in graph.nodes) == 1
    np.testing.assert_allclose(found[0], sign * (X * values[factor]).sum((0, 2), keepdims=True), rtol=1e-9, atol=1e-9)


def test_a_factor_that_changes_along_the_axes_stays():
    factor = leaf("float64", (1, 1, 40), "factor")
    outputs = [(x * factor).sum(axis=(0, 2), keepdims=True), x.sum(axis=(0, 2), keepdims=True)]
    _, found, log = bound(VALUES | {factor: np.arange(40.0).reshape(1, 1, 40)}, outputs)
    assert "factor_out_of_sum" not in [application.rule for application in log.applications]
    np.testing.assert_allclose(found[0], (X * np.arange(40.0)).sum((0, 2), keepdims=True), rtol=1e-9, atol=1e-9)


def test_relu_gradient_in_the_epilogue_of_a_data_gradient():
    """z > 0 is computed by the convolution's kernel, not kept as an array of its own."""
    image, first = leaf("float32", (2, 3, 8, 8), "image"), leaf("float32", (4, 3, 3, 3), "first")
    second = leaf("float32", (5, 4, 3, 3), "second")
    values = {each: RNG.normal(size=each.type.shape).astype("float32") for each in (image, first, second)}
    hidden = nnet.relu(nnet.conv2d(image, first))
    outputs = [grad(T.square(nnet.conv2d(hidden, second)).sum(), first)]
    graph, found, _ = bound(values, outputs)
    (gradient,) = (str(node.op) for node in graph.nodes if str(node.op).startswith("Conv{dgrad"))
    assert "where" in gradient
    assert not any(str(node.op).startswith("gt") for node in graph.nodes)
    _, plain, _ = bound(values, outputs, include=())
    np.testing.assert_allclose(found[0], plain[0], rtol=1e-4, atol=1e-4)


def test_a_factor_stays_in_a_float16_sum_that_would_overflow_without_it():
    import symconv as sc
    import symconv.tensor as T

    x, factor = T.tensor("x", "float16", (1, 1000)), T.tensor("factor", "float16", (1, 1))
    function = sc.compile([x, factor], [x.sum(axis=1, keepdims=True), (x * factor).sum(axis=1, keepdims=True)])
    total, scaled = function(np.full((1, 1000), 100, np.float16), np.full((1, 1), 0.01, np.float16))
    assert np.isinf(total).all()
    np.testing.assert_allclose(scaled, 1000, rtol=1e-2)
