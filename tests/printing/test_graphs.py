"""to_dot, to_networkx and draw: the right nodes and edges, valid files, any name, no overlapping boxes."""
from __future__ import annotations

import html
import io
import random
import re
import shutil
import xml.etree.ElementTree as ElementTree

import networkx
import numpy as np
import pytest
from printing.graphs import HOSTILE_NAMES, arithmetic, chain, classify, counter, hostile
from printing.test_debugprint import graph_size

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, BackendError, GraphTypeError
from symconv.graph import apply_op
from symconv.ops.convolution import Conv
from symconv.ops.lowered.pooled_convolution import PooledConv
from symconv.ops.spec import ConvSpec, Kind
from symconv.printing.layering import make_layers
from symconv.printing.layout import make_layout, spread
from symconv.tensor import nnet

SVG = "{http://www.w3.org/2000/svg}"
_TOKEN = re.compile(r'\s+|"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<name>[A-Za-z_][A-Za-z_0-9]*|-?\d+(?:\.\d+)?)'
                    r'|(?P<mark>->|[{}\[\]=,;])', re.S)


def parse_dot(text):
    """Nodes with attributes, and edges, by the grammar of https://graphviz.org/doc/info/lang.html (the part in use)."""
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match, f"no DOT token at {text[position:position + 40]!r}"
        position = match.end()
        if match.lastgroup:
            tokens.append((match.lastgroup, match[match.lastgroup]))
    assert [value for _, value in tokens[:3]] == ["digraph", "symconv", "{"]
    assert tokens[-1] == ("mark", "}")
    nodes, edges, rest = {}, [], tokens[3:-1]
    while rest:
        end = rest.index(("mark", ";"))
        statement, rest = rest[:end], rest[end + 1:]
        values = [value for _, value in statement]
        attributes = {}
        if ("mark", "[") in statement:
            opening = statement.index(("mark", "["))
            assert statement[-1] == ("mark", "]")
            inside = statement[opening + 1:-1]
            for place in range(0, len(inside), 4):
                assert inside[place][0] == "name"
                assert inside[place + 1] == ("mark", "=")
                assert inside[place + 3:place + 4] in ([], [("mark", ",")])
                attributes[inside[place][1]] = inside[place + 2][1]
            values = values[:opening]
        if len(values) == 3:
            assert values[1] == "->"
            edges.append((values[0], values[2]))
        elif values[0] not in ("graph", "node", "edge"):
            assert values[0] not in nodes
            nodes[values[0]] = attributes
    return nodes, edges


def uses(*outputs):
    """The number of (node, input) pairs."""
    from symconv.graph.traversal import toposort

    return sum(len(node.inputs) for node in toposort(outputs))


def functions():
    before, after, copies = classify(), classify(), counter()
    after.prepare((2, 1, 6, 6))
    return {"before": (before, before.graph), "after": (after, after.programs[-1].graph),
            "copies": (copies, copies.programs[-1].graph)}


@pytest.fixture(scope="module")
def subjects():
    expressions = {"arithmetic": arithmetic(), "hostile": hostile()[1], "chain": chain(200, 3)[1]}
    found = {name: (output, (output,)) for name, output in expressions.items()}
    found.update((name, (function, graph.results)) for name, (function, graph) in functions().items())
    return found


NAMES = ["arithmetic", "hostile", "chain", "before", "after", "copies"]


@pytest.mark.parametrize("name", NAMES)
def test_dot_parses_and_has_the_graphs_nodes_and_edges(subjects, name):
    obj, results = subjects[name]
    nodes, edges = parse_dot(sc.to_dot(obj))
    assert len(nodes) == graph_size(*results)
    assert len(edges) == uses(*results)
    assert {end for edge in edges for end in edge} <= set(nodes)


def test_dot_labels_say_the_names():
    inputs, output = hostile()
    labels = {attributes["label"].split("\\nfloat64")[0] for attributes in parse_dot(sc.to_dot(output))[0].values()}
    unescaped = {re.sub(r"\\(.)", r"\1", label) for label in labels}
    assert {"a=b", "x:0", '"q"', "new\\nline", "ß", "<float64[?]>", "<script>", "twin", "]]>", "&amp;"} <= unescaped
    assert sum(node.get("shape") == "oval" for node in parse_dot(sc.to_dot(output))[0].values()) == len(inputs)


