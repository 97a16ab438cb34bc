"""Every differentiable op has its gradient verified numerically, compiled. A new op without a case here fails."""
from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.ops
import symconv.tensor as T
from symconv.graph import Op, Variable, apply_op
from symconv.graph.traversal import toposort
from symconv.ops import elementwise
from symconv.ops.elementwise_gradients import RULES
from symconv.ops.moments import moments
from symconv.ops.pooling import Pool, average_pool_grad, max_pool_gather, max_pool_grad
from symconv.ops.scalar import SCALAR_OPS
from symconv.ops.specify_shape import SpecifyShape
from symconv.ops.tensordot import MatchSizes
from symconv.ops.unbroadcast import SumTo
from symconv.tensor import nnet

Array = np.ndarray[Any, Any]
Case = tuple[Callable[..., Variable], list[Array]]

generator = np.random.default_rng(11)


def normal(*shape: int) -> Array:
    return generator.normal(size=shape)


def positive(*shape: int) -> Array:
    return generator.uniform(0.5, 2.0, shape)


def apart(*shape: int) -> Array:
    """Different numbers, none near another: nothing changes its order under small steps."""
    return generator.permutation(np.prod(shape)).reshape(shape) * 0.3 + 0.1


def cost(build: Callable[..., Variable]) -> Callable[..., Variable]:
    """A gradient as a case of its own: that of the sum of squares of a result, so that it is checked to second order."""

    def first(*inputs: Variable) -> Variable:
        result = build(*inputs)
        return sc.grad((result * result).sum(), inputs[0])

    return first


WINDOW = Pool("max", (2, 2), (2, 1), (1, 0), (0, 1))
AVERAGE = Pool("average_exc_pad", (2, 2), (2, 1), (1, 0), (0, 1))
INDEX = np.array([2, 0, 2])

