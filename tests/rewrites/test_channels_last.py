"""On a GPU chains of convolutions and their gradients work with channels last: the same values, conversions at the edges only."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.errors import InternalError
from symconv.graph import FunctionGraph, TensorType, Variable, capture
from symconv.ops.basic_indexing import Subtensor
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.layout import CHANNELS_LAST, Layout, plain_strides
from symconv.ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from symconv.ops.moments import moments
from symconv.ops.pooling import Pool
from symconv.ops.reductions import Reduce
from symconv.ops.shape import BroadcastTo, DimShuffle
from symconv.ops.spec import Kind
from symconv.rewrites.log import Log
from symconv.rewrites.pipeline import rewrite_bound
from symconv.runtime.interpret import evaluate
from symconv.target import Target
from symconv.tensor import nnet

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)
LAST = Layout(CHANNELS_LAST, CHANNELS_LAST)


def weights(*shape: int) -> Variable:
    return sc.shared((RNG.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype("float64"), shape=shape)


def normalised(x: Variable) -> Variable:
    mean, variance = moments(x, (0, 2, 3))
    scale, shift = (weights(x.type.static_shape[1]).dimshuffle("x", 0, "x", "x") for _ in range(2))
    return (x - mean) / T.sqrt(variance + 1e-3) * scale + shift


def conv(x: Variable, w: Variable, stride: int = 1) -> Variable:
    return nnet.conv2d(x, w, border_mode=w.type.static_shape[2] // 2, subsample=stride)


def network(x: Variable) -> tuple[Variable, list[Variable]]:
    """A loss with batch normalisation, residual, both kinds of pools; and the filters of four convolutions."""
    filters = [weights(6, 3, 3, 3), weights(6, 6, 3, 3), weights(4, 6, 1, 1), weights(4, 4, 3, 3)]
    h = nnet.max_pool_2d(nnet.relu(normalised(conv(x, filters[0]))), (3, 3), (2, 2), (1, 1))
    h = nnet.relu(h + conv(h, filters[1]))
    h = T.tanh(conv(h, filters[2], stride=2))
    h = nnet.average_pool_2d(conv(h, filters[3]), (2, 2))
    return (h.mean(axis=(2, 3)) ** 2).sum(), filters


def rewritten(outputs: list[Variable], x: Variable, estimate: Any) -> tuple[FunctionGraph, Log]:
    target = Target("cuda", arch=90, estimate=estimate, refuse_epilogue=lambda *_: None)
    with config.change(verify=True):
        return rewrite_bound(capture([x], outputs), target)


def last_is_faster(op: Any, *_: Any) -> float | str:
    if isinstance(op, Conv):
        return 1e-3 if op.layout is None else 1e-4
    return "no kernel"


def test_a_training_step_has_the_same_values_and_converts_at_the_edges_only() -> None:
    x = T.tensor("x", "float64", (2, 3, 16, 16))
    loss, filters = network(x)
    outputs = [loss, *sc.grad(loss, filters)]
    image = RNG.standard_normal((2, 3, 16, 16))
    graph, _ = rewritten(outputs, x, last_is_faster)
    convolutions = [node.op for node in graph.nodes if isinstance(node.op, Conv)]
    assert len(convolutions) == 4 + 3 + 4  # no gradient of the image is asked for
    assert all(op.layout == LAST for op in convolutions)
    assert {op.kind for op in convolutions} == set(Kind)
    found = evaluate(graph.outputs, {graph.inputs[0]: image})
    for result, wanted in zip(found, evaluate(outputs, {x: image}), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12)
    moved = [node for node in graph.nodes if isinstance(node.op, DimShuffle) and node.inputs[0].type.static_shape[:1] == (2,)
             and node.inputs[0].ndim == 4 and not isinstance(node.inputs[0].apply and node.inputs[0].apply.op, BroadcastTo)]
    readers = [{type(each.op) for each in graph.readers[node.outputs[0]]} for node in moved]
    assert readers == [{Conv}, {Subtensor}]  # the image, once, for both of its readers; and a view of one pixel
    kinds = {type(node.op) for node in graph.nodes}
    assert {BlockedPool, BlockedPoolGrad, Reduce} <= kinds
    assert Pool not in kinds


def test_a_gain_that_does_not_pay_for_conversions_is_left_with_its_reason() -> None:
    x = T.tensor("x", "float32", (8, 64, 64, 64))
    w = sc.shared(np.zeros((64, 64, 3, 3), "float32"), shape=(64, 64, 3, 3))
    graph, log = rewritten([conv(x, w)], x, lambda op, *_: 10e-6 if op.layout is None else 9e-6)
    assert all(node.op.layout is None for node in graph.nodes if isinstance(node.op, Conv))
    reasons = [each.reason for each in log.skips if each.rule == "choose_layouts"]
    assert reasons == ["with channels last an estimated 9 µs instead of 10 µs, and conversions would cost more than that"]


def test_a_convolution_alone_is_converted_where_that_pays() -> None:
    x = T.tensor("x", "float32", (2, 8, 9, 9))
    w = sc.shared(RNG.standard_normal((4, 8, 3, 3)).astype("float32"), shape=(4, 8, 3, 3))
    graph, _ = rewritten([conv(x, w)], x, last_is_faster)
    assert [node.op.layout for node in graph.nodes if isinstance(node.op, Conv)] == [LAST]
    image = RNG.standard_normal((2, 8, 9, 9)).astype("float32")
    (result,) = evaluate(graph.outputs, {graph.inputs[0]: image})
    (wanted,) = evaluate([conv(x, w)], {x: image})
    np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("text", ["fprop n2 c4 h6 w5 k3 r3 s3 f16 nhwc", "dgrad n2 c4 d3 h6 w5 k3 t1 r3 s3 f32 ndhwc",
                                  "wgrad n2 c4 w5 k3 s3 f32 nwc>ncw", "fprop n2 c4 h6 w5 k3 r3 s3 f16 nchw>nhwc +bias"])
def test_problem_strings(text: str) -> None:
    assert str(ConvProblem.parse(text)) == text


@pytest.mark.parametrize("text", ["nhwc>ndhwc", "nhwc>nhwc>nhwc", "nhcw", "nwc"])
def test_wrong_layouts_are_refused(text: str) -> None:
    with pytest.raises(sc.errors.ArgumentError, match=r"layout|word"):
        ConvProblem.parse(f"fprop n2 c4 h6 w5 k3 r3 s3 f16 {text}")


@pytest.mark.parametrize("kind", list(Kind))
def test_the_op_itself(kind: Kind) -> None:
    """Types and reference of each kind with channels last, against the plain one."""
    x, w, y = RNG.standard_normal((2, 4, 7, 6)), RNG.standard_normal((3, 4, 3, 3)), RNG.standard_normal((2, 3, 5, 4))
    spec = ConvProblem.parse("fprop n2 c4 h7 w6 k3 r3 s3 f64").spec
    arrays = {"x": x, "w": w, "y": y}
    read = [arrays[role] for role in kind.reads]
    shape = [] if kind is Kind.FPROP else [np.array(arrays[kind.produces].shape)]
    (wanted,) = Conv(kind, spec).reference(*read, *shape)
    moved = [array if role == "w" else np.moveaxis(array, 1, -1) for role, array in zip(kind.reads, read, strict=True)]
    op = Conv(kind, spec, layout=LAST)
    (found,) = op.reference(*moved, *shape)
    types = [TensorType(array.dtype.name, array.shape) for array in (*moved, *shape)]
    (told,) = op.infer_bound(types, dict.fromkeys(op.value_inputs, shape[0] if shape else None))
    assert told.shape == found.shape
    np.testing.assert_array_equal(found if kind is Kind.WGRAD else np.moveaxis(found, -1, 1), wanted)


def test_strides_of_the_plain_axes() -> None:
    array = np.zeros((2, 5, 6, 4))
    strides = tuple(each // 8 for each in array.strides)
    assert plain_strides(strides, CHANNELS_LAST) == tuple(each // 8 for each in np.moveaxis(array, -1, 1).strides)
    assert plain_strides((60, 20, 4, 1), 0) == (60, 20, 4, 1)
    with pytest.raises(InternalError, match="no one stride"):
        plain_strides((1, 1, 1, 1, 1), 8)
