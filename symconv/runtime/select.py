"""Select: an implementation for one op on operands of known shape, with the reasons of those that refused."""
from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ..codegen.implementation import AnyImplementation
from ..codegen.kernel import AnyKernel, Operand, Problem
from ..codegen.lists import implementations
from ..config import config
from ..errors import ArgumentError, BackendError, explain_error
from ..graph import Op
from ..ops.convolution import Conv
from ..target import Target
from .devices.interface import DeviceMemoryError
from .measure import Entrant, Times, measured_seconds, problem_text

if TYPE_CHECKING:
    from .step import Step

log = logging.getLogger("symconv.runtime")

NO_KERNEL = "no generated kernel for this operation"
NO_CANDIDATE = "generated kernels"
CUDNN = "cudnn"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One implementation that was asked: its expected seconds, those measured, or why it refused.

    The expected seconds are None where nothing asked for them: it was the only one.
    """

    name: str
    estimate: float | None = None
    refusal: str | None = None
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen: `implementation` is None for the NumPy reference; `copied` are inputs made contiguous first.

    `why` says why candidates were not timed, where `config.selection` asks for that.
    """

    implementation: AnyImplementation | None
    problem: Problem
    copied: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    why: str = ""

    @property
    def name(self) -> str:
        """Name of the implementation."""
        return "reference" if self.implementation is None else self.implementation.name


def choose(op: Op, inputs: tuple[Operand, ...], outputs: tuple[Operand, ...], target: Target,
           reference: bool = False, still: frozenset[int] = frozenset(), refused: Mapping[str, str] | None = None) -> Choice:
    """The fastest of those that accept, by `config.selection`: the smallest estimate, or what was measured.

    The NumPy reference where none accepts (or where it is asked for).  `still` are the inputs made of state that the function
    does not update: what an implementation makes of them is not made on every call.  `refused` are implementations by name that
    took the problem and then could not run it, with the reasons.
    """
    asked = Problem(op, inputs, outputs)
    if reference or not target.has_compiler:
        why = "the mode asks for the NumPy references" if reference else "no C compiler was found"
        return Choice(None, *_with_copies(None, asked), (Candidate(NO_CANDIDATE, refusal=why),))
    candidates: list[Candidate] = []
    entrants: list[Entrant] = []
    for implementation in _asked(op, target.device):
        problem, copied = _with_copies(implementation, asked)
        refusal = (refused or {}).get(implementation.name) or implementation.refuse(problem, target)
        candidates.append(Candidate(implementation.name, refusal=refusal))
        if refusal is None:
            entrants.append(Entrant(implementation, problem, copied))
    entrants = _only_cudnn(asked, entrants, candidates)
    if not entrants:
        _check_forced(op, candidates)
        return Choice(None, *_with_copies(None, asked), tuple(candidates) or (Candidate(NO_CANDIDATE, refusal=NO_KERNEL),))
    if len(entrants) == 1:
        return _choice(entrants[0], candidates)
    return _fastest(asked, entrants, candidates, target, still)


def _choice(entrant: Entrant, candidates: list[Candidate], why: str = "") -> Choice:
    return Choice(entrant.implementation, entrant.problem, entrant.copied, tuple(candidates), why)


def _fastest(asked: Problem, entrants: list[Entrant], candidates: list[Candidate], target: Target,
             still: frozenset[int]) -> Choice:
    """The choice among several; ties go to the one that stands first."""
    expected = {each.implementation.name: _expected(each, target, still) for each in entrants}
    found, why = _measured(asked, entrants, target, still)
    measured = {name: seconds for name, seconds in found.items() if isinstance(seconds, float)}
    failed = {name: f"it failed when it was timed: {reason}" for name, reason in found.items() if isinstance(reason, str)}
    seconds = measured or expected
    running = [each for each in entrants if each.implementation.name not in failed] or entrants
    best, too_large = _smallest_fitting(sorted(running, key=lambda each: seconds[each.implementation.name]), target)
    reasons = {**failed, **too_large}
    every = [each if each.refusal is not None else replace(each, estimate=expected[each.name], measured=measured.get(each.name),
                                                           refusal=reasons.get(each.name)) for each in candidates]
    return _choice(best, every, why)


def _smallest_fitting(entrants: list[Entrant], target: Target) -> tuple[Entrant, dict[str, str]]:
    """The first whose workspace a step may have, and why those before it may not; where all want more, the one with the least.

    On the CPU memory is not short, and building every candidate to know its workspace takes time.
    """
    if target.device == "cpu" or len(entrants) == 1:
        return entrants[0], {}
    wanted: dict[str, int] = {}
    for each in entrants:
        wanted[each.implementation.name] = _workspace_bytes(each, target)
        if wanted[each.implementation.name] <= config.workspace_bytes:
            break
    best = min(entrants[:len(wanted)], key=lambda each: max(wanted[each.implementation.name], config.workspace_bytes))
    return best, {name: f"it wants {nbytes:,} bytes of workspace; config.workspace_bytes is {config.workspace_bytes:,}"
                  for name, nbytes in wanted.items() if name != best.implementation.name}


def _workspace_bytes(entrant: Entrant, target: Target) -> int:
    """0 for cuDNN, which keeps to `config.dnn.workspace_bytes` by itself, and whose plans are not built for a look at them."""
    if not entrant.implementation.is_cached:
        return 0
    return build_kernel(entrant.implementation, entrant.problem, target).workspace_bytes


