"""Types, nodes, capture, substitution, pickling: structure only, no numbers."""
from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import GraphTypeError, ShapeError
from symconv.graph import Constant, TensorType, ancestors, capture, leaves, toposort
from symconv.graph.types import make_type


def test_a_type_accepts_what_does_not_contradict_it():
    wide, narrow = TensorType("float32", (None, 3)), TensorType("float32", (5, 3))
    assert wide.accepts(narrow)
    assert narrow.accepts(wide)
    assert not narrow.accepts(TensorType("float32", (6, 3)))
    assert not wide.accepts(TensorType("float64", (5, 3)))
    assert not wide.accepts(TensorType("float32", (5, 3, 1)))
    assert wide.meet(narrow) == narrow
    assert str(wide) == "float32[?,3]"


@pytest.mark.parametrize("shape", [(-1,), (2.5,), ("3",), (True,)])
def test_a_static_shape_holds_whole_numbers(shape):
    with pytest.raises(GraphTypeError, match="whole numbers"):
        make_type("float32", shape)


def test_an_unknown_dtype_is_named():
    with pytest.raises(GraphTypeError, match="complex64"):
        T.matrix(dtype="complex64")


def test_a_node_knows_the_line_that_made_it():
    x = T.matrix("x")
    y = x + 1  # this line
    (place,) = y.source
    assert place.filename == __file__
    assert place.text == "y = x + 1  # this line"


def test_toposort_lists_inputs_before_readers_and_each_node_once():
    x, y = T.vectors("x", "y")
    shared_part = x * y
    z = shared_part + T.exp(shared_part)
    order = toposort([z])
    assert len(order) == len(set(order)) == 3
    for position, node in enumerate(order):
        assert all(each.apply is None or each.apply in order[:position] for each in node.inputs)
    assert set(leaves([z])) == {x, y}
    assert {x, y, shared_part, z} <= set(ancestors([z]))


def test_capture_makes_equal_expressions_one_node():
    x = T.vector("x")
    first, second = T.exp(x) * 2, T.exp(x) * 2
    assert first is not second
    graph = capture([x], [first, second])
    assert graph.outputs[0] is graph.outputs[1]
    assert len(graph.nodes) == 2


def test_capture_keeps_different_constants_apart():
    x = T.vector("x")
    graph = capture([x], [x + 1.0, x + 1.0, x + 2.0])
    assert graph.outputs[0] is graph.outputs[1]
    assert graph.outputs[0] is not graph.outputs[2]


def test_givens_are_not_searched_themselves():
    x, y = T.vectors("x", "y")
    graph = capture([x, y], [x + 2 * y], replace={x: x + y, y: x})
    assert sc.compile([x, y], x + 2 * y, mode="reference")([1.0], [10.0]) == 21
    arrays = sc.compile([], x + 2 * y, givens={x: np.float32([1.0]), y: np.float32([10.0])}, mode="reference")()
    assert arrays == 21
    assert len(graph.nodes) == 3


def test_clone_replaces_and_shares_the_rest():
    x, y = T.vectors("x", "y")
    kept = T.exp(y)
    z = x * kept
    copied = sc.clone(z, {x: y + 1})
    assert copied is not z
    assert kept.apply in toposort([copied])
    assert copied.eval({y: np.float32([0.0])}) == pytest.approx(1.0)
    with pytest.raises(GraphTypeError, match="another type"):
        sc.clone(z, {x: T.matrix()})


def test_names_and_tags_are_no_part_of_identity():
    x = T.vector("x")
    y = x + 1
    y.name, y.tag.note = "y", "mine"
    graph = capture([x], [y, x + 1])
    assert graph.outputs[0] is graph.outputs[1]
    assert y.tag.note == "mine"


def test_a_constant_is_a_copy_that_cannot_be_written():
    array = np.arange(3.0)
    constant = Constant(array)
    array[0] = 9
    assert constant.data[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        constant.data[0] = 1


def test_a_variable_has_no_truth_value():
    x = T.scalar("x")
    with pytest.raises(GraphTypeError, match="no truth value"):
        bool(x > 0)
    assert (x == x) is True
    assert (x != T.scalar("x")) is True


@pytest.mark.parametrize("duplicate", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_pickling_keeps_sharing_names_and_values(duplicate):
    x = T.vector("x")
    h = T.exp(x)
    h.name = "h"
    w = sc.shared(np.float32([2.0]), "w")
    x2, y2, z2, w2 = duplicate((x, h + 1, h * w, w))
    assert {x2, w2} <= set(leaves([y2, z2]))
    assert sum(each.name == "h" for each in ancestors([y2, z2])) == 1
    w2.set_value(np.float32([3.0]))
    assert w.get_value() == 2
    assert sc.compile([x2], [y2, z2], mode="reference")([0.0]) == [2.0, 3.0]


def test_a_chain_of_20000_nodes_needs_no_deep_recursion():
    x = T.scalar("x", dtype="float64")
    y = x
    for _ in range(20_000):
        y = y + 1.0
    assert len(toposort([y])) == 20_000
    assert len(capture([x], [y]).nodes) == 20_000
    assert sc.grad(y, x).apply is None
    again, y2 = pickle.loads(pickle.dumps((x, y)))
    assert again in leaves([y2])
    assert len(toposort([copy.deepcopy(y)])) == 20_000
    assert sc.compile([x], y, mode="reference")(1.0) == 20_001


def test_pickling_twice_works_alike():
    x = T.scalar("x")
    y = x
    for _ in range(3_000):
        y = y * 1.5
    first, second = pickle.dumps([y / 2, y]), pickle.dumps(y)
    assert pickle.dumps(y) == second
    assert len(toposort([pickle.loads(first)[1]])) == 3_000


def test_a_shape_clash_names_the_line_and_both_sizes():
    x, y = T.matrix("x", shape=(3, 4)), T.matrix("y", shape=(3, 5))
    with pytest.raises(ShapeError) as caught:
        x + y
    text = str(caught.value)
    assert "4" in text
    assert "5" in text
    assert f"{__file__}:" in text
