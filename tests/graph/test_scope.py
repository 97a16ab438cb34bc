"""Name scopes: noted on nodes and leaves, never part of what a node is, kept by all that keeps the user's lines."""
from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError
from symconv.graph import capture
from symconv.graph.scope import common_scope


def test_scopes_nest_and_end():
    with sc.name_scope("block1") as outer:
        x = T.vector("x")
        with sc.name_scope("conv/scale") as inner:
            y = x * 2
        z = y + 1
    assert (outer, inner) == ("block1", "block1/conv/scale")
    assert (x.scopes, y.scopes, z.scopes) == (("block1",), ("block1/conv/scale",), ("block1",))
    assert (z + 1).scopes == ()


def test_a_scope_ends_where_an_error_leaves_it():
    with pytest.raises(ZeroDivisionError), sc.name_scope("block"):
        raise ZeroDivisionError
    assert T.vector("x").scopes == ()


def test_a_function_can_be_decorated():
    @sc.name_scope("block")
    def block(v):
        return T.exp(v)

    x = T.vector("x")
    assert block(block(x)).scopes == ("block",)


@pytest.mark.parametrize("name", ["", "/", "a//b", "a/", " ", "new\nline", "\x00", "\ud800", None, 3, ("a",)])
def test_other_names_are_refused(name):
    with pytest.raises(ArgumentError, match="name scope"), sc.name_scope(name):
        pass


def test_threads_have_scopes_of_their_own():
    found = []
    with sc.name_scope("block"):
        thread = threading.Thread(target=lambda: found.append(T.vector("x").scopes))
        thread.start()
        thread.join()
    assert found == [()]


def test_equal_nodes_of_two_scopes_are_one_node_with_both():
    x = T.vector("x")
    sums = []
    for name in ("a", "b"):
        with sc.name_scope(name):
            sums.append(T.exp(x))
    graph = capture([x], sums)
    assert len(graph.nodes) == 1
    assert graph.outputs[0].scopes == ("a", "b")


def test_what_is_fused_has_the_scopes_of_its_parts():
    x = T.vector("x", "float32", shape=(5,))
    with sc.name_scope("block/exp"):
        y = T.exp(x)
    with sc.name_scope("block/scale"):
        y = y * 3 + 1
    program = sc.compile([x], y).programs[-1]
    (node,) = program.graph.nodes
    assert set(node.outputs[0].scopes) == {"block/exp", "block/scale"}


def test_gradients_are_in_the_scope_of_what_they_are_of():
    x = T.vector("x")
    with sc.name_scope("model"):
        with sc.name_scope("block"):
            y = T.exp(x)
        cost = y.sum()
        assert sc.grad(cost, x).scopes == ("model/gradient/block",)
    first = sc.grad(cost, x)
    assert first.scopes == ("gradient/model/block",)
    assert set(sc.grad(first.sum(), x).scopes) == {"gradient/model/block"}


def test_a_gradient_of_several_readers_is_in_the_scope_of_the_variable():
    with sc.name_scope("block"):
        x = T.vector("x")
        y = x * 1.5
    cost = (T.exp(y) + T.tanh(y)).sum()
    cotangent = sc.grad(cost, y)
    assert str(cotangent.apply.op) == "add"
    assert cotangent.scopes == ("gradient/block",)


def test_they_survive_pickling_copying_saving_and_compiling(tmp_path):
    with sc.name_scope("block"):
        x = T.vector("x", "float32", shape=(3,))
        W = sc.shared(np.ones(3, "float32"), "W")
        y = T.sqrt(x * W) + 2.5
    for copied in (pickle.loads(pickle.dumps(y)), copy.deepcopy(y)):
        assert all(leaf.scopes == ("block",) for leaf in sc.graph.leaves([copied]))
        assert copied.scopes == ("block",)
    function = sc.compile([x], y)
    function.save(tmp_path / "function")
    for loaded in (sc.load(tmp_path / "function"), pickle.loads(pickle.dumps(function))):
        assert loaded.recipe.outputs.scopes == ("block",)
        assert {leaf.scopes for leaf in loaded.graph.leaves} == {("block",)}


def test_errors_and_reports_tell_the_scope():
    with pytest.raises(sc.UserError, match=r"\(in block1/sum\)"), sc.name_scope("block1"), sc.name_scope("sum"):
        T.vector("x", shape=(3,)) + T.vector("y", shape=(4,))
    with sc.name_scope("block1"):
        x = T.tensor4("x", "float32", shape=(1, 1, 5, 5))
        y = T.nnet.conv2d(x, sc.shared(np.ones((1, 1, 3, 3), "float32"), "W"))
    assert "(in block1)" in sc.compile([x], y).explain("Conv")


def test_the_common_scope():
    assert common_scope(["a/b/c", "a/b", "a/b/d"]) == "a/b"
    assert common_scope(["a", "b"]) == ""
