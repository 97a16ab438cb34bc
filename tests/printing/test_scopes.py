"""Name scopes in drawings and exports."""
from __future__ import annotations

import json

import symconv as sc
import symconv.tensor as T
from symconv.graph import capture
from symconv.ops.constants import constant
from symconv.printing.diagram import make_diagram
from symconv.printing.scope_tree import make_scope_tree


def _network():
    x, two = T.vector("x", "float64"), constant(2.0)
    for name in ("one", 'tw"o'):
        with sc.name_scope(name):
            x = T.tanh(x) * two
            with sc.name_scope("single"):
                x = T.exp(x)
    return x


def test_networkx_and_json_have_the_scopes():
    found = {(node["label"], node["scopes"], node["scope"]) for node in json.loads(sc.to_json(_network()))["nodes"]}
    wanted = {("tanh", "one", "one"), ("exp", "one/single", "one/single"), ("x", "", ""), ("exp", 'tw"o/single', 'tw"o/single')}
    assert wanted <= found


def test_a_scope_of_several_nodes_is_a_cluster_with_its_constants():
    lines = sc.to_dot(_network()).splitlines()
    starts = [number for number, line in enumerate(lines) if "subgraph" in line]
    assert [lines[number] for number in starts] == ['  subgraph "cluster_one" {', '  subgraph "cluster_tw\\"o" {']
    first = "\n".join(lines[starts[0]:starts[1]])
    assert "tanh" in first
    assert "exp" in first
    assert "single" not in first


def test_a_constant_that_several_scopes_read_stands_outside():
    tree = make_scope_tree(make_diagram(_network()))
    labels = {node.key: node.text for node in make_diagram(_network()).nodes}
    assert sorted(labels[key] for key in tree.keys) == ["2.0", "x"]
    assert [each.path for each in tree.inner["one"].inner.values()] == ["one/single"]


def test_what_a_gradient_shares_stands_with_the_expression():
    with sc.name_scope("block"):
        x = T.vector("x")
        y = T.exp(x)
    with sc.name_scope("gradient/block"):
        again = T.exp(x) * 2
    graph = capture([x], [y, again])
    (exponential,) = [node for node in make_diagram(graph).nodes if node.headline == "exp"]
    assert set(exponential.scopes) == {"block", "gradient/block"}
    assert exponential.home == "block"


def test_debugprint_tells_scopes_where_asked():
    lines = sc.debugprint(_network(), file="str", print_scope=True).splitlines()
    assert lines[0].endswith('exp [id A] · in tw"o/single')
    assert " in " not in sc.debugprint(_network(), file="str")
