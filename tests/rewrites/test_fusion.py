"""Elementwise fusing: groups, several outputs, limits, reductions, refusals; large graphs in linear time."""
from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from rewriting import WILLING, bound, leaf, ops

import symconv.tensor as T
from symconv.graph import FunctionGraph, Variable, capture
from symconv.graph.gradient import grad
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.rewrites import rewrite_bound, rewrite_symbolic
from symconv.rewrites.elementwise_fusion import MAX_INPUTS, MAX_INSTRUCTIONS

RNG = np.random.default_rng(5)
x, y, z = leaf("float64", (4, 3), "x"), leaf("float64", (4, 3), "y"), leaf("float64", (3,), "z")
VALUES = {each: RNG.normal(size=each.type.shape) for each in (x, y, z)}
X, Y, Z = VALUES[x], VALUES[y], VALUES[z]


def test_a_chain_is_one_kernel() -> None:
    graph, (found,), _ = bound(VALUES, [T.tanh(2.0 * x + y) * z])
    program = "v3 = 2.0:float64; v4 = mul(v3, v0); v5 = add(v4, v1); v6 = tanh(v5); v7 = mul(v6, v2) -> v7"
    assert ops(graph) == [f"fused{{{program}}}"]
    np.testing.assert_allclose(found, np.tanh(2 * X + Y) * Z, rtol=1e-14)


def test_a_value_read_twice_inside_is_computed_once() -> None:
    shared = T.exp(x)
    graph, (found,), _ = bound(VALUES, [shared / (1 + T.sin(shared))])
    assert ops(graph)[0].count("exp") == 1
    assert len(ops(graph)) == 1
    np.testing.assert_allclose(found, np.exp(X) / (1 + np.sin(np.exp(X))), rtol=1e-14)


def test_an_inner_value_that_is_an_output() -> None:
    velocity = 0.9 * y - 0.1 * x
    graph, found, _ = bound(VALUES, [velocity, x + velocity])
    (node,) = graph.nodes
    assert isinstance(node.op, FusedElementwise)
    assert len(node.outputs) == 2
    np.testing.assert_allclose(found[0], 0.9 * Y - 0.1 * X, rtol=1e-14)
    np.testing.assert_allclose(found[1], X + 0.9 * Y - 0.1 * X, rtol=1e-13)


def test_a_value_read_outside_stays_apart() -> None:
    shared = T.exp(x)
    graph, found, _ = bound(VALUES, [T.tanh(shared * 2), T.dot(shared, shared.T)])
    assert len([name for name in ops(graph) if "exp" in name]) == 1
    np.testing.assert_allclose(found[0], np.tanh(np.exp(X) * 2), rtol=1e-14)


def test_no_cycle_through_another_node() -> None:
    """x + f(x): the value reaches the sum directly and through a reduction; fusing all three would need itself."""
    shared = T.exp(x)
    graph, (found,), _ = bound(VALUES, [shared * T.sin(shared.sum(axis=0, keepdims=True))])
    np.testing.assert_allclose(found, np.exp(X) * np.sin(np.exp(X).sum(0)), rtol=1e-13)
    assert len(graph.nodes) >= 3


def test_expensive_small_values_are_not_repeated() -> None:
    assert len(ops(bound(VALUES, [x * T.exp(z)])[0])) == 2
    assert len(ops(bound(VALUES, [x * (z + 1.0)])[0])) == 1


def test_into_a_reduction() -> None:
    graph, (found,), _ = bound(VALUES, [T.square(x - y).sum(axis=1)])
    assert ops(graph) == ["sum{axes=(1,), v2 = sub(v0, v1); v3 = square(v2) -> v3}"]
    np.testing.assert_allclose(found, ((X - Y) ** 2).sum(1), rtol=1e-14)
    difference = x - y
    graph, _, _ = bound(VALUES, [difference, T.square(difference).sum()])
    assert ops(graph) == ["sub", "sum{axes=(0, 1), v1 = square(v0) -> v1}"]


def test_a_constant_that_gives_the_rank_stays_an_input() -> None:
    _, (found,), _ = bound(VALUES, [T.exp(z + T.constant(np.array([[2.0]])))])
    assert found.shape == (1, 3)
    np.testing.assert_allclose(found, np.exp(Z + 2)[None], rtol=1e-14)


def test_casts_and_integers() -> None:
    i = leaf("int32", (4, 3), "i")
    value = RNG.integers(-5, 5, (4, 3)).astype("int32")
    graph, (found,), _ = bound({**VALUES, i: value}, [T.where(i > 0, x, y) + i.astype("float64") * 0.5])
    assert len(ops(graph)) == 1
    np.testing.assert_allclose(found, np.where(value > 0, X, Y) + value * 0.5)


def test_refusals_give_their_reasons() -> None:
    no_tanh = replace(WILLING, refuse_elementwise=lambda program: "no tanh here" if "tanh" in str(program) else None)
    graph, _, log = bound(VALUES, [T.exp(T.tanh(x * 2) + 1)], no_tanh)
    assert [name.split("{")[0] for name in ops(graph)] == ["mul", "tanh", "fused"]
    assert [each.reason for each in log.skips] == ["no tanh here"]
    from symconv.target import Target

    graph, _, log = bound(VALUES, [T.exp(x * 2)], Target())
    assert ops(graph) == ["mul", "exp"]
    assert {each.reason for each in log.skips} == {"this device fuses nothing"}


def rewritten(inputs: list[Variable], outputs: list[Variable]) -> FunctionGraph:
    graph, log = rewrite_symbolic(capture(inputs, outputs), WILLING)
    return rewrite_bound(graph, WILLING, log=log)[0]


def test_a_sum_of_2000_inputs() -> None:
    inputs = [leaf("float32", (5,), f"x{number}") for number in range(2000)]
    total = inputs[0]
    for each in inputs[1:]:
        total = total + each
    graph = rewritten(inputs, [total])
    assert all(len(node.inputs) <= MAX_INPUTS for node in graph.nodes)
    assert len(graph.nodes) == pytest.approx(2000 / (MAX_INPUTS - 1), abs=2)


def chain(length: int) -> Variable:
    value: Variable = x
    for _ in range(length):
        value = value + y
    return value


def test_a_chain_of_20000_adds_in_linear_time() -> None:
    def seconds(length: int) -> float:
        output = chain(length)
        started = time.process_time()
        graph = rewritten([x, y], [output])
        assert all(len(node.op.program.body) <= MAX_INSTRUCTIONS for node in graph.nodes)
        assert len(graph.nodes) == -(-length // MAX_INSTRUCTIONS)
        return time.process_time() - started

    seconds(100)
    short, long = min(seconds(2000), seconds(2000)), seconds(20000)
    assert long < 30
    assert long / short < 30, f"{short:.2f} s for 2,000 nodes, {long:.2f} s for 20,000"


def test_a_deep_net_in_linear_time() -> None:
    """Residual blocks with gradients: the number of sweeps must not grow with the depth."""
    from symconv.tensor import nnet

    def sweeps(depth: int) -> list[int]:
        image = leaf("float32", (1, 2, 4, 4), "image")
        weights = [leaf("float32", (2, 2, 3, 3), f"w{number}") for number in range(depth)]
        value = image
        for w in weights:
            value = value + T.relu(nnet.conv2d(value, w, border_mode="half"))
        outputs = grad((value ** 2).sum(), weights)
        graph, log = rewrite_symbolic(capture([image, *weights], outputs), WILLING)
        return [phase.sweeps for phase in rewrite_bound(graph, WILLING, log=log)[1].phases]

    assert sweeps(24) == sweeps(6)
