"""Graphs for the networkx library."""
from __future__ import annotations

from typing import Any

from .diagram import make_diagram


def to_networkx(obj: Any) -> Any:
    """The graph as a `networkx.MultiDiGraph`: one node for each Apply and each leaf, one edge for each use.

    All attributes are text or whole numbers, so that it can be written as GraphML and read back unchanged.  Control
    characters in names are escaped.

    Nodes ("n0", "n1", …, inputs before their readers):
        kind: apply, input, shared or constant.
        category: the family of the operation, or the kind.
        label: the operation with its parameters; a leaf's name or value.
        name: the user's name, "" without one.
        type: dtype[shape]; of several results separated by ", ".
        step: the number of the program's step, -1 where there is none.
        implementation: what runs it; "view" where only strides change; "" without a program.
        outputs: the numbers of the function's outputs that it is, separated by ",".
        marks: update and in-place marks, separated by "; ".
        source: the user's lines.
        scopes: the name scopes (`sc.name_scope`) that it comes from, separated by "; "; "" for none.
        scope: the innermost scope that holds all of these.
    Edges (keys 0, 1, …):
        output: which result of the source; position: which input of the target; type: dtype[shape].

    Args:
        obj: what `debugprint` takes.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.scalar("x")
    >>> graph = sc.to_networkx(x * x)
    >>> list(graph.nodes(data="label")), list(graph.edges(data="position"))
    ([('n0', 'x'), ('n1', 'mul')], [('n0', 'n1', 0), ('n0', 'n1', 1)])
    """
    import networkx

    diagram = make_diagram(obj)
    graph = networkx.MultiDiGraph(title=diagram.title)
    for node in diagram.nodes:
        graph.add_node(node.key, kind=node.kind, category=node.category, label=node.text, name=node.name, type=node.type,
                       step=node.step, implementation=node.implementation, outputs=",".join(map(str, node.outputs)),
                       marks="; ".join(node.marks), source=node.source, scopes="; ".join(node.scopes), scope=node.home)
    for edge in diagram.edges:
        graph.add_edge(edge.source, edge.target, output=edge.output, position=edge.position, type=edge.type)
    return graph
