"""Rewriting grows with the graph and not faster: told by counting what is done, which no other load on the machine changes."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.graph import FunctionGraph, capture
from symconv.rewrites import engine
from symconv.rewrites.pipeline import PIPELINE, rewrite_bound, rewrite_symbolic
from symconv.rewrites.rule import Rule
from symconv.runtime.bind import bind
from symconv.tensor import nnet


def residual_net(blocks: int) -> FunctionGraph:
    """The captured training graph of a residual net with batch normalisation and momentum."""
    x, t = T.tensor4("x", shape=(4, 8, 8, 8)), T.lvector("t", shape=(4,))
    h, parameters = x, []
    for number in range(blocks):
        weights = sc.shared(np.ones((8, 8, 3, 3), "float32"), f"w{number}", shape=(8, 8, 3, 3))
        gamma, beta = (sc.shared(np.ones(8, "float32"), shape=(8,)) for _ in range(2))
        y = nnet.batch_normalization_train(nnet.conv2d(h, weights, border_mode="half"), gamma, beta, axes="spatial")[0]
        h = nnet.relu(h + y)
        parameters += [weights, gamma, beta]
    loss = nnet.softmax_cross_entropy(h.mean(axis=(2, 3)), t).mean()
    updates = []
    for parameter, gradient in zip(parameters, sc.grad(loss, parameters), strict=True):
        velocity = sc.shared(np.zeros_like(parameter.get_value()), shape=parameter.static_shape)
        step = 0.9 * velocity - 0.1 * gradient
        updates += [(velocity, step), (parameter, parameter + step)]
    return capture([x, t], [loss], updates)


def bound(graph: FunctionGraph) -> FunctionGraph:
    """The graph with all shapes known."""
    arrays = {leaf: np.zeros(leaf.type.static_shape, leaf.type.dtype) for leaf in graph.leaves}
    return bind(graph, arrays).graph


def rewritten(graph: FunctionGraph) -> FunctionGraph:
    """The graph after all phases."""
    return rewrite_bound(bound(rewrite_symbolic(graph)[0]))[0]


def test_attempts_grow_with_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as deep: at most twice as many nodes visited, rules tried and types inferred (and a little for the ends)."""
    counts: Counter[str] = Counter()
    for owner, name in ((engine._Sweep, "_settle"), (engine._Sweep, "_asked"), (engine._Sweep, "_with_new_inputs")):
        def counted(*args: object, original: object = getattr(owner, name), name: str = name) -> object:
            counts[name] += 1
            return original(*args)  # type: ignore[operator]

        monkeypatch.setattr(owner, name, counted)
    rows = []
    for blocks in (6, 12):
        counts.clear()
        rewritten(residual_net(blocks))
        rows.append(dict(counts))
    for name, small in rows[0].items():
        assert rows[1][name] <= 2.1 * small, (name, rows)


def test_few_rules_are_tried_at_a_node() -> None:
    """What made a node's inputs leaves few of the rules that start at its op."""
    graph = residual_net(4)
    phase = next(each for each in PIPELINE if each.name == "canonicalize")
    tried = sum(len(phase.candidates(node)) for node in graph.nodes)
    started = sum(rule.starts_at(node.op) for node in graph.nodes for rule in phase.rules)
    assert tried < 0.6 * started
    assert tried < 2 * len(graph.nodes)


def answers(rule: Rule, graph: FunctionGraph) -> list[object]:
    """What a rule says, asked at every node that it is not offered."""
    phase = next(each for each in PIPELINE if rule in each.rules)
    context = engine.Context(graph, engine.Target())
    left_out = [node for node in graph.nodes if rule.starts_at(node.op)
                and all(each is not rule for each, _ in phase.candidates(node))]
    return [rule(node, context) for node in left_out]


def varied_graph() -> FunctionGraph:
    """Something for most laws: constants in all places, casts, moves, sums, stable forms, convolutions."""
    x, y = T.matrix("x", shape=(3, 4)), T.matrix("y", shape=(3, 4))
    ones, zeros = T.ones((3, 4)), T.zeros((3, 1))
    image, weights = T.tensor4("image", shape=(2, 3, 6, 6)), T.tensor4("weights", shape=(4, 3, 3, 3))
    conv = nnet.relu(nnet.conv2d(image, weights) * np.float32(2) + np.float32(1))
    minus = -y
    outputs = [x * 1, 1 * x, x + 0, x - zeros, x / ones, -minus, x - minus, x + minus, T.log(1 + T.exp(x)), T.log(T.sigmoid(x)),
               T.log(nnet.softmax(x)), T.log(T.exp(x).sum(axis=1)), x.T.T, x.T.reshape((4, 3)), (x.T + y.T).T, T.dot(x, y.T).T,
               T.where(x > 0, x, x), x.astype("float64").astype("float32"), x**2, x**-1, T.sqrt(x * x), abs(-x), conv,
               x.sum(axis=0).sum(), T.maximum(x, x), nnet.relu(nnet.relu(x)), x.dimshuffle(0, "x", 1) * 2, x[:, :] + x[::-1]]
    return capture([x, y, image, weights], outputs)


@pytest.mark.parametrize("phase", PIPELINE, ids=lambda phase: phase.name)
def test_rules_left_out_have_nothing_to_say(phase: object) -> None:
    """Sorting rules by the kinds of a node's inputs loses no match: asked all the same, the rule answers None."""
    graphs = [varied_graph(), rewrite_symbolic(varied_graph())[0], bound(varied_graph()), bound(residual_net(1))]
    for rule in phase.rules:  # type: ignore[attr-defined]
        for graph in graphs:
            for answer in answers(rule, graph):
                assert answer is None, (rule.name, answer)
