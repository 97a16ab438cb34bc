"""The name scopes of a diagram as a tree: what stands in each."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..graph.scope import GRADIENT, common_scope
from .diagram import Diagram, DiagramNode


@dataclass(slots=True)
class Scope:
    """A scope: its path, the keys of the nodes that stand in it directly, and the scopes inside."""

    path: str
    keys: list[str] = field(default_factory=list)
    inner: dict[str, Scope] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The last level of the path."""
        return self.path.rsplit("/", 1)[-1]

    def count(self) -> int:
        """How many nodes stand in it and inside."""
        return len(self.keys) + sum(each.count() for each in self.inner.values())


def make_scope_tree(diagram: Diagram) -> Scope:
    """The tree; its root is the whole diagram.

    Constants stand where they are read, since equal ones are one node; so does state that was made outside all scopes.
    """
    homes = {node.key: node.home for node in diagram.nodes}
    homes.update(_homes_by_readers(diagram.nodes, diagram, homes))
    root = Scope("")
    for node in diagram.nodes:
        scope = root
        for level in homes[node.key].split("/") if homes[node.key] else ():
            scope = scope.inner.setdefault(level, Scope(f"{scope.path}/{level}" if scope.path else level))
        scope.keys.append(node.key)
    return root


def _homes_by_readers(nodes: Iterable[DiagramNode], diagram: Diagram, homes: dict[str, str]) -> dict[str, str]:
    kinds = {node.key: node.kind for node in nodes if node.kind == "constant" or (node.kind == "shared" and not node.home)}
    readers: dict[str, list[str]] = {key: [] for key in kinds}
    for edge in diagram.edges:
        if edge.source in readers:
            readers[edge.source].append(homes[edge.target])
    return {key: common_scope(_forward(found) if kinds[key] == "shared" else found) for key, found in readers.items()}


def _forward(scopes: list[str]) -> list[str]:
    """Those that are no gradient's and no update's."""
    return [scope for scope in scopes if scope and GRADIENT not in scope.split("/")] or scopes
