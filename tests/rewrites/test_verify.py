"""Verification of graphs: each kind of damage is found and named."""
from __future__ import annotations

import pytest
from rewriting import leaf

import symconv.tensor as T
from symconv.errors import InternalError
from symconv.graph import Apply, FunctionGraph, TensorType, capture
from symconv.graph.verify import verify
from symconv.ops.elementwise import Elementwise

x = leaf("float64", (3,))


def graph_of(node: Apply) -> FunctionGraph:
    return FunctionGraph((x,), node.outputs, (), capture([x], [x]).interner)


def test_a_good_graph_passes() -> None:
    verify(capture([x], [T.exp(x) + T.exp(x)], [(x, x * 2)]), "nothing")


def test_a_node_that_is_not_interned() -> None:
    with pytest.raises(InternalError, match="not the interned node"):
        verify(graph_of(Apply(Elementwise("exp"), (x,), (x.type,), ())))


def test_a_wrong_type() -> None:
    graph = capture([x], [T.exp(x)])
    graph.nodes[0].outputs[0].type = TensorType("float32", (3,))
    with pytest.raises(InternalError, match=r"has the types float32\[3\], its op infers float64\[3\] \(after a test\)"):
        verify(graph, "a test")


def test_a_cycle() -> None:
    graph = capture([x], [T.exp(T.sin(x))])
    sine, exponential = graph.nodes
    sine.inputs = exponential.outputs
    with pytest.raises(InternalError, match="depends on itself"):
        verify(FunctionGraph(graph.inputs, graph.outputs, (), graph.interner))


def test_an_output_of_another_node() -> None:
    graph = capture([x], [T.exp(x), T.sin(x)])
    graph.nodes[0].outputs = graph.nodes[1].outputs
    with pytest.raises(InternalError, match="does not belong to it"):
        verify(FunctionGraph(graph.inputs, graph.outputs, (), graph.interner))


def test_an_update_of_another_type() -> None:
    with pytest.raises(InternalError, match="the update of x"):
        verify(capture([x], [], [(x, x.astype("float32"))]))
