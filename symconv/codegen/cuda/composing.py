"""Several launch plans as one: what an implementation wants done before it (copies, other forms of inputs) in its own workspace."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from ...target import Target
from ..implementation import AnyImplementation
from ..kernel import Problem
from .elementwise import copy_plan
from .kernel import ERROR_FLAG, WORKSPACE, Launch, LaunchPlan, lay_out_parts, workspace_part


def self_contained_plan(implementation: AnyImplementation, asked: Problem, problem: Problem, copied: Sequence[int], target: Target,
                        main: LaunchPlan | None = None) -> LaunchPlan:
    """What runs `asked`: the inputs at `copied` are made contiguous, then the implementation gets `problem`, all in one plan.

    `main` is what the implementation built for `problem`, where it is there already.
    """
    built = main or cast(LaunchPlan, implementation.build(problem, target))
    preparations = implementation.prepare(problem, target)
    if not copied and not preparations:
        return built
    composer = _Composer(len(asked.outputs) + len(asked.inputs))
    first = len(asked.outputs)
    for position in copied:
        composer.make_input(first + position, copy_plan(asked.inputs[position]), asked.inputs[position].nbytes)
    for each in preparations:
        composer.make_input(first + each.position, cast(LaunchPlan, each.kernel), each.result.nbytes)
    composer.add(built, composer.places)
    return replace(built, launches=tuple(composer.launches), workspace_bytes=composer.end, parts=tuple(composer.parts), in_place=())


class _Composer:
    """Launches in order, and the pieces of one workspace that they use."""

    def __init__(self, n_buffers: int) -> None:
        self.places = {number: number for number in range(n_buffers)}
        self.launches: list[Launch] = []
        self.parts: list[tuple[int, int]] = []
        self.end = 0

    def make_input(self, number: int, plan: LaunchPlan, nbytes: int) -> None:
        """From now on the buffer `number` is what a plan makes of it."""
        made = self._part(self._room(nbytes), nbytes)
        self.add(plan, {0: made, 1: self.places[number]})
        self.places[number] = made

    def add(self, plan: LaunchPlan, buffers: Mapping[int, int]) -> None:
        """The launches of a plan on these buffers, its workspace a region of its own."""
        start = self._room(plan.workspace_bytes)
        renamed = {**buffers, ERROR_FLAG: ERROR_FLAG, WORKSPACE: self._part(start, plan.workspace_bytes)}
        renamed |= {workspace_part(number): self._part(start + first, nbytes) for number, (first, nbytes) in enumerate(plan.parts)}
        self.launches += [replace(launch, buffers=tuple(renamed[number] for number in launch.buffers),
                                  zeroed=tuple(renamed[number] for number in launch.zeroed)) for launch in plan.launches]

    def _room(self, nbytes: int) -> int:
        start = self.end
        self.end += lay_out_parts([nbytes])[1]
        return start

    def _part(self, first: int, nbytes: int) -> int:
        self.parts.append((first, nbytes))
        return workspace_part(len(self.parts) - 1)
