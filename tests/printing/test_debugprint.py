"""debugprint: every node once, options, streams, depth, hostile names, long chains; before and after compiling."""
from __future__ import annotations

import io
import re
import time

import numpy as np
import pytest
from printing.graphs import HOSTILE_NAMES, arithmetic, chain, classify, counter, hostile

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, GraphTypeError
from symconv.graph.traversal import ancestors, toposort


def graph_size(*outputs):
    return len(toposort(outputs)) + sum(variable.apply is None for variable in ancestors(outputs))


def ids(text):
    """The ids of the lines that print a node, and those of the lines that only refer to one."""
    lines = [(re.search(r"\[id (\w+)\]", line), line) for line in text.splitlines()]
    full = [match[1] for match, line in lines if match and "···" not in line]
    return full, [match[1] for match, line in lines if match and "···" in line]


@pytest.mark.parametrize("build", [arithmetic, lambda: hostile()[1], lambda: chain(100)[1], lambda: chain(100, 3)[1]])
def test_each_node_is_printed_once(build):
    output = build()
    full, repeated = ids(sc.debugprint(output, file="str"))
    assert len(full) == len(set(full)) == graph_size(output)
    assert set(repeated) <= set(full)


@pytest.mark.parametrize(("build", "shape"), [(classify, (2, 1, 6, 6)), (counter, (3,))])
def test_each_node_of_a_function_is_printed_once(build, shape):
    function = build()
    if not function.programs:
        assert len(ids(sc.debugprint(function, file="str"))[0]) == graph_size(*function.graph.results)
    function.prepare(shape)
    graph = function.programs[-1].graph
    for obj in (function, function.programs[-1], graph):
        assert len(ids(sc.debugprint(obj, file="str"))[0]) == graph_size(*graph.results)


def test_ids_are_letters_numbers_or_nothing():
    x = T.vector("x", "float64")
    assert sc.debugprint(T.exp(x), file="str") == "exp [id A]\n└─ x [id B]"
    assert sc.debugprint(T.exp(x), file="str", id_type="int") == "exp [id 0]\n└─ x [id 1]"
    assert sc.debugprint(T.exp(x), file="str", id_type="") == "exp\n└─ x"


def test_ids_after_z_are_two_letters():
    full, _ = ids(sc.debugprint(chain(30)[1], file="str"))
    assert full[25:29] == ["Z", "AA", "AB", "AC"]


def test_depth_counts_from_the_results_even_where_a_branch_goes_on_below():
    output = chain(60)[1]
    for depth in (0, 1, 25, 59):
        assert len(ids(sc.debugprint(output, file="str", depth=depth))[0]) == depth + 1
    assert len(ids(sc.debugprint(output, file="str", depth=-1))[0]) == 61


def test_stop_on_name_keeps_named_results_open():
    output = arithmetic()
    text = sc.debugprint(output, file="str", stop_on_name=True)
    assert "'product'" in text
    assert "y [id" not in text
    assert "y [id" in sc.debugprint(output.apply.inputs[0].apply.inputs[1], file="str", stop_on_name=True)


def test_types_and_shapes_are_shown_when_asked_for():
    x = T.matrix("x", "float32", shape=(None, 4))
    assert sc.debugprint(x, file="str", print_type=True) == "x [id A] float32[?,4]"
    assert sc.debugprint(x, file="str", print_shape=True) == "x [id A] (?, 4)"
    assert sc.debugprint(x, file="str") == "x [id A]"


def test_lists_and_dicts():
    x, y = T.vector("x"), T.vector("y")
    assert sc.debugprint([x, (y,)[0], x], file="str").splitlines() == ["x [id A]", "y [id B]", "x [id A] ···"]
    assert sc.debugprint({"a\nb": x}, file="str") == "a\\nb: x [id A]"


def test_prints_to_standard_output_and_to_files(capsys):
    x = T.vector("x")
    assert sc.debugprint(x) is None
    assert capsys.readouterr().out == "x [id A]\n"
    stream = io.StringIO()
    assert sc.debugprint(x, file=stream) is stream
    assert stream.getvalue() == "x [id A]\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8"])
def test_streams_get_only_characters_they_have(encoding):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    sc.debugprint(hostile()[1], file=stream)
    stream.flush()
    text = raw.getvalue().decode(encoding)
    assert len(text.splitlines()) == graph_size(hostile()[1])
    if encoding == "ascii":
        assert "`- " in text
        assert "\\xdf" in text


def test_one_line_for_each_hostile_name():
    inputs, output = hostile()
    lines = sc.debugprint(output, file="str").split("\n")
    assert len(lines) == graph_size(output) == 2 * len(inputs) - 1
    assert sum("twin [id" in line for line in lines) == 2
    assert all(line.isprintable() for line in lines)


def test_hostile_names_of_shared_variables_functions_and_updates():
    x = T.vector("x", "float64", shape=(2,))
    states = [sc.shared(np.zeros(2), name, shape=(2,)) for name in HOSTILE_NAMES]
    function = sc.compile([x], x * 2, updates=[(state, state + x) for state in states], name="a\nb\x1b")
    text = sc.debugprint(function, file="str")
    assert all(line.isprintable() for line in text.split("\n"))
    assert all(line.isprintable() for line in function.explain().split("\n"))
    assert len(text.split("\n")) == 1 + len(ids(text)[0]) + len(ids(text)[1])


def test_marks_of_a_program_tell_the_truth():
    function = counter()
    text = sc.debugprint(function, file="str")
    direct = {leaf.name for leaf in function.programs[-1].schedule.direct}
    swapped = {leaf.name for leaf, _ in function.programs[-1].schedule.swapped}
    assert {name for name, how in re.findall(r"→ (\w+) \(([a-z ]+)\)", text) if how == "in place"} == direct
    assert {name for name, how in re.findall(r"→ (\w+) \(([a-z ]+)\)", text) if how == "swapped in"} == swapped
    assert direct | swapped == {"total", "last"}
    assert set(re.findall(r"step (\d+)", text)) == {str(number) for number in range(len(function.programs[-1].steps))}


def test_in_place_marks_name_the_input_whose_memory_is_taken():
    x, y = T.vector("x", "float64", shape=(4,)), T.vector("y", "float64", shape=(4,))
    summed = T.cumsum(x) if hasattr(T, "cumsum") else T.dot(T.outer(x, x), y)
    text = sc.debugprint(sc.compile([x, y], T.dot(T.outer(y, y), T.exp(summed)), on_unused_input="ignore"), file="str")
    assert "in place of i0" in text


def test_a_chain_of_20000_nodes_prints_in_seconds():
    for every in (0, 2):
        output = chain(20_000, every)[1]
        start = time.process_time()
        text = sc.debugprint(output, file="str")
        assert time.process_time() - start < 5
        assert len(ids(text)[0]) == graph_size(output)
        assert max(map(len, text.splitlines())) < 120


@pytest.mark.parametrize(("options", "error"), [
    ({"depth": "all"}, ArgumentError), ({"depth": True}, ArgumentError), ({"depth": 1.5}, ArgumentError),
    ({"id_type": "auto"}, ArgumentError), ({"file": "out.txt"}, ArgumentError)])
def test_wrong_options(options, error):
    with pytest.raises(error):
        sc.debugprint(T.vector("x"), **options)


@pytest.mark.parametrize("obj", [3, None, "x", [T.vector("x"), 2.0], object()])
def test_wrong_objects(obj):
    with pytest.raises(GraphTypeError, match="can be printed"):
        sc.debugprint(obj, file="str")