@pytest.mark.parametrize("name", NAMES)
def test_networkx_has_the_graph_and_survives_graphml(subjects, name):
    obj, results = subjects[name]
    graph = sc.to_networkx(obj)
    assert isinstance(graph, networkx.MultiDiGraph)
    assert graph.number_of_nodes() == graph_size(*results)
    assert graph.number_of_edges() == uses(*results)
    assert networkx.is_directed_acyclic_graph(graph)
    buffer = io.BytesIO()
    networkx.write_graphml(graph, buffer)
    buffer.seek(0)
    back = networkx.read_graphml(buffer, force_multigraph=True)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted((*edge[:2], *edge[2].values()) for edge in back.edges(data=True)) \
        == sorted((*edge[:2], *edge[2].values()) for edge in graph.edges(data=True))


def test_networkx_attributes():
    function = counter()
    graph = sc.to_networkx(function)
    by_label = {data["label"]: data for _, data in graph.nodes(data=True)}
    assert by_label["step"]["kind"] == "input"
    assert by_label["step"]["outputs"] == "1"
    assert by_label["total"]["kind"] == "shared"
    assert by_label["total"]["marks"] == "→ last (in place)"
    assert by_label["Subtensor ::-1"]["implementation"] == "view"
    assert by_label["mul"] == {**by_label["mul"], "kind": "apply", "category": "elementwise", "step": 0, "outputs": "0",
                               "type": "float64[3]", "implementation": "elementwise_c"}


def test_edges_tell_inputs_and_results_apart():
    x = T.vector("x", "float64", shape=(3,))
    graph = sc.to_networkx(x - x)
    assert [(data["position"], data["output"]) for *_, data in graph.edges(data=True)] == [(0, 0), (1, 0)]


def drawn(obj, folder):
    path = sc.draw(obj, folder / "graph.svg", engine="builtin")
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_svg_is_valid_and_has_a_box_for_each_node(subjects, name, tmp_path):
    obj, results = subjects[name]
    root = drawn(obj, tmp_path)
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class") == "node"]
    assert len(groups) == graph_size(*results)
    boxes = []
    for group in groups:
        x, y, width, height = (float(group.find(f"{SVG}rect").get(key)) for key in ("x", "y", "width", "height"))
        boxes.append((x, y, x + width, y + height))
    assert all(a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
               for number, a in enumerate(boxes) for b in boxes[:number])
    assert min(box[0] for box in boxes) >= -0.1
    assert max(box[2] for box in boxes) < float(root.get("width"))
    assert max(box[3] for box in boxes) < float(root.get("height"))
    paths = [path for path in root.iter(f"{SVG}path") if "edge" in path.get("class", "")]
    assert sum(path.get("marker-end") is not None for path in paths) == uses(*results)


def test_svg_shows_hostile_names(tmp_path):
    texts = {text.text for text in drawn(hostile()[1], tmp_path).iter(f"{SVG}text")}
    assert {"a=b", "x:0", '"q"', "new\\nline", "ß", "<script>", "]]>", "&amp;", "<float64[?]>"} <= texts


def test_graphs_of_hundreds_of_nodes_are_drawn(tmp_path):
    generator = random.Random(3)
    nodes = [T.vector(f"x{number}", "float64") for number in range(30)]
    for _ in range(500):
        nodes.append(generator.choice(nodes[-60:]) + generator.choice(nodes))
    root = drawn(nodes[-20:], tmp_path)
    assert sum(group.get("class") == "node" for group in root.iter(f"{SVG}g")) == graph_size(*nodes[-20:])


def test_a_drawing_without_graphviz_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert sc.draw(arithmetic(), tmp_path / "graph.svg").exists()
    for ending in ("png", "pdf"):
        with pytest.raises(BackendError, match="Graphviz"):
            sc.draw(arithmetic(), tmp_path / f"graph.{ending}")
        assert not (tmp_path / f"graph.{ending}").exists()
    with pytest.raises(BackendError, match="Graphviz"):
        sc.draw(arithmetic(), tmp_path / "graph.svg", engine="graphviz")


def fake_dot(folder, script):
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_graphviz_gets_the_dot_text_and_the_format(tmp_path, monkeypatch):
    program = fake_dot(tmp_path, 'echo "$@"; cat')
    monkeypatch.setattr(shutil, "which", lambda name: program)
    path = sc.draw(hostile()[1], tmp_path / "a b;$(x).png")
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    assert first == "-Tpng"
    assert rest == sc.to_dot(hostile()[1])


def test_a_failing_graphviz_is_an_error_with_its_words(tmp_path, monkeypatch):
    program = fake_dot(tmp_path, "cat > /dev/null; echo no fonts here >&2; exit 3")
    monkeypatch.setattr(shutil, "which", lambda name: program)
    with pytest.raises(BackendError, match="no fonts here"):
        sc.draw(arithmetic(), tmp_path / "graph.png")


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_the_real_graphviz_draws_everything(subjects, name, tmp_path):
    obj, results = subjects[name]
    root = ElementTree.fromstring(sc.draw(obj, tmp_path / "graph.svg", engine="graphviz").read_text(encoding="utf-8"))
    assert sum(group.get("class") == "node" for group in root.iter(f"{SVG}g")) == graph_size(*results)


