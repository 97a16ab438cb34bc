"""The phases of a function's compilation, run again one by one on a copy: the graph after each, and what became of every variable.

A function keeps what it was made from and its last graph, not those between; rewriting is deterministic, so they can be had again.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..dtypes import numpy_dtype
from ..graph import Apply, FunctionGraph, Variable, capture
from ..rewrites.engine import run_phase
from ..rewrites.log import Application, Declined, Log
from ..rewrites.pipeline import BOUND, SYMBOLIC, selected
from ..rewrites.rule import Phase
from ..target import Target
from .bind import bind
from .compile import flat_outputs
from .function import Function
from .kept import Kept
from .targets import function_target

AS_WRITTEN, BIND, PROGRAM = "as written", "bind", "program"
_MOST_TAKEN = 64


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The graph after a phase.

    `images`: what became of the variables of the snapshot before (those that changed only).  `applications` and `declined`: what
    the phase did, and what its rules recognised but left alone; `sweeps` what each of its sweeps put in place of what.
    """

    name: str
    graph: FunctionGraph
    images: Mapping[Variable, Variable]
    applications: tuple[Application, ...] = ()
    declined: tuple[Declined, ...] = ()
    sweeps: tuple[Mapping[Variable, Variable], ...] = ()

    def made_by(self) -> dict[Apply, list[int]]:
        """For the nodes of the graph that applications put in place, the numbers of these, in order.

        What one put in place another may have taken away at once, or a later sweep may have given other inputs.
        """
        inside = set(self.graph.nodes)
        taking: dict[Apply, int] = {}
        ends: dict[int, list[Apply]] = {}
        for number, application in reversed(list(enumerate(self.applications))):
            found: dict[Apply, None] = {}
            for variable in application.after:
                node = image_after(variable, self.sweeps).apply
                if node is not None and node in inside:
                    found[node] = None
                elif variable.apply in taking:
                    found.update(dict.fromkeys(ends[taking[variable.apply]]))
            ends[number] = list(found)
            for node in _taken_away(application, inside):
                taking[node] = number
        made: dict[Apply, list[int]] = {}
        for number in sorted(ends):
            for node in ends[number]:
                made.setdefault(node, []).append(number)
        return made


def _taken_away(application: Application, inside: set[Apply]) -> Iterator[Apply]:
    """The first few nodes of what an application replaced that are not in the graph afterwards."""
    waiting = [variable.apply for variable in application.before]
    met: set[Apply] = set()
    while waiting and len(met) < _MOST_TAKEN:
        node = waiting.pop(0)
        if node is not None and node not in inside and node not in met:
            met.add(node)
            yield node
            waiting.extend(each.apply for each in node.inputs)


def image_after(variable: Variable, sweeps: Iterable[Mapping[Variable, Variable]]) -> Variable:
    """What stands for a variable after some sweeps."""
    for sweep in sweeps:
        variable = sweep.get(variable, variable)
    return variable


@dataclass(frozen=True, slots=True)
class History:
    """The snapshots from the graph as written to the last one; `note` says what could not be shown, empty if nothing."""

    snapshots: tuple[Snapshot, ...]
    note: str = ""


def compilation_history(function: Function, kept: Kept | None = None) -> History:
    """The phases of a function, for any shape and, with `kept` (one of its programs), for that program's shapes.

    The last snapshot then has the program's own graph, whose nodes its steps have.
    """
    snapshots = list(_symbolic(function))
    if kept is None:
        return History(tuple(snapshots))
    own = kept.program.graph
    if kept.guards:
        note = "the phases for these shapes are not shown: shapes depend on values of the call, which are not kept"
        return History((*snapshots, Snapshot(PROGRAM, own, {})), note)
    snapshots += _bound(function, kept, snapshots[-1].graph)
    images = matching(snapshots[-1].graph, own)
    note = "" if images is not None else ("settings have changed since this function was compiled: its phases, run again, end in "
                                          "another graph than its program's")
    return History((*snapshots, Snapshot(PROGRAM, own, images or {})), note)


def _symbolic(function: Function) -> Iterator[Snapshot]:
    recipe = function.recipe
    inputs = [each.variable for each in recipe.inputs]
    graph = capture(inputs, flat_outputs(recipe.outputs), recipe.updates, recipe.givens)
    yield Snapshot(AS_WRITTEN, graph, {})
    phases = selected(SYMBOLIC, function.mode.include, function.mode.exclude)
    yield from _run(phases, graph, function_target(function.device, function.recipe.options), function.log.fuel)


def _bound(function: Function, kept: Kept, graph: FunctionGraph) -> Iterator[Snapshot]:
    shapes = {leaf: bound.type.static_shape for bound, leaf in kept.leaves.items()}  # no guards: values are not asked for
    arrays = {leaf: np.broadcast_to(np.zeros((), numpy_dtype(leaf.dtype)), shape) for leaf, shape in shapes.items()}
    bound = bind(graph, arrays)
    yield Snapshot(BIND, bound.graph, bound.variables)
    phases = selected(BOUND, function.mode.include, function.mode.exclude)
    yield from _run(phases, bound.graph, function_target(function.device, function.recipe.options), kept.log.fuel)


def _run(phases: list[Phase], graph: FunctionGraph, target: Target, fuel: int) -> Iterator[Snapshot]:
    log = Log(fuel)
    for phase in phases:
        log.images, before = [], len(log.applications)
        known = graph
        graph = run_phase(graph, phase, target, log)
        declined = tuple(each for each in log.skips if each.phase == phase.name)
        yield Snapshot(phase.name, graph, _chained(known, log.images), tuple(log.applications[before:]), declined,
                       tuple(log.images))


def _chained(graph: FunctionGraph, sweeps: list[dict[Variable, Variable]]) -> dict[Variable, Variable]:
    """What several sweeps together made of the variables of a graph, of those that they changed."""
    found: dict[Variable, Variable] = {}
    for node in graph.nodes:
        for variable in node.outputs:
            image = image_after(variable, sweeps)
            if image is not variable:
                found[variable] = image
    return found


def matching(graph: FunctionGraph, other: FunctionGraph) -> dict[Variable, Variable] | None:
    """The variables of `graph` → those of `other`, where the two are the same but for the identity of nodes; else None."""
    if len(graph.nodes) != len(other.nodes) or len(graph.results) != len(other.results):
        return None
    found = dict(zip(graph.inputs, other.inputs, strict=True))
    waiting: list[tuple[Variable, Variable]] = list(zip(graph.results, other.results, strict=True))
    met: set[Apply] = set()
    while waiting:
        one, two = waiting.pop()
        if found.setdefault(one, two) is not two or one.type != two.type:
            return None
        if (one.apply is None) != (two.apply is None):
            return None
        if one.apply is None or two.apply is None or one.apply in met:
            continue
        if one.apply.op != two.apply.op or one.index != two.index:
            return None
        met.add(one.apply)
        waiting.extend(zip(one.apply.inputs, two.apply.inputs, strict=True))
    return found
