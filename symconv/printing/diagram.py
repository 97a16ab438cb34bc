"""A graph ready to be drawn or exported: one node for each Apply and each leaf, one edge for each use."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..graph import Apply, Constant, Op, Variable
from ..graph.scope import GRADIENT, common_scope
from ..graph.traversal import toposort
from ..ops.convolution import Conv
from ..ops.lowered.pooled_convolution import PooledConv
from .names import escape, places_text, shortened, variable_text
from .operations import category, operation_text
from .subject import Subject, make_subject


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A node of the drawing; all texts are on one line each and without control characters.

    `kind` is apply, input, shared or constant; `category` the family of the op, for leaves the kind.  `headline`, `details`:
    what it is; `name`: the names of its results; `outputs`: which results of the whole it is; `scopes`: the name scopes it
    comes from, `home` the innermost one that holds it whole.
    """

    key: str
    kind: str
    category: str
    headline: str
    details: tuple[str, ...]
    name: str
    type: str
    step: int
    implementation: str
    outputs: tuple[int, ...]
    marks: tuple[str, ...]
    source: str
    scopes: tuple[str, ...] = ()
    home: str = ""

    @property
    def text(self) -> str:
        """Headline and details."""
        return f"{self.headline} {'; '.join(self.details)}".strip()

    @property
    def is_view(self) -> bool:
        """Whether it only renames elements: no step of the program."""
        return self.implementation == "view"


@dataclass(frozen=True, slots=True)
class DiagramEdge:
    """Result number `output` of node `source` is input number `position` of node `target`."""

    source: str
    target: str
    output: int
    position: int
    type: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """Title, nodes (inputs before readers) and edges; `things` are the Apply nodes and leaves that the nodes stand for."""

    title: str
    nodes: tuple[DiagramNode, ...]
    edges: tuple[DiagramEdge, ...]
    things: tuple[Apply | Variable, ...]


def make_diagram(obj: Any) -> Diagram:
    """The diagram of anything that `make_subject` takes."""
    return diagram_of(make_subject(obj))


def diagram_of(subject: Subject) -> Diagram:
    """The diagram of a subject."""
    keys: dict[Apply | Variable, str] = {}
    nodes: list[DiagramNode] = []
    edges: list[DiagramEdge] = []

    def leaf(variable: Variable) -> None:
        if variable.apply is None and variable not in keys:
            keys[variable] = f"n{len(keys)}"
            nodes.append(_leaf_node(keys[variable], variable, subject))

    for node in toposort(subject.variables):
        for variable in node.inputs:
            leaf(variable)
        keys[node] = f"n{len(keys)}"
        nodes.append(_apply_node(keys[node], node, subject))
        for position, variable in enumerate(node.inputs):
            source = keys[variable if variable.apply is None else variable.apply]
            edges.append(DiagramEdge(source, keys[node], variable.index, position, str(variable.type)))
    for variable in (*subject.inputs, *subject.variables):
        leaf(variable)
    return Diagram(subject.title, tuple(nodes), tuple(edges), tuple(keys))


def _leaf_node(key: str, variable: Variable, subject: Subject) -> DiagramNode:
    kind = subject.leaf_kind(variable)
    mark = subject.leaf_mark(variable)
    marks = tuple(([mark] if mark != kind else []) + subject.update_marks(variable))
    return DiagramNode(key, kind, kind, variable_text(variable), (), escape(variable.name or ""), str(variable.type), -1, "",
                       tuple(subject.outputs.get(variable, ())), marks, places_text(variable.source), *_scopes(variable))


def _apply_node(key: str, node: Apply, subject: Subject) -> DiagramNode:
    headline, details = _headline(node)
    number, implementation = -1, ""
    found = subject.steps.get(node)
    if found is not None:
        number, step = found
        implementation = step.choice.name if step.choice is not None else step.name
    elif subject.program is not None:
        implementation = "view"
    outputs = tuple(number for variable in node.outputs for number in subject.outputs.get(variable, ()))
    marks = [f".{variable.index} {mark}" if len(node.outputs) > 1 else mark for variable in node.outputs
             for mark in subject.update_marks(variable) or subject.in_place_marks(variable)]
    names = ", ".join(shortened(escape(variable.name)) for variable in node.outputs if variable.name)
    return DiagramNode(key, "apply", category(node.op), headline, details, names,
                       ", ".join(str(variable.type) for variable in node.outputs), number, implementation, outputs,
                       tuple(marks), places_text(node.source), *_scopes(node.outputs[0]))


def _scopes(variable: Variable) -> tuple[tuple[str, ...], str]:
    """The name scopes and the one that holds all; a constant is where it is read, since equal ones are one.

    What a gradient shares with the expression itself stands where the expression is.
    """
    scopes = () if isinstance(variable, Constant) else tuple(map(escape, variable.scopes))
    return scopes, common_scope([each for each in scopes if GRADIENT not in each.split("/")] or scopes)


def _headline(node: Apply) -> tuple[str, tuple[str, ...]]:
    """The op's name, and its parameters line by line."""
    op: Op = node.op
    behind: tuple[str, ...] = ()
    text = operation_text(node)
    if isinstance(op, PooledConv):
        text, behind = str(op.conv), (f"behind {op.pool}",)
        op = op.conv
    head, _, rest = text.partition("{")
    text = rest.removesuffix("}").replace("} of {", "\nof ").replace("} then {", "\nthen ")
    parts = (*text.replace("; ", "\n").splitlines(), *behind)
    if isinstance(op, Conv):
        return f"{type(node.op).__name__} {op.kind.value}", (parts[0].removeprefix(f"{op.kind.value}, "), *parts[1:])
    return head, parts