def test_a_gradient_behind_pooling_has_its_parts_line_by_line():
    conv = Conv(Kind.WGRAD, ConvSpec(2, (1, 1), (1, 1), (0, 0), (0, 0)), known=(4, 3, 3, 3))
    pool = nnet.max_pool_2d(T.ftensor4(), 2).apply.op
    image, gz, places = (T.tensor(dtype=dtype, shape=shape) for dtype, shape in (
        ("float32", (2, 3, 10, 10)), ("float32", (2, 4, 4, 4)), ("uint8", (2, 4, 4, 4))))
    joined = apply_op(PooledConv(conv, pool), image, gz, places)
    (label,) = re.findall(r'label="(PooledConv[^"]*)"', sc.to_dot(joined))
    lines = re.split(r"\\[nl]", label)
    assert lines[0] == "PooledConv wgrad"
    assert f"behind {pool}" in [html.unescape(line) for line in lines]
    assert label.count("{") == label.count("}")


def test_wrong_arguments(tmp_path):
    with pytest.raises(ArgumentError, match="svg"):
        sc.draw(arithmetic(), tmp_path / "graph.jpg")
    with pytest.raises(ArgumentError, match="engine"):
        sc.draw(arithmetic(), tmp_path / "graph.svg", engine="neato")
    for export in (sc.to_dot, sc.to_networkx, sc.pprint, lambda obj: sc.draw(obj, tmp_path / "graph.svg")):
        with pytest.raises(GraphTypeError):
            export(3)


def test_an_empty_drawing(tmp_path):
    assert len(sc.to_networkx([])) == 0
    assert drawn([], tmp_path).tag == f"{SVG}svg"
    assert parse_dot(sc.to_dot([])) == ({}, [])


def test_spreading_is_the_least_squares_optimum():
    minimize = pytest.importorskip("scipy.optimize").minimize
    generator = np.random.default_rng(5)
    for _ in range(20):
        count = int(generator.integers(1, 8))
        wanted, weights = generator.normal(size=count) * 10, generator.uniform(0.1, 5, count)
        distances = generator.uniform(0.5, 6, count - 1)
        found = np.array(spread(wanted.tolist(), weights.tolist(), distances.tolist()))
        assert (np.diff(found) >= distances - 1e-9).all()
        start = np.concatenate([[0.0], np.cumsum(distances + 1)])
        best = minimize(lambda x, w=weights, t=wanted: (w * (x - t) ** 2).sum(), start, method="SLSQP",
                        constraints={"type": "ineq", "fun": lambda x, d=distances: np.diff(x) - d} if count > 1 else ())
        assert (weights * (found - wanted) ** 2).sum() <= best.fun + 1e-5


def test_layers_go_downwards_and_links_join_neighbours():
    generator = random.Random(1)
    edges = sorted({tuple(sorted(generator.sample(range(60), 2))) for _ in range(120)})
    layers = make_layers(60, edges)
    layer_of = {item: number for number, layer in enumerate(layers.order) for item in layer}
    assert sorted(layer_of) == list(range(len(layer_of)))
    assert all(layer_of[lower] == layer_of[upper] + 1 for upper, lower in layers.links)
    assert all(layer_of[source] < layer_of[target] for source, target in edges)
    assert sorted(layers.arrivals.values()) == list(range(len(edges)))


def test_crossings_that_can_be_avoided_are():
    layout = make_layout([(20.0, 10.0)] * 6, [(0, 5), (1, 4), (2, 3)])
    tops, ends = {0: 5, 1: 4, 2: 3}, layout.centres
    order = sorted(tops, key=lambda box: ends[box][0])
    assert [tops[box] for box in order] == sorted(tops.values(), key=lambda box: ends[box][0])


def test_hostile_shared_names_in_every_form(tmp_path):
    x = T.vector("x", "float64", shape=(2,))
    states = [sc.shared(np.zeros(2), name, shape=(2,)) for name in HOSTILE_NAMES]
    function = sc.compile([x], x * 2, updates=[(state, state + x) for state in states], name='a\nb"\x1b')
    nodes, _ = parse_dot(sc.to_dot(function))
    assert len(nodes) == graph_size(*function.programs[-1].graph.results)
    drawn(function, tmp_path)
    networkx.write_graphml(sc.to_networkx(function), io.BytesIO())
