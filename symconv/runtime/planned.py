"""PlannedProgram: what the programs of all devices have: the steps in order and where everything lies."""
from __future__ import annotations

import threading

from ..errors import IndexRangeError
from ..graph import FunctionGraph, Variable
from .memory import MemoryPlan
from .prepare import watched_leaves
from .run_errors import step_error, unknown_code_error
from .schedule import Schedule
from .step import KINDS, Place, Step


class PlannedProgram:
    """A bound graph as steps with places in memory.

    The first `n_prepared` steps depend on nothing but the state of `watched`: they need not run while that is as it was.
    A program may be called by one thread at a time; the function holds a lock.
    """

    def __init__(self, graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan) -> None:
        self.graph = graph
        self.schedule = schedule
        self.memory = memory
        self.steps = schedule.steps
        self.lock = threading.Lock()
        kinds = {leaf: storage.kind for leaf, storage in schedule.inputs.items()}
        self.inputs = tuple(leaf for leaf, kind in kinds.items() if kind == "input")
        self.state = tuple(leaf for leaf, kind in kinds.items() if kind != "input")
        self.leaves: tuple[Variable, ...] = (*self.inputs, *self.state)
        self.n_prepared = sum(step.is_prepared for step in self.steps)
        self.watched = watched_leaves(self.steps, schedule.inputs)

    def result_places(self) -> list[Place]:
        """Where outputs, then swapped updates are written."""
        return [*self.schedule.outputs, *(place for _, place in self.schedule.swapped)]

    def error_of(self, position: int, code: int) -> Exception:
        """The user's error that a step met at run time."""
        step = self.steps[position]
        texts = step.kernel.errors if step.kernel is not None else ()
        if not 1 <= code <= len(texts):
            return unknown_code_error(step, position, code)
        return step_error(IndexRangeError if step.node is None else step.node.op.run_time_error, texts[code - 1], step)

    def launching(self) -> tuple[str, ...]:
        """How its steps are started on a device, for `explain()`; empty on the CPU, where one C call runs all."""
        return ()

    def describe(self) -> str:
        """The program as stable text: a line for each step, then the memory plan."""
        lines = [_describe_step(number, step) for number, step in enumerate(self.steps)]
        storages = {storage for storage, _ in self.schedule.constants} | set(self.schedule.inputs.values())
        storages.update(place.storage for place in self.result_places())
        counts = {kind: sum(storage.kind == kind for storage in storages) for kind in KINDS if kind != "temporary"}
        held = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        lines.append(f"arena {self.memory.arena_bytes} bytes for {len(self.memory.slots)} temporaries; {held}")
        return "\n".join(lines)


def _describe_step(number: int, step: Step) -> str:
    reads = ", ".join(_describe_place(place) for place in step.reads)
    writes = ", ".join(_describe_place(place) for place in step.writes)
    mark = (" in place" if step.in_place else "") + (" when state changes" if step.is_prepared else "")
    return f"{number:3} {step.name}: {reads} -> {writes}{mark}"


def _describe_place(place: Place) -> str:
    storage, operand = place.storage, place.operand
    where = str(storage) if storage.alias is None else f"{storage}={storage.home}"
    view = "" if place.is_whole else f"+{place.offset} strides ({','.join(map(str, operand.strides))})"
    return f"{where}{view} {operand.dtype}[{','.join(map(str, operand.shape))}]"
