"""Chains of convolutions in blocks of channels: the same answers, few conversions, and a reason wherever they stay plain."""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.graph import FunctionGraph, Variable, capture
from symconv.ops.convolution import Conv
from symconv.ops.layout import from_blocked, to_blocked
from symconv.ops.lowered.conv_chain import ConvChain
from symconv.ops.shape import DimShuffle, Reshape
from symconv.rewrites.log import Log
from symconv.rewrites.min_cut import Cut
from symconv.rewrites.pipeline import rewrite_bound
from symconv.runtime.interpret import evaluate
from symconv.target import Target
from symconv.tensor import nnet

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)


def _filters(*shape: int) -> Variable:
    return sc.shared(RNG.standard_normal(shape).astype("float32") / math.sqrt(math.prod(shape[1:])), shape=shape)


def _conv(x: Variable, filters: int, size: int = 3, stride: int = 1, groups: int = 1) -> Variable:
    channels = x.type.static_shape[1]
    w = _filters(filters, channels // groups, *[size] * (x.ndim - 2))
    apply = nnet.conv1d if x.ndim == 3 else nnet.conv2d
    return apply(x, w, border_mode=size // 2, subsample=stride, num_groups=groups)


def _bias(x: Variable) -> Variable:
    channels = x.type.static_shape[1]
    return x + _filters(channels, 1).dimshuffle("x", 0, *["x"] * (x.ndim - 2))


def _residual(x: Variable) -> Variable:
    h = nnet.relu(_bias(_conv(x, 16)))
    h = T.clip(_bias(_conv(h, 16, groups=16, stride=2)), 0, 6)
    short = _conv(h, 24, size=1)
    return nnet.relu(short + _conv(nnet.relu(_conv(short, 24)), 24)).mean(axis=(2, 3))


def _several_readers(x: Variable) -> Variable:
    h = nnet.relu(_conv(x, 16))
    return T.concatenate([_conv(h, 8, size=1), T.tanh(h)[:, :8], (h * h.sum(axis=(2, 3), keepdims=True))[:, 8:]], axis=1)


def _reductions(x: Variable) -> Variable:
    h = T.exp(-abs(_conv(x, 16)))
    centred = h - h.mean(axis=(0, 2, 3), keepdims=True)
    return (centred * centred).sum(axis=(1, 2, 3)) + h.max(axis=(0, 2, 3))[:2] + h.sum(axis=(0, 1, 2, 3))


def _odd_channels(x: Variable) -> Variable:
    return _conv(nnet.relu(_conv(_conv(x, 8), 12)), 16)


def _pools(x: Variable) -> Variable:
    h = nnet.max_pool_2d(nnet.relu(_conv(x, 16)), 3, 2, 1)
    both = nnet.average_pool_2d(h, 2, 1, 1) * nnet.max_pool_2d(h, 4, 1, 2)
    return _conv(nnet.max_pool_2d(h, (2, 3), (2, 1)), 8).sum(axis=(2, 3)) + both.sum(axis=(2, 3))[:, :8]


def _gate(x: Variable) -> Variable:
    h = _conv(x, 16)
    gate = nnet.sigmoid(_conv(nnet.relu(_conv(h.mean(axis=(2, 3), keepdims=True), 8, size=1)), 16, size=1))
    return _conv(h * gate * T.exp(-h[:1, :1] * h[:1, :1]), 8)


def _rows_and_columns(x: Variable) -> Variable:
    h = nnet.relu(_conv(x, 16))
    return _conv(h, 16).sum(axis=2) + h.max(axis=(0, 1, 3))[0]


GRAPHS: list[tuple[Callable[[Variable], Variable], tuple[int, ...]]] = [
    (_residual, (2, 3, 13, 14)), (_several_readers, (2, 3, 9, 9)), (_reductions, (2, 3, 8, 9)), (_odd_channels, (2, 8, 7, 7)),
    (_pools, (2, 3, 15, 13)), (_gate, (2, 16, 8, 8)), (_rows_and_columns, (2, 3, 9, 7)),
    (lambda x: nnet.relu(_conv(x, 16)).sum(axis=2), (2, 3, 40))]


@pytest.mark.parametrize(("build", "shape"), GRAPHS)
def test_answers_are_the_same_and_images_stay_plain_outside(build: Callable[[Variable], Variable], shape: tuple[int, ...]) -> None:
    x = T.tensor("x", "float32", shape)
    y, image = build(x), RNG.standard_normal(shape).astype("float32")
    with config.change(layout="always"):
        blocked = sc.compile([x], y)
    with config.change(layout="off"):
        plain = sc.compile([x], y)
    assert " nc" in blocked.explain()
    assert "8c" in blocked.explain()
    assert "8c" not in plain.explain()
    double = sc.compile([x], y, mode="reference")
    wanted = double(image)
    for function in (blocked, plain):
        np.testing.assert_allclose(function(image), wanted, rtol=2e-4, atol=2e-4 * float(abs(wanted).max()))


def _rewritten(build: Callable[[Variable], Variable], shape: tuple[int, ...], estimate: Callable[..., float | str],
               exclude: tuple[str, ...] = ()) -> tuple[FunctionGraph, Log]:
    x = Variable(T.tensor("x", "float32", shape).type)
    return rewrite_bound(capture([x], [build(x)]), Target(vector_bytes=32, estimate=estimate, refuse_epilogue=lambda *_: None),
                         exclude=exclude)


def test_what_lies_in_blocks_tells_of_the_users_lines() -> None:
    x = Variable(T.tensor("x", "float32", (2, 3, 13, 14)).type)
    graph = capture([x], [_residual(x)])
    lines = {line for node in graph.nodes for line in node.source}
    with config.change(layout="always"):
        rewritten, _ = rewrite_bound(graph, Target(vector_bytes=32, estimate=lambda *_: 1.0e-6, refuse_epilogue=lambda *_: None))
    assert any(isinstance(node.op, Conv) and node.op.layout is not None for node in rewritten.nodes)
    for node in rewritten.nodes:
        assert set(node.source) <= lines, node.op


def _faster_in_blocks(op: Any, *_: Any) -> float:
    return 1e-3 if isinstance(op, Conv) and op.layout is None else 0.2e-3


def _conversions(graph: FunctionGraph) -> int:
    """Moves of the lane axis to or from the end."""
    return sum(isinstance(node.op, DimShuffle) and math.prod(node.inputs[0].type.static_shape) > 1000 for node in graph.nodes)


def test_a_chain_needs_no_conversions() -> None:
    """The first convolution reads the plain image, the reduction gives a plain result."""
    graph, log = _rewritten(_residual, (2, 3, 32, 32), _faster_in_blocks, ("join_chains",))
    layouts = [str(node.op) for node in graph.nodes if isinstance(node.op, Conv)]
    assert len(layouts) == 5
    assert sum("nchw8c" in each for each in layouts) == 5
    assert sum("nchw>nchw8c" in each for each in layouts) == 1
    assert _conversions(graph) == 0
    assert log.counts()["choose_layouts"] == 1


def test_one_conversion_serves_all_readers() -> None:
    graph, _ = _rewritten(lambda x: _conv(x, 16) * _conv(x, 16, size=1), (2, 8, 32, 32), _faster_in_blocks)
    assert _conversions(graph) == 2  # of the image, and of the product


def test_where_conversions_cost_more_the_reason_is_kept() -> None:
    """A small gain does not pay for converting a large image."""
    def estimate(op: Conv, *_: Any) -> float:
        return 10e-6 if op.layout is None else 9e-6

    graph, log = _rewritten(lambda x: _conv(x, 16), (8, 64, 64, 64), estimate)
    assert not any(isinstance(node.op, Conv) and node.op.layout for node in graph.nodes)
    (skip,) = (each for each in log.skips if each.rule == "choose_layouts")
    assert skip.reason == ("in blocks of 8 channels an estimated 9 µs instead of 10 µs, "
                           "and conversions would cost more than that")


def test_a_refusal_is_kept_as_the_reason() -> None:
    graph, log = _rewritten(lambda x: _conv(x, 16), (1, 8, 9, 9), lambda op, *_: 1.0 if op.layout is None else "not today")
    assert [each.reason for each in log.skips if each.rule == "choose_layouts"] == ["in blocks of 8 channels: not today"]
    assert not any(isinstance(node.op, Conv) and node.op.layout for node in graph.nodes)


def test_a_forced_kernel_keeps_tensors_plain() -> None:
    with config.change(conv__implementation="conv_gemm"):
        graph, log = _rewritten(lambda x: _conv(x, 16), (1, 8, 9, 9), _faster_in_blocks)
    assert not any(isinstance(node.op, Conv) and node.op.layout for node in graph.nodes)
    assert any("forces conv_gemm" in each.reason for each in log.skips)


def _inverted_residual(x: Variable) -> Variable:
    x = _conv(x, 16)
    h = T.clip(_bias(_conv(x, 48, size=1)), 0, 6)
    h = T.clip(_bias(_conv(h, 48, groups=48)), 0, 6)
    return (x + _bias(_conv(h, 16, size=1))).sum(axis=(2, 3))


def test_expansion_depthwise_and_projection_become_one_node_where_that_is_faster() -> None:
    graph, _ = _rewritten(_inverted_residual, (2, 3, 32, 32), _faster_in_blocks)
    (chain,) = (node for node in graph.nodes if isinstance(node.op, ConvChain))
    assert len(chain.op.stages) == 3  # type: ignore[attr-defined]
    assert sum(isinstance(node.op, Conv) for node in graph.nodes) == 1

    def slow_chain(op: Any, *types: Any) -> float:
        return 1.0 if isinstance(op, ConvChain) else _faster_in_blocks(op)

    graph, log = _rewritten(_inverted_residual, (2, 3, 32, 32), slow_chain)
    assert not any(isinstance(node.op, ConvChain) for node in graph.nodes)
    (skip,) = (each for each in log.skips if each.rule == "join_chains")
    assert "3 convolutions together an estimated 1000000 µs instead of 600 µs" in skip.reason


def test_the_best_of_the_chains_is_taken_though_a_longer_one_pays_too() -> None:
    def estimate(op: Any, *_: Any) -> float:
        if isinstance(op, ConvChain):
            return 500e-6 if len(op.stages) == 3 else 100e-6
        return _faster_in_blocks(op)

    graph, _ = _rewritten(_inverted_residual, (2, 3, 32, 32), estimate)
    chains = [node.op for node in graph.nodes if isinstance(node.op, ConvChain)]
    assert chains
    assert all(len(chain.stages) == 2 for chain in chains)


def test_what_another_node_reads_is_not_joined_away() -> None:
    def build(x: Variable) -> Variable:
        h = _conv(_conv(x, 16), 16, groups=16)
        return _conv(h, 8, size=1).sum(axis=(2, 3)) + h.max(axis=(2, 3))[:, :8]

    graph, _ = _rewritten(build, (2, 3, 32, 32), _faster_in_blocks)
    assert not any(isinstance(node.op, ConvChain) for node in graph.nodes)


def test_a_chain_gives_the_same_answers() -> None:
    x = T.tensor("x", "float32", (2, 3, 40, 40))
    y, image = _inverted_residual(x), RNG.standard_normal((2, 3, 40, 40)).astype("float32")
    wanted = sc.compile([x], y, mode="reference")(image)
    with config.change(layout="always"):
        function = sc.compile([x], y)
    np.testing.assert_allclose(function(image), wanted, rtol=2e-4, atol=2e-4 * float(abs(wanted).max()))


def test_conversion_is_a_view_and_its_inverse_is_exact() -> None:
    x = RNG.standard_normal((2, 24, 3, 5))
    variable = T.tensor("x", "float64", x.shape)
    blocked = to_blocked(variable, 8)
    there, back = evaluate([blocked, from_blocked(blocked, 8)], {variable: x})
    assert there.shape == (2, 3, 3, 5, 8)
    assert there[1, 2, 0, 4, 3] == x[1, 19, 0, 4]
    np.testing.assert_array_equal(back, x)
    assert isinstance(blocked.apply.op, DimShuffle)
    assert isinstance(blocked.apply.inputs[0].apply.op, Reshape)


def test_the_cut_is_the_cheapest_of_all_divisions() -> None:
    """Against all divisions of 7 nodes with random costs."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        ends: list[Any] = [*range(7), Cut.FIRST, Cut.SECOND]
        arcs = [(ends[a], ends[b], float(cost)) for a, b, cost in zip(
            rng.integers(0, 9, 25), rng.integers(0, 9, 25), rng.integers(0, 6, 25), strict=True) if a != b]
        cut = Cut()
        for arc in arcs:
            cut.add(*arc)

        def cost(first: set[Any], arcs: list[tuple[Any, Any, float]] = arcs) -> float:
            inside = first | {Cut.FIRST}
            return sum(price for start, end, price in arcs if start in inside and end not in inside)

        best = min(cost({node for node, chosen in zip(range(7), choice, strict=True) if chosen})
                   for choice in itertools.product((0, 1), repeat=7))
        assert cost(cut.first_side()) == pytest.approx(best), seed