def _expected(entrant: Entrant, target: Target, still: frozenset[int]) -> float:
    """The estimate, and what is made on every call of inputs that are wanted in another form: read once, written once."""
    implementation, problem = entrant.implementation, entrant.problem
    seconds = implementation.estimate(problem, target)
    if len(still) < len(problem.inputs):
        for each in implementation.prepare(problem, target):
            if each.position not in still:
                seconds += each.seconds + target.copy_seconds(problem.inputs[each.position].nbytes + each.result.nbytes)
    return seconds


def _measured(asked: Problem, entrants: list[Entrant], target: Target, still: frozenset[int]) -> tuple[Times, str]:
    """Measured seconds by name (or why one could not be timed); none, and why, where there are none."""
    if config.selection != "measure":
        return {}, ""
    if target.device != "cpu" and not target.place:
        return {}, "the device that the code is made for is not here"
    if config.deterministic:
        return {}, "config.deterministic lets no choice depend on measured times"
    if any(operand.size == 0 for operand in asked.outputs):
        return {}, "there is nothing to compute"
    try:
        return measured_seconds(asked, entrants, target, still), ""
    except (MemoryError, DeviceMemoryError):
        log.warning("the candidates of %s are not timed: there is no memory for their arrays", problem_text(asked))
        return {}, "there is no memory for the candidates' arrays"


def expected_seconds(choice: Choice, candidate: Candidate, target: Target) -> float | None:
    """The expected seconds of a candidate, also of an only one."""
    if candidate.estimate is not None or candidate.refusal is not None or choice.implementation is None:
        return candidate.estimate
    return choice.implementation.estimate(choice.problem, target)


def describe_choices(steps: Sequence[Step]) -> str:
    """What was chosen for each step, and what the others would take or why they refused, as text for the log."""
    lines = []
    for number, step in enumerate(steps):
        if step.choice is not None:
            lines.append(f"{number:3} {step.choice.problem.op}: {step.choice.name}")
            lines += [f"      {each.name}: {_standing(each)}" for each in step.choice.candidates]
    return "\n".join(lines)


def _standing(candidate: Candidate) -> str:
    if candidate.refusal is not None:
        return f"refuses, {candidate.refusal}"
    if candidate.measured is not None:
        return f"measured {candidate.measured * 1e3:.3g} ms"
    return "the only one" if candidate.estimate is None else f"expected {candidate.estimate * 1e3:.3g} ms"


def _asked(op: Op, device: str) -> tuple[AnyImplementation, ...]:
    """The implementations of an op; only the forced one where `config.conv.implementation` names one that is meant for it.

    (No implementation makes both images and filter gradients: forcing one for either leaves the choice for the other.)
    """
    every = implementations(type(op), device)
    serving = tuple(each for each in every if each.serves(op))
    forced = config.conv.implementation
    if not forced or not isinstance(op, Conv):
        return serving
    if forced == "reference":
        return ()
    if not any(each.name == forced for each in every):
        names = ", ".join([each.name for each in every] + ["reference"])
        raise ArgumentError(explain_error("config.conv.implementation names no convolution implementation", repr(forced),
                                          f"use one of {names}"))
    return tuple(each for each in serving if each.name == forced) or serving


def _only_cudnn(asked: Problem, entrants: list[Entrant], candidates: list[Candidate]) -> list[Entrant]:
    """With `config.dnn.enabled = True`, cuDNN alone for a convolution that has elements.

    Raises:
        BackendError: cuDNN refuses it.
    """
    is_empty = any(operand.size == 0 for operand in (*asked.inputs, *asked.outputs))
    if config.dnn.enabled is not True or not isinstance(asked.op, Conv) or is_empty:
        return entrants
    only = [each for each in entrants if each.implementation.name == CUDNN]
    candidates[:] = [each if each.name == CUDNN or each.refusal else replace(each, refusal="config.dnn.enabled is True")
                     for each in candidates]
    if not only:
        reasons = "; ".join(str(each.refusal) for each in candidates if each.name == CUDNN)
        raise BackendError(explain_error("config.dnn.enabled is True, but cuDNN refuses a convolution",
                                         f"{problem_text(asked)}: {reasons or 'it is not asked for this'}",
                                         'set config.dnn.enabled = "auto" to take another kernel'))
    return only


def _check_forced(op: Op, candidates: list[Candidate]) -> None:
    if isinstance(op, Conv) and config.conv.implementation not in ("", "reference") and candidates:
        raise BackendError(explain_error(
            f"the forced implementation {config.conv.implementation!r} refuses this convolution",
            "; ".join(str(each.refusal) for each in candidates)))


def _with_copies(implementation: AnyImplementation | None, problem: Problem) -> tuple[Problem, tuple[int, ...]]:
    """The problem as the implementation sees it: inputs whose strides it does not take are contiguous copies."""
    copied = tuple(position for position, operand in enumerate(problem.inputs)
                   if not operand.is_contiguous
                   and not (implementation is None or implementation.takes_strides(problem, position)))
    if not copied:
        return problem, ()
    inputs = tuple(Operand.contiguous(operand.dtype, operand.shape) if position in copied else operand
                   for position, operand in enumerate(problem.inputs))
    return Problem(problem.op, inputs, problem.outputs), copied


def build_kernel(implementation: AnyImplementation, problem: Problem, target: Target) -> AnyKernel:
    """The implementation's kernel; the same problem is rendered once for a process."""
    if implementation.is_cached:
        return _built(implementation, problem, target)
    built: AnyKernel = implementation.build(problem, target)
    return built


@lru_cache(maxsize=4096)
def _built(implementation: AnyImplementation, problem: Problem, target: Target) -> AnyKernel:
    built: AnyKernel = implementation.build(problem, target)
    return built
