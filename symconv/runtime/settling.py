"""Settling: before a program first runs, every plan of cuDNN is run once, since cuDNN may refuse one that it has built.

A plan that is refused, or whose workspace finds no memory, is passed over for the next; after the last the best generated kernel
does the step from then on.  `explain()` says so: the reasons stand in the step's choice and in the notes of the plan that runs.
Nothing of the program has run yet, so what a trial writes (a result, workspace) holds nothing; only state is kept from it.
"""
from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from ..codegen.cuda.composing import self_contained_plan
from ..codegen.cuda.kernel import LaunchPlan
from ..codegen.implementation import RefusedError
from ..codegen.kernel import Problem
from ..config import config
from ..errors import BackendError, explain_error
from ..target import Target
from .devices.interface import DeviceMemoryError
from .select import CUDNN, choose
from .step import Step

log = logging.getLogger("symconv.runtime")


class Trial(Protocol):
    """What runs a plan for a step once, into memory that nobody reads: RefusedError, DeviceMemoryError where that fails."""

    def __call__(self, position: int, plan: LaunchPlan) -> None: ...


def settle(steps: Sequence[Step], target: Target, trial: Trial) -> bool:
    """Try every step that runs cuDNN, and change those that it does not run; whether any was.

    Raises:
        BackendError: `config.dnn.enabled` is True, and cuDNN refuses every plan of a step.
    """
    changed = [_settle_step(step, position, target, trial) for position, step in enumerate(steps)
               if isinstance(step.kernel, LaunchPlan) and step.kernel.cudnn is not None]
    return any(changed)


def _settle_step(step: Step, position: int, target: Target, trial: Trial) -> bool:
    refusals: list[str] = []
    plan = step.kernel
    while isinstance(plan, LaunchPlan) and plan.cudnn is not None:
        reason = _refusal(plan, position, trial)
        if reason is None:
            if refusals:
                step.kernel = replace(plan, notes=(*plan.notes, *(f"refused when it ran: {each}" for each in refusals)))
            return bool(refusals)
        refusals.append(f"{plan.cudnn.plan.engine}, padding {plan.cudnn.plan.padding}: {reason}")
        log.info("step %d: cuDNN's plan %s", position, refusals[-1])
        plan = _next_plan(step, target, plan)
    _use_generated(step, target, "every plan was refused when it ran: " + "; ".join(refusals))
    return True


def _refusal(plan: LaunchPlan, position: int, trial: Trial) -> str | None:
    try:
        trial(position, plan)
    except (RefusedError, DeviceMemoryError) as error:
        return " ".join(str(error).split())
    return None


def _next_plan(step: Step, target: Target, refused: LaunchPlan) -> LaunchPlan | None:
    assert step.choice is not None
    assert step.choice.implementation is not None
    try:
        found: LaunchPlan | None = step.choice.implementation.instead(step.choice.problem, target, refused)
    except RefusedError:
        return None
    return found


def _use_generated(step: Step, target: Target, reason: str) -> None:
    """The best generated kernel for the operands as they lie; what it wants done to them first is part of its launches."""
    assert step.node is not None
    asked = Problem(step.node.op, tuple(place.operand for place in step.reads), tuple(place.operand for place in step.writes))
    if config.dnn.enabled is True:
        raise BackendError(explain_error("config.dnn.enabled is True, but cuDNN refuses a convolution", reason,
                                         'set config.dnn.enabled = "auto" to take another kernel', step.node.source))
    choice = choose(asked.op, asked.inputs, asked.outputs, target, refused={CUDNN: reason})
    step.choice = choice
    step.kernel = None if choice.implementation is None else self_contained_plan(
        choice.implementation, asked, choice.problem, choice.copied, target)
