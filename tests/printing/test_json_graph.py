"""to_json: the nodes and edges of to_networkx, any name, stable, safe in a page."""
from __future__ import annotations

import json

import pytest
from printing.graphs import HOSTILE_NAMES, arithmetic, chain, classify, hostile

import symconv as sc
from symconv.errors import GraphTypeError


def test_nodes_and_edges_are_those_of_networkx():
    for made in (arithmetic(), classify()):
        document, graph = json.loads(sc.to_json(made)), sc.to_networkx(made)
        assert [node.pop("id") for node in document["nodes"]] == list(graph)
        assert document["nodes"] == [attributes for _, attributes in graph.nodes(data=True)]
        edges = [(edge["source"], edge["target"], edge["position"]) for edge in document["edges"]]
        assert edges == list(graph.edges(data="position"))


def test_hostile_names_are_escaped_and_each_has_one_node():
    inputs, total = hostile()
    text = sc.to_json(total)
    assert text.isascii()
    assert not set("<>&") & set(text)
    leaves = [node for node in json.loads(text)["nodes"] if node["kind"] == "input"]
    assert len(leaves) == len(inputs) == len(HOSTILE_NAMES)


def test_the_text_is_stable_and_may_be_indented():
    assert sc.to_json(arithmetic(), indent=2).splitlines()[1].startswith('  "title"')
    one, other = sc.to_json(arithmetic()), sc.to_json(arithmetic())
    assert one == other


def test_twenty_thousand_nodes():
    _, result = chain(20_000)
    assert len(json.loads(sc.to_json(result))["nodes"]) == 20_001


def test_what_is_no_graph():
    with pytest.raises(GraphTypeError):
        sc.to_json("text")
