"""What can be printed, brought to one form: results with titles, and what is known of the program that computes them."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..errors import GraphTypeError, explain_error
from ..graph import Apply, Constant, FunctionGraph, Variable
from ..runtime.arguments import In, Out
from ..runtime.function import Function
from ..runtime.layouts import image_layouts
from ..runtime.planned import PlannedProgram
from ..runtime.profile_rows import StepRow
from ..runtime.shared import SharedVariable
from ..runtime.step import Step
from .names import bytes_text, escape, plural, variable_text


@dataclass(frozen=True)
class Root:
    """A result: its title ("" for none) and the variable; `target` is the leaf that it updates."""

    title: str
    variable: Variable
    target: Variable | None = None


@dataclass(frozen=True)
class Subject:
    """A thing to print: a title, results, inputs in order, and the program where there is one."""

    title: str
    roots: tuple[Root, ...]
    inputs: tuple[Variable, ...] = ()
    program: PlannedProgram | None = None
    profile_rows: tuple[StepRow, ...] = ()

    @cached_property
    def layouts(self) -> dict[Variable, str]:
        """How the images of a program lie in memory."""
        return {} if self.program is None else image_layouts(self.program.graph)

    @cached_property
    def steps(self) -> dict[Apply, tuple[int, Step]]:
        """Number and step of every node that is one (views are not)."""
        steps = () if self.program is None else self.program.steps
        return {step.node: (number, step) for number, step in enumerate(steps) if step.node is not None}

    @cached_property
    def input_numbers(self) -> dict[Variable, int]:
        """The position of every input."""
        return {variable: number for number, variable in enumerate(self.inputs)}

    @cached_property
    def outputs(self) -> dict[Variable, list[int]]:
        """For every result that is returned, which outputs it is."""
        found: dict[Variable, list[int]] = {}
        for number, root in enumerate(root for root in self.roots if root.target is None):
            found.setdefault(root.variable, []).append(number)
        return found

    @cached_property
    def targets(self) -> dict[Variable, list[Variable]]:
        """For every new value, the shared variables that it is stored to."""
        found: dict[Variable, list[Variable]] = {}
        for root in self.roots:
            if root.target is not None:
                found.setdefault(root.variable, []).append(root.target)
        return found

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The results."""
        return tuple(root.variable for root in self.roots)

    def leaf_kind(self, variable: Variable) -> str:
        """constant, shared or input."""
        if isinstance(variable, Constant):
            return "constant"
        if isinstance(variable, SharedVariable):
            return "shared"
        if self.program is not None and variable in self.program.schedule.inputs:
            return self.program.schedule.inputs[variable].kind
        return "input"

    def leaf_mark(self, variable: Variable) -> str:
        """What a leaf is, in a word: "shared", "input 0"."""
        kind = self.leaf_kind(variable)
        number = self.input_numbers.get(variable)
        return f"input {number}" if kind == "input" and number is not None else kind

    def update_marks(self, variable: Variable) -> list[str]:
        """The shared variables that a value is stored to, and how: "→ W (in place)"."""
        return [f"→ {variable_text(target)}{self._how(target, variable)}" for target in self.targets.get(variable, [])]

    def _how(self, target: Variable, new: Variable) -> str:
        if self.program is None or target is new:
            return ""
        return " (in place)" if target in self.program.schedule.direct else " (swapped in)"

    @cached_property
    def copies(self) -> dict[int, int]:
        """For the results that a step of its own copies out, by position in `roots`, the number of that step."""
        if self.program is None:
            return {}
        schedule = self.program.schedule
        written = {id(place.storage): number for number, step in enumerate(self.program.steps) if step.node is None
                   for place in step.writes if place.storage.kind in ("output", "update")}
        homes = {id(place.storage.home): number for number, step in enumerate(self.program.steps) if step.node is None
                 for place in step.writes if place.storage.kind == "update"}
        swapped = dict(schedule.swapped)
        found: dict[int, int | None] = {}
        outputs = iter(schedule.outputs)
        for position, root in enumerate(self.roots):
            if root.target is None:
                found[position] = written.get(id(next(outputs).storage))
            elif root.target in swapped:
                found[position] = written.get(id(swapped[root.target].storage))
            elif root.target in schedule.direct:
                found[position] = homes.get(id(schedule.inputs[root.target]))
        return {position: number for position, number in found.items() if number is not None}

    def in_place_marks(self, variable: Variable) -> list[str]:
        """Which input's memory a result of the program takes: "in place of i0"."""
        found = self.steps.get(variable.apply) if variable.apply is not None else None
        if found is None or variable.index not in found[1].in_place:
            return []
        step = found[1]
        home = step.writes[variable.index].storage.home
        taken = [f"i{number}" for number, place in enumerate(step.reads) if place.storage.home is home]
        return [f"in place of {taken[0]}"] if taken else []


def make_subject(obj: Any) -> Subject:
    """What `obj` shows: a variable, an Apply, a list, tuple or dict of these, a FunctionGraph, a Function or a PlannedProgram.

    Raises:
        GraphTypeError: something else.
    """
    if isinstance(obj, Function):
        return _function_subject(obj)
    if isinstance(obj, PlannedProgram):
        return _program_subject(obj, "program")
    if isinstance(obj, FunctionGraph):
        return Subject("", _graph_roots(obj), obj.inputs)
    if isinstance(obj, Mapping):
        return Subject("", tuple(Root(escape(str(key)), variable) for key, value in obj.items()
                                 for variable in _variables(value)))
    if isinstance(obj, (list, tuple)):
        return Subject("", tuple(Root("", variable) for value in obj for variable in _variables(value)))
    return Subject("", tuple(Root("", variable) for variable in _variables(obj)))


def _variables(obj: Any) -> tuple[Variable, ...]:
    if isinstance(obj, (In, Out)):
        return (obj.variable,)
    if isinstance(obj, Variable):
        return (obj,)
    if isinstance(obj, Apply):
        return obj.outputs
    raise GraphTypeError(explain_error(
        "only variables, lists, tuples and dicts of them, graphs, compiled functions and programs can be printed",
        f"{type(obj).__name__} {obj!r:.80}"))


def _function_subject(function: Function) -> Subject:
    programs = function.programs
    if programs:
        subject = _program_subject(programs[-1], f"{escape(function.name)} on {escape(function.device)}")
        return replace(subject, profile_rows=function.profile.rows_of(programs[-1]))
    title = f"{escape(function.name)} on {escape(function.device)}: no program yet (call it once, or prepare(shapes))"
    return Subject(title, _graph_roots(function.graph), function.graph.inputs)


def _program_subject(program: PlannedProgram, name: str) -> Subject:
    title = (f"{name}: {plural(len(program.steps), 'step')}, {bytes_text(program.memory.arena_bytes)} for "
             f"{plural(len(program.memory.slots), 'temporary', 'temporaries')}")
    return Subject(title, _graph_roots(program.graph), program.graph.inputs, program)


def _graph_roots(graph: FunctionGraph) -> tuple[Root, ...]:
    count = len(graph.outputs)
    outputs = [Root("output" if count == 1 else f"output {number}", output) for number, output in enumerate(graph.outputs)]
    updates = [Root(f"update of {variable_text(target)}", new, target) for target, new in graph.updates]
    return (*outputs, *updates)
