"""The engine: fixpoints, checks of every hit, provenance, names, reasons, fuel; the pattern language; selecting rules."""
from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import pytest
from rewriting import WILLING, leaf, ops, symbolic

import symconv.tensor as T
from symconv.config import config
from symconv.errors import ArgumentError, InternalError
from symconv.graph import Apply, FunctionGraph, Variable, apply_op, capture
from symconv.ops.elementwise import Elementwise
from symconv.rewrites import FAST_COMPILE, PIPELINE, Log, rewrite_symbolic, rule_names
from symconv.rewrites.context import Context
from symconv.rewrites.engine import run_phase
from symconv.rewrites.pattern import Capture, Match, exp, log, match_pattern, node
from symconv.rewrites.rule import Answer, Phase, Rule, Skip, law, rule

x, y = Capture("x"), Capture("y")


def run(graph: FunctionGraph, *rules: Rule, log: Log | None = None) -> FunctionGraph:
    return run_phase(graph, Phase("test", rules), WILLING, log or Log())


@rule(Elementwise, scalar="sin")
def sin_to_cos(node: Apply, context: Context) -> Answer:
    return T.cos(node.inputs[0])


@rule(Elementwise, scalar="cos")
def cos_to_sin(node: Apply, context: Context) -> Answer:
    return T.sin(node.inputs[0])


def test_a_chain_settles_in_two_sweeps() -> None:
    a = T.dvector("a")
    value = a
    for _ in range(50):
        value = T.sin(value)
    log = Log()
    graph = run(capture([a], [value]), sin_to_cos, log=log)
    assert ops(graph) == ["cos"] * 50
    assert log.phases[0].sweeps == 2
    assert log.counts() == {"sin_to_cos": 50}


def test_rules_that_never_rest_are_named() -> None:
    a = T.dvector("a")
    with pytest.raises(InternalError, match=r"does not come to rest.*(sin_to_cos|cos_to_sin)"):
        run(capture([a], [T.sin(a)]), sin_to_cos, cos_to_sin)


def test_a_wrong_type_is_caught() -> None:
    @rule(Elementwise, scalar="sin")
    def to_float32(node: Apply, context: Context) -> Answer:
        return node.inputs[0].astype("float32")

    a = T.dvector("a")
    with pytest.raises(InternalError, match=r"to_float32 would change a type .*float64\[\?\].*float32\[\?\]"):
        run(capture([a], [T.sin(a)]), to_float32)


def test_a_replacement_that_knows_less_is_not_taken() -> None:
    @rule(Elementwise, scalar="add")
    def first(node: Apply, context: Context) -> Answer:
        return node.inputs[0]

    a, b = leaf("float64", (None,)), leaf("float64", (3,))
    assert ops(run(capture([a, b], [a + b]), first)) == ["add"]
    assert ops(run(capture([a, b], [b + a]), first)) == []


def test_a_user_error_inside_a_rule_is_ours() -> None:
    @rule(Elementwise, scalar="sin")
    def broken(node: Apply, context: Context) -> Answer:
        return node.inputs[0] + T.constant(np.zeros((2, 3))) + T.constant(np.zeros((5, 5)))

    a = leaf("float64", (4, 4))
    with pytest.raises(InternalError, match="the rule broken fails at sin"):
        run(capture([a], [T.sin(a)]), broken)


def test_lines_and_names_stay() -> None:
    a = T.dvector("a")
    inner, line = T.exp(a), inspect.currentframe().f_lineno  # type: ignore[union-attr]
    outer = T.log(1 + inner)
    outer.name = "cost"
    graph, log = rewrite_symbolic(capture([a], [outer]))
    (made,) = graph.nodes
    assert str(made.op) == "softplus"
    assert graph.outputs[0].name == "cost"
    assert {source.lineno for source in made.source} == {line, line + 1}
    assert all(source.filename == __file__ for source in made.source)
    assert a.name == "a"
    assert "log(add(1, exp(a)))" in str(log) or "log(add(1.0, exp(a)))" in str(log)


def test_names_never_go_onto_inputs() -> None:
    a = leaf("float64", (3,), "")
    named = a * 1
    named.name = "product"
    assert symbolic([a], [named]).outputs[0] is a
    assert a.name != "product"


