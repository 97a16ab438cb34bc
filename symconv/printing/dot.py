"""Graphs in Graphviz's DOT language."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .colours import colours, legend_text
from .diagram import Diagram, DiagramEdge, DiagramNode, make_diagram
from .names import shortened
from .scope_tree import Scope, make_scope_tree

_SHAPES = {"input": "oval", "shared": "cylinder", "constant": "note"}
_LONGEST = 100


def to_dot(obj: Any) -> str:
    r"""The graph as text in Graphviz's DOT language: one node for each Apply and each leaf, one edge for each use.

    Inputs are ovals, shared variables cylinders, constants notes, operations boxes coloured by family, outputs have a
    thick border, views (operations that need no step) a dashed one.  A name scope with more than one node is a cluster.  Any
    name is safe.

    Args:
        obj: what `debugprint` takes.

    >>> import symconv as sc, symconv.tensor as T
    >>> print(sc.to_dot(T.exp(T.scalar("x")))) # doctest: +ELLIPSIS
    digraph symconv {
      ...
      n0 -> n1;
    }
    """
    return diagram_to_dot(make_diagram(obj))


def diagram_to_dot(diagram: Diagram) -> str:
    """A diagram as DOT."""
    lines = ["digraph symconv {", '  graph [charset="UTF-8", rankdir=TB, fontname="Helvetica"];',
             '  node [fontname="Helvetica", fontsize=11, style="rounded,filled", shape=box];',
             '  edge [color="#64748b", arrowsize=0.7];']
    if diagram.title:
        lines.append(f"  graph [labelloc=t, label={quoted([diagram.title, legend_text(diagram)])}];")
    counts: dict[str, int] = {}
    for edge in diagram.edges:
        counts[edge.target] = counts.get(edge.target, 0) + 1
    lines += _scope_lines(make_scope_tree(diagram), {node.key: node for node in diagram.nodes}, "  ")
    several = {node.key for node in diagram.nodes if ", " in node.type}
    lines += [f"  {edge.source} -> {edge.target}{_edge_attributes(edge, edge.source in several)};" for edge in diagram.edges]
    return "\n".join([*lines, "}"])


def _scope_lines(scope: Scope, nodes: dict[str, DiagramNode], indent: str) -> Iterator[str]:
    """The nodes of a scope, and the scopes inside as clusters where they have more than one node."""
    for key in scope.keys:
        yield f"{indent}{key} [{_node_attributes(nodes[key])}];"
    for inner in scope.inner.values():
        if inner.count() == 1:
            yield from _scope_lines(inner, nodes, indent)
            continue
        yield f"{indent}subgraph {quoted([f'cluster_{inner.path}'])} {{"
        yield f'{indent}  graph [label={quoted([inner.label])}, labeljust=l, style=rounded, color="#94a3b8", fontcolor="#475569"];'
        yield from _scope_lines(inner, nodes, indent + "  ")
        yield f"{indent}}}"


def quoted(lines: list[str]) -> str:
    """Lines as one quoted DOT string: backslashes stay backslashes, quotes stay quotes."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines if line]
    return '"' + "\\n".join(escaped) + '"'


def _node_attributes(node: DiagramNode) -> str:
    fill, stroke = colours(node.category)
    label = [*(shortened(line, _LONGEST) for line in (node.headline, *node.details)),
             node.name if node.kind == "apply" else "", node.type, implementation_text(node), *output_marks(node), *node.marks]
    attributes = [f"label={quoted(label)}", f'fillcolor="{fill}"', f'color="{stroke}"']
    if node.kind in _SHAPES:
        attributes += [f"shape={_SHAPES[node.kind]}", "style=filled"]
    if node.is_view:
        attributes.append('style="rounded,filled,dashed"')
    if node.outputs:
        attributes.append("penwidth=3")
    if node.source:
        attributes.append(f"tooltip={quoted([node.source])}")
    return ", ".join(attributes)


def implementation_text(node: DiagramNode) -> str:
    """`step 3: conv_direct`, `view`, or nothing."""
    return f"step {node.step}: {node.implementation}" if node.step >= 0 else node.implementation


def output_marks(node: DiagramNode) -> list[str]:
    """`output 0`, for results that are returned."""
    return [f"output {number}" for number in node.outputs]


def _edge_attributes(edge: DiagramEdge, of_several: bool) -> str:
    return f' [taillabel="{edge.output}", fontsize=9]' if of_several else ""