CASES: dict[str, Case] = {
    # shapes and views
    "Reshape": (lambda x: x.reshape(3, 4), [normal(2, 6)]),
    "Reshape to a symbolic shape": (lambda x: x.reshape(x.shape[1], x.shape[0]), [normal(2, 6)]),
    "DimShuffle": (lambda x: x.dimshuffle(1, "x", 0), [normal(2, 3)]),
    "BroadcastTo": (lambda x: T.broadcast_to(x, (2, 4, 3)), [normal(4, 1)]),
    "SumTo": (lambda x: apply_op(SumTo(), x, T.constant(normal(1, 4, 1))), [normal(2, 4, 3)]),
    "MatchSizes": (lambda x: apply_op(MatchSizes(((0, 1),)), x, T.constant(normal(2, 3))), [normal(3, 4)]),
    "SpecifyShape": (lambda x: apply_op(SpecifyShape((2, None)), x), [normal(2, 3)]),
    # what prints or checks on the way
    "Print": (lambda x: sc.Print("x")(x) ** 2, [normal(3)]),
    "Assert": (lambda x: sc.Assert("x is small")(x, abs(x) < 100) ** 2, [normal(3)]),
    # joining, padding, indexing
    "Concatenate": (lambda x, y: T.concatenate([x, y, x], axis=1), [normal(2, 3), normal(2, 2)]),
    "Pad": (lambda x: T.pad(x, ((1, 2), (0, 1))), [normal(2, 3)]),
    "padding by reflection": (lambda x: T.pad(x, ((1, 2), (0, 1)), mode="reflect"), [normal(4, 3)]),
    "Subtensor": (lambda x: x[::-2, 1:], [normal(4, 3)]),
    "IncSubtensor set": (lambda x, y: T.set_subtensor(x[1:, 0], y), [normal(4, 3), normal(3)]),
    "IncSubtensor add": (lambda x, y: T.inc_subtensor(x[::2], y), [normal(4, 3), normal(3)]),
    "Gather": (lambda x: x[INDEX], [normal(4, 3)]),
    "Gather of two axes": (lambda x: x[INDEX, INDEX], [normal(4, 3)]),
    "ScatterAdd": (lambda x, y: T.inc_subtensor(x[INDEX], y), [normal(4, 3), normal(3, 3)]),
    "ScatterSet": (lambda x, y: T.set_subtensor(x[np.array([3, 1])], y), [normal(4, 3), normal(2, 3)]),
    # reductions
    "Reduce sum": (lambda x: x.sum(axis=(0, 2)), [normal(2, 3, 4)]),
    "Reduce prod": (lambda x: x.prod(axis=1), [normal(3, 4)]),
    "Reduce prod with zeros": (lambda x: x.prod(axis=1), [np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [2.0, 3.0, 4.0]])]),
    "Reduce max": (lambda x: x.max(axis=0), [apart(3, 4)]),
    "Reduce min": (lambda x: x.min(axis=1, keepdims=True), [apart(3, 4)]),
    "Reduce mean": (lambda x: x.mean(), [normal(3, 4)]),
    "Moments mean": (lambda x: moments(x, (0, 2))[0], [normal(2, 3, 4)]),
    "Moments both": (lambda x: moments(x, 1)[0] * moments(x, 1)[1], [normal(2, 4)]),
    "Moments twice": (cost(lambda x: moments(x, 1)[0] * moments(x, 1)[1]), [normal(2, 4)]),
    "Reduce variance": (lambda x: x.var(axis=0), [normal(3, 4)]),
    # running sums, and elements in order
    "Cumulative sum": (lambda x: T.cumsum(x, axis=1), [normal(2, 3)]),
    "Cumulative product": (lambda x: T.cumprod(x, axis=0), [positive(3, 2)]),
    "sorting": (lambda x: T.sort(x, axis=0), [apart(3, 4)]),
    # products
    "MatMul": (T.matmul, [normal(3, 4), normal(4, 2)]),
    "MatMul batched": (T.matmul, [normal(2, 3, 4), normal(2, 4, 2)]),
    "MatMul vectors": (T.dot, [normal(4), normal(4)]),
    # softmax
    "Softmax": (lambda x: nnet.softmax(x, axis=0), [normal(3, 4)]),
    "SoftmaxGrad": (cost(lambda x: nnet.softmax(x)), [normal(3, 4)]),
    "LogSoftmax": (lambda x: nnet.log_softmax(x), [normal(3, 4)]),
    "LogSoftmaxGrad": (cost(lambda x: nnet.log_softmax(x)), [normal(3, 4)]),
    "cross-entropy": (lambda x: nnet.softmax_cross_entropy(x, INDEX), [normal(3, 4)]),
    # pooling
    **{f"Pool {mode}": (lambda x, mode=mode: apply_op(replace(WINDOW, mode=mode), x), [apart(2, 1, 5, 4)])
       for mode in ("max", "sum", "average_inc_pad", "average_exc_pad")},
    "Pool keeping the border": (lambda x: nnet.pool_2d(x, (2, 3), ignore_border=False), [apart(1, 2, 5, 4)]),
    "Pool of 1 axis": (lambda x: nnet.pool_1d(x, 3, stride=2, pad=1), [apart(2, 7)]),
    "Pool of 3 axes": (lambda x: nnet.pool_3d(x, 2, mode="average_exc_pad"), [normal(1, 4, 4, 4)]),
    "MaxPoolGrad": (lambda g: max_pool_grad(WINDOW, T.constant(apart_image), g), [normal(1, 1, 3, 4)]),
    "MaxPoolGather": (lambda v: max_pool_gather(WINDOW, T.constant(apart_image), v), [normal(1, 1, 5, 4)]),
    "AveragePoolGrad": (lambda g: average_pool_grad(AVERAGE, g, T.constant(apart_image)), [normal(1, 1, 3, 4)]),
    # convolution: each kind in both of its tensors, and a gradient of a gradient
    "Conv fprop": (lambda x, w: nnet.conv2d(x, w, border_mode=((1, 0), (0, 2)), subsample=(2, 1), filter_dilation=(1, 2)),
                   [normal(2, 2, 5, 5), normal(3, 2, 2, 2)]),
    "Conv fprop grouped": (lambda x, w: nnet.conv2d(x, w, num_groups=2), [normal(1, 4, 4, 4), normal(4, 2, 2, 2)]),
    "Conv fprop 1-D": (lambda x, w: nnet.causal_conv1d(x, w, filter_dilation=2), [normal(2, 2, 6), normal(2, 2, 2)]),
    "Conv fprop 3-D": (lambda x, w: nnet.conv3d(x, w), [normal(1, 1, 3, 4, 3), normal(2, 1, 2, 2, 2)]),
    "Conv dgrad": (lambda y, w: nnet.conv2d_transpose(y, w, border_mode=1, input_dilation=2, output_padding=1),
                   [normal(1, 3, 3, 2), normal(3, 2, 3, 3)]),
    "Conv wgrad": (lambda x, y: nnet.conv_wgrad(x, y, stride=2, weight_shape=(3, 2, 3, 2)),
                   [normal(2, 2, 5, 4), normal(2, 3, 2, 2)]),
    "Conv of second order": (cost(lambda x, w: nnet.conv2d(x, w, subsample=2)), [normal(1, 1, 5, 5), normal(2, 1, 3, 3)]),
    # what changes only gradients, at points where it changes nothing
    "GradientControl": (lambda x: T.grad_clip(x, -1e9, 1e9) * T.grad_scale(x, 1.0), [normal(3)]),
}
apart_image = apart(1, 1, 5, 4)

