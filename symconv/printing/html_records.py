"""The nodes of all phases of a compilation as records for the page: each once, with what it was before and which rules made it."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..graph import Apply, Constant, Variable
from ..graph.provenance import SourceLine
from ..rewrites.log import Application, expression_text
from ..runtime.phases import Snapshot
from .diagram import Diagram, DiagramNode
from .names import escape, shortened
from .scope_tree import Scope, make_scope_tree
from .subject import Subject

Plain = Any
Thing = Apply | Variable
_MOST_PARTS = 64


@dataclass
class Records:
    """The table of records and of the user's lines; `numbers` finds the record of a node or leaf."""

    rows: list[dict[str, Plain]] = field(default_factory=list)
    places: list[dict[str, Plain]] = field(default_factory=list)
    numbers: dict[Thing, int] = field(default_factory=dict)
    _place_numbers: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, diagram: Diagram, subject: Subject) -> list[int]:
        """The numbers of a diagram's nodes, in its order; those not met before get records."""
        homes = _homes(make_scope_tree(diagram))
        for node, thing in zip(diagram.nodes, diagram.things, strict=True):
            if thing not in self.numbers:
                self.numbers[thing] = len(self.rows)
                self.rows.append(self._record(node, thing, subject, homes[node.key]))
        return [self.numbers[thing] for thing in diagram.things]

    def number(self, variable: Variable) -> int:
        """The record of what computes a variable, or of the leaf."""
        return self.numbers[thing_of(variable)]

    def _record(self, node: DiagramNode, thing: Thing, subject: Subject, home: str) -> dict[str, Plain]:
        variables = thing.outputs if isinstance(thing, Apply) else (thing,)
        layouts = dict.fromkeys(subject.layouts[each] for each in variables if each in subject.layouts)
        found: dict[str, Plain] = {
            "kind": node.kind, "category": node.category, "head": node.headline, "details": list(node.details), "name": node.name,
            "type": node.type, "home": home, "scopes": list(node.scopes),
            "places": [self._place(place) for place in variables[0].source],
            "layout": ", ".join(layouts), "step": node.step, "how": node.implementation,
            "label": shortened(node.name or node.text, 80)}
        if isinstance(thing, Apply):
            found["inputs"] = [[self.number(each), each.index] for each in thing.inputs]
        return {name: value for name, value in found.items() if value not in ("", []) and not (name == "step" and value < 0)}

    def _place(self, place: SourceLine) -> int:
        key = (place.filename, place.lineno)
        if key not in self._place_numbers:
            self._place_numbers[key] = len(self.places)
            self.places.append({"file": place.filename, "line": place.lineno, "text": place.text})
        return self._place_numbers[key]


def thing_of(variable: Variable) -> Thing:
    """What has a record: the node, or the leaf."""
    return variable if variable.apply is None else variable.apply


def _homes(scope: Scope) -> dict[str, str]:
    """The scope of every node of a tree."""
    found = dict.fromkeys(scope.keys, scope.path)
    for inner in scope.inner.values():
        found.update(_homes(inner))
    return found


def link_phases(records: Records, before: Snapshot, after: Snapshot, phase: int) -> None:
    """Note on the records that are new in a phase what they were (`was`) and which of its applications made them (`by`)."""
    _link_leaves(records, before, after)
    known = {thing_of(output) for node in before.graph.nodes for output in node.outputs}
    new = [node for node in after.graph.nodes if node not in known]
    fresh = set(new)
    was: dict[Apply, dict[int, None]] = {}
    renewed: set[Thing] = set()  # as before, with other inputs
    same: set[Thing] = set()  # what these were
    for node in before.graph.nodes:
        for variable in node.outputs:
            image = after.images.get(variable, variable).apply
            if image is not None and image in fresh:
                was.setdefault(image, {})[records.numbers[node]] = None
                if image.op == node.op:
                    renewed.add(image)
                    same.add(node)
    made = _made_by(after, known, renewed)
    kept: set[Thing] = {*after.graph.nodes, *same}
    for node in new:
        row = records.rows[records.numbers[node]]
        numbers = made.get(node, [])
        parts = was.get(node, {})
        if numbers:
            row["by"] = [phase, numbers]
            for number in numbers:
                parts.update((records.numbers[each], None) for each in _parts(after.applications[number], kept)
                             if each in records.numbers)
        if parts:
            row["was"] = list(parts)


def _link_leaves(records: Records, before: Snapshot, after: Snapshot) -> None:
    """Leaves that binding made again; state is still state."""
    for leaf in before.graph.leaves:
        image = after.images.get(leaf, leaf)
        number, old = records.numbers.get(image), records.numbers.get(leaf)
        if image is not leaf and image.apply is None and number is not None and old is not None:
            records.rows[number]["was"] = [old]
            for name in ("kind", "category"):
                records.rows[number][name] = records.rows[old][name]


def _made_by(after: Snapshot, known: set[Thing], renewed: set[Thing]) -> dict[Apply, list[int]]:
    """The applications that made each node: those that put it in place of something, or what is new above it."""
    tops = after.made_by()
    found = dict(tops)
    for top, numbers in tops.items():
        waiting = [each.apply for each in top.inputs]
        while waiting:
            node = waiting.pop()
            if node is not None and node not in known and node not in found and node not in renewed:
                found[node] = numbers
                waiting.extend(each.apply for each in node.inputs)
    return found


def _parts(application: Application, kept: set[Thing]) -> Iterable[Apply]:
    """The nodes that an application took away: below what it replaced, and no longer there."""
    waiting = [variable.apply for variable in application.before]
    met: dict[Apply, None] = {}
    while waiting and len(met) < _MOST_PARTS:
        node = waiting.pop()
        if node is not None and node not in kept and node not in met:
            met[node] = None
            waiting.extend(each.apply for each in node.inputs if not isinstance(each, Constant))
    return met


def application_rows(snapshot: Snapshot, records: Records) -> list[dict[str, Plain]]:
    """What a phase did, for the page."""
    made = snapshot.made_by()
    return [{"rule": each.rule, "before": _text(each.before), "after": _text(each.after),
             "nodes": [records.numbers[node] for node, numbers in made.items() if number in numbers]}
            for number, each in enumerate(snapshot.applications)]


def declined_rows(snapshot: Snapshot, records: Records) -> list[dict[str, Plain]]:
    """What a phase's rules recognised and left alone, with the reason."""
    return [{"rule": each.rule, "text": shortened(escape(expression_text(each.node.outputs[0], 2)), 120),
             "reason": escape(each.reason), "node": records.numbers.get(each.node, -1)} for each in snapshot.declined]


def _text(variables: tuple[Variable, ...]) -> str:
    return shortened(escape(", ".join(expression_text(each) for each in variables)), 240)