def test_reasons_are_kept_where_the_node_stays() -> None:
    @rule(Elementwise, scalar={"sin", "exp"})
    def shy(node: Apply, context: Context) -> Answer:
        return Skip(f"not {node.op.name}")

    a, log = T.dvector("a"), Log()
    run(capture([a], [T.exp(T.sin(a))]), shy, sin_to_cos, log=log)
    assert [declined.reason for declined in log.skips] == ["not exp"]
    assert str(log.skips[0]) == "shy at exp(cos(a)): not exp"


def test_fuel_stops_after_so_many_hits() -> None:
    a = T.dvector("a")
    graph = capture([a], [T.sin(T.sin(T.sin(a)))])
    assert ops(run(graph, sin_to_cos, log=Log(fuel=2))) == ["cos", "cos", "sin"]
    with config.change(fuel=0):
        assert ops(rewrite_symbolic(capture([a], [T.neg(-a)]))[0]) == ["neg", "neg"]


def test_settled_nodes_are_not_asked_again() -> None:
    asked: list[str] = []

    @rule(Elementwise)
    def spy(node: Apply, context: Context) -> Answer:
        asked.append(node.op.name)
        return None

    a = T.dvector("a")
    run(capture([a], [T.tanh(a), T.exp(T.sin(a))]), spy, sin_to_cos)
    assert sorted(asked) == ["cos", "exp", "sin", "tanh"]


def test_readers_count_through_a_sweep() -> None:
    counts: dict[str, int | None] = {}

    @rule(Elementwise, scalar={"exp", "cos"})
    def count(node: Apply, context: Context) -> Answer:
        counts[node.op.name] = context.readers(node.outputs[0])
        return None

    a = T.dvector("a")
    shared = T.sin(a)
    run(capture([a], [T.exp(shared), T.tanh(shared), shared]), sin_to_cos, count)
    assert counts == {"cos": 3, "exp": 1}


def matches(pattern: object, variable: Variable) -> Iterator[Match]:
    graph = capture([a, b], [variable])
    return match_pattern(pattern, graph.outputs[0], Context(graph, WILLING))  # type: ignore[arg-type]


a, b = leaf("float64", (None,), "a"), leaf("float64", (None,), "b")


def test_patterns() -> None:
    (found,) = matches(log(1 + exp(x)), T.log(T.exp(a) + 1))
    assert found.x is a
    assert not list(matches(log(1 + exp(x)), T.log(T.exp(a) + 2)))
    assert not list(matches(x - x, a - b))
    assert [match.x for match in matches(x - x, a - a)] == [a]
    assert {(match.x, match.y) for match in matches(x * y, a * b)} == {(a, b), (b, a)}
    assert [match.x for match in matches(exp(x).called("e") * exp(y).called("f"), T.exp(a) * T.exp(b))] == [a, b]
    assert not list(matches(node(Elementwise, x, scalar="exp"), T.sin(a)))
    assert not list(matches(1 + x, a + T.constant(np.ones((2, 1)))))


def test_single_readers() -> None:
    powers = T.exp(a)
    assert list(matches(log(exp(x).once()), T.log(powers)))
    assert not list(matches(log(exp(x).once()), T.log(powers + 0 * powers)))


def test_laws_try_each_pattern() -> None:
    @law(log(exp(x)), log(-x))
    def either(match: Match) -> Answer:
        return match.x

    assert symbolic([a], [a]).outputs == (a,)
    graph = run(capture([a], [T.log(T.exp(a)), T.log(-a)]), either)
    assert graph.outputs == (a, a)


def test_rules_and_phases_by_name() -> None:
    expression = T.log(nnet_softmax(T.neg(-a)))
    assert len(rule_names()) == len(set(rule_names()))
    assert ops(symbolic([a], [expression], exclude=("stabilize",))) == ["Softmax{axis=0}", "log"]
    assert ops(symbolic([a], [expression], include=("log_softmax",))) == ["neg", "neg", "LogSoftmax{axis=0}"]
    assert ops(symbolic([a], [expression], include=())) == ["neg", "neg", "Softmax{axis=0}", "log"]
    assert set(FAST_COMPILE) <= {phase.name for phase in PIPELINE}
    with pytest.raises(ArgumentError, match="no rewrite of this name"):
        symbolic([a], [expression], include=("log_softmaxx",))


def nnet_softmax(value: Variable) -> Variable:
    from symconv.ops.softmax import Softmax

    return apply_op(Softmax(0), value)


def test_updates_are_rewritten_too() -> None:
    graph = capture([a], [], [(b, T.neg(-(b * a)))])
    graph = rewrite_symbolic(graph)[0]
    assert ops(graph) == ["mul"]
    assert graph.updates[0][0] is b