# Ops whose results do not depend on their inputs continuously, or have no float inputs; and FusedElementwise, ReduceMany,
# BlockedPool, BlockedPoolGrad, ConvChain, PoolPlaces and PooledConv, which rewrites make after gradients are taken.
NOT_DIFFERENTIABLE = {"Shape", "MakeVector", "ArgReduce", "ArgSort", "ARange", "Eye", "Random", "StopGradient", "FusedElementwise",
                      "BlockedPool", "BlockedPoolGrad", "ConvChain", "ReduceMany", "PoolPlaces", "PooledConv"}
VERIFIED_BY_SCALARS = {"Elementwise"}

# One argument list for each scalar function with a gradient, away from kinks and poles
ARGUMENTS: dict[str, list[Array]] = {
    **{name: [normal(3, 4), normal(4)] for name in ("add", "sub", "mul", "masked_mul", "logaddexp")},
    **{name: [normal(3, 4), positive(4)] for name in ("true_div", "arctan2")},
    **{name: [apart(3, 4), apart(3, 4)[::-1, ::-1] + 0.07] for name in ("maximum", "minimum")},
    "pow": [positive(3, 4), normal(4)],
    "mod": [np.array([5.3, -5.3, 7.1]), np.array([2.0, 3.0, -4.0])],
    "clip": [np.array([-2.0, -0.5, 0.5, 2.0]), np.array(-1.0), np.array(1.0)],
    "where": [normal(3, 4), normal(4)],
    **{name: [positive(3, 4)] for name in ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal")},
    **{name: [generator.uniform(-0.9, 0.9, (3, 4))] for name in ("arcsin", "arccos")},
    **{name: [apart(3, 4) - 1.85] for name in ("abs", "relu")},
    **{name: [normal(3, 4)] for name in ("neg", "square", "exp", "exp2", "expm1", "sin", "cos", "tan", "arctan", "sinh",
                                         "cosh", "tanh", "erf", "sigmoid", "softplus", "cast")},
}


def op_classes() -> set[str]:
    """Names of all op classes that can be reached from symconv.ops."""
    for module in pkgutil.walk_packages(symconv.ops.__path__, "symconv.ops."):
        importlib.import_module(module.name)
    found: set[type] = set()
    waiting = [Op]
    while waiting:
        for each in waiting.pop().__subclasses__():
            if each.__module__.startswith("symconv.") and each not in found:
                found.add(each)
                waiting.append(each)
    return {each.__name__ for each in found if not each.__name__.startswith("_")}


def test_every_op_has_a_case() -> None:
    covered = {name.split()[0] for name in CASES} | NOT_DIFFERENTIABLE | VERIFIED_BY_SCALARS
    assert op_classes() - covered == set(), "ops without a case in this file"
    assert (NOT_DIFFERENTIABLE | VERIFIED_BY_SCALARS) - op_classes() == set(), "names that are no ops"


def test_every_scalar_function_has_a_case() -> None:
    assert set(RULES) == set(ARGUMENTS)
    assert set(RULES) <= set(SCALAR_OPS)


@pytest.mark.parametrize("name", CASES)
def test_gradient(name: str) -> None:
    build, arrays = CASES[name]
    inputs = [T.constant(array).type for array in arrays]
    built = build(*(Variable(type) for type in inputs))
    used = {type(node.op).__name__ for node in toposort([built])}
    if name.split()[0] in op_classes():
        assert name.split()[0] in used, f"the case {name} is made of {sorted(used)}"
    sc.verify_grad(build, arrays, n_tests=1)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_gradient_of_a_scalar_function(name: str) -> None:
    if name == "where":
        condition = np.array([True, False, False, True])
        sc.verify_grad(lambda a, b: T.where(condition, a, b), ARGUMENTS[name], n_tests=1)
    elif name == "cast":
        sc.verify_grad(lambda x: T.cast(T.cast(x, "float32") * 2, "float64"), ARGUMENTS[name], n_tests=1, eps=1e-3,
                       rel_tol=1e-3)
    else:
        sc.verify_grad(getattr(elementwise, name), ARGUMENTS[name], n_tests=1)


def test_what_is_not_differentiable_has_no_gradient() -> None:
    """Through comparisons, floors, argmax, shapes and stopped values nothing flows: the input is disconnected, told so."""
    x = T.vector("x", dtype="float64")
    for result in (T.argmax(x).astype("float64"), x.shape[0].astype("float64"), T.disconnected_grad(x).sum(),
                   (x > 0).astype("float64").sum(), T.floor(x).sum()):
        with pytest.raises(sc.errors.DisconnectedInputError):
            sc.grad(result, x)


def test_a_wrong_gradient_is_found() -> None:
    """The check itself can fail."""
    with pytest.raises(sc.errors.GradientError, match="is wrong at"):
        sc.verify_grad(lambda x: T.grad_scale(x * x, 1.01), [normal(3)])
