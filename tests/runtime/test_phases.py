"""The phases run again: the same end, whole graphs between, and images that lead from one to the next."""
from __future__ import annotations

import numpy as np
import pytest
from printing.graphs import classify, counter
from support import evaluate

import symconv as sc
import symconv.tensor as T
from symconv.rewrites.fuel import FUEL
from symconv.runtime.phases import AS_WRITTEN, BIND, PROGRAM, compilation_history, matching


def test_a_function_without_a_program_has_the_symbolic_phases():
    history = compilation_history(classify())
    assert [each.name for each in history.snapshots] == [AS_WRITTEN, "canonicalize", "stabilize", "conv_canonical", "specialize"]
    assert not history.note


def test_the_last_snapshot_is_the_programs_graph():
    function = classify()
    function.prepare((2, 1, 6, 6))
    (kept,) = function.kept
    history = compilation_history(function, kept)
    names = [each.name for each in history.snapshots]
    assert names[5] == BIND
    assert names[-1] == PROGRAM
    assert not history.note
    assert history.snapshots[-1].graph is kept.program.graph
    counts = {each.name: len(each.applications) for each in history.snapshots}
    assert sum(counts.values()) == len(function.log.applications) + len(kept.log.applications)


@pytest.mark.parametrize("make", [classify, counter])
def test_every_snapshot_computes_the_same_and_images_lead_from_one_to_the_next(make):
    function = make()
    if not function.kept:
        function.prepare((2, 1, 6, 6))
    history = compilation_history(function, function.kept[0])
    rng = np.random.default_rng(0)
    for before, after in zip(history.snapshots, history.snapshots[1:], strict=False):
        for old, new in zip(before.graph.results, after.graph.results, strict=True):
            assert before.name == AS_WRITTEN or after.images.get(old, old) is new or old.apply is None
    first = history.snapshots[-2].graph
    values = {leaf: rng.random(leaf.static_shape).astype(leaf.dtype) for leaf in first.leaves if not hasattr(leaf, "data")}
    want = evaluate(list(first.results), values)
    last = history.snapshots[-1]
    got = evaluate(list(last.graph.results), {last.images.get(leaf, leaf): value for leaf, value in values.items()})
    for one, other in zip(want, got, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_shapes_that_depend_on_values_leave_the_bound_phases_out():
    x, n = T.vector("x", "float32"), T.lscalar("n")
    function = sc.compile([x, n], T.exp(x[:n]))
    function(np.ones(5, "float32"), 3)
    history = compilation_history(function, function.kept[0])
    assert "values of the call" in history.note
    assert history.snapshots[-1].graph is function.kept[0].program.graph


def test_fuel_is_as_it_was_and_none_is_spent():
    x = T.vector("x", "float32", shape=(3,))
    with sc.config.change(fuel=1):
        function = sc.compile([x], T.log(1 + T.exp(x * 1)) + 0)
        spent = FUEL.spent
        history = compilation_history(function, function.kept[0])
        assert FUEL.spent == spent
    assert sum(len(each.applications) for each in history.snapshots) == len(function.log.applications) + len(
        function.kept[0].log.applications) == 1
    assert not history.note


def test_a_history_that_ends_elsewhere_says_so(monkeypatch):
    x = T.vector("x", "float32", shape=(3,))
    function = sc.compile([x], T.exp(x) * 2)
    monkeypatch.setattr(function, "mode", function.mode.excluding("elemwise_fuse"))
    assert "settings have changed" in compilation_history(function, function.kept[0]).note


def test_matching_tells_graphs_apart():
    x = T.vector("x")
    from symconv.graph import capture

    one, same, other = (capture([x], [y]) for y in (T.exp(x) + x, T.exp(x) + x, T.tanh(x) + x))
    found = matching(one, same)
    assert found is not None
    assert found[one.outputs[0]] is same.outputs[0]
    assert matching(one, other) is None
