"""The report of a compiled function as plain data: what `Function.explain` tells, before it is made into text."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..graph import Apply, TensorType, Variable
from ..graph.provenance import Sources
from ..ops.conv_problem import ConvProblem
from ..rewrites.log import Declined, expression_text
from ..target import Target
from .layouts import Conversion, conversions, plain_seconds
from .planned import PlannedProgram
from .problems import conv_problem
from .profile_rows import flops_of, live_bytes
from .report_notes import determinism_notes, fused_parts, not_fused, precision_notes
from .select import CUDNN, NO_CANDIDATE, Candidate, Choice, expected_seconds
from .step import KINDS, Place, Step
from .targets import function_target, why_not_cudnn
from .transfers import Transfer, outputs_staying, transfers

if TYPE_CHECKING:
    from .function import Function
    from .kept import Kept


@dataclass(frozen=True, slots=True)
class CandidateReport:
    """An implementation that was asked: its seconds, or why it refused; and whether it was chosen.

    `is_measured` tells measured seconds from expected ones; `gflops` are those of a direct computation, `share` is their part of
    the machine's peak.
    """

    name: str
    is_chosen: bool
    seconds: float | None = None
    gflops: float | None = None
    refusal: str | None = None
    share: float | None = None
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step. `reference_reason` says why no generated kernel runs it, None where one does; `updates` are pairs (result,
    shared variable); `copy` says what a step without a node is for; `fused` what else it computes, `not_fused` which rewrites
    recognised it and were not applied, and why; `notes` how exact it is; `plain_seconds` what a convolution on blocks of channels
    is expected to take if it were plain."""

    number: int
    node: Apply | None
    copy: str
    kernel: str
    implementation: str
    candidates: tuple[CandidateReport, ...]
    reference_reason: str | None
    copied: tuple[int, ...]
    in_place: tuple[int, ...]
    updates: tuple[tuple[int, str], ...]
    results: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    sources: Sources
    problem: ConvProblem | None = None
    not_cudnn: str | None = None
    not_measured: str = ""
    fused: tuple[str, ...] = ()
    not_fused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    plain_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """What rewriting did in one stage ("any shape" or "these shapes"): hits by rule, what was declined, and the phases."""

    stage: str
    counts: dict[str, int]
    declined: tuple[tuple[str, str, str], ...]
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory plan: bytes of the arena, the least any plan could have (the most in use at one step, `peak_step`), the bytes
    held outside it by kind, and how new values are stored."""

    arena_bytes: int
    lower_bound_bytes: int
    peak_step: int
    temporaries: int
    in_place: int
    held_bytes: tuple[tuple[str, int], ...]
    updates_in_place: tuple[str, ...]
    updates_swapped: tuple[str, ...]

    @property
    def peak_bytes(self) -> int:
        """What a call needs at most: the arena and all that is held beside it."""
        return self.arena_bytes + sum(nbytes for _, nbytes in self.held_bytes)


@dataclass(frozen=True, slots=True)
class MachineReport:
    """What expected times reckon with, for the threads that kernels use: float32 FLOP/s, bytes a second that copies read and
    write.  `reason` says why these are the stated defaults; empty where they were measured."""

    threads: int
    flops: float
    memory: float
    l3: float
    l2: float
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything about one program of a function. Without a program only `rewrites` says something.

    `conversions` are changes of layout, which `saved_seconds` is expected to repay; `transfers` what a call copies in and out;
    `notes` what the bits of the results depend on; `launching` how a device's steps are started.
    """

    name: str
    device: str
    program: PlannedProgram | None
    n_programs: int
    inputs: tuple[tuple[str, str], ...]
    steps: tuple[StepReport, ...]
    rewrites: tuple[RewriteReport, ...]
    memory: MemoryReport | None
    machine: MachineReport | None = None
    conversions: tuple[Conversion, ...] = ()
    saved_seconds: float | None = None
    transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()
    launching: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON."""
        from .report_data import report_data

        return report_data(self)


def make_report(function: Function, kept: Kept | None = None) -> Report:
    """The report of a function's program (by default the last one used; none where none was made)."""
    if kept is None:
        kept = function.kept[-1] if function.kept else None
    symbolic = _rewrite_report("for any shape", function.log)
    inputs: Sequence[Variable] = function.graph.inputs if kept is None else kept.program.graph.inputs
    named = tuple((variable.label, str(variable.type)) for variable in inputs)
    if kept is None:
        return Report(function.name, function.device, None, len(function.programs), named, (), (symbolic,), None)
    target, program = function_target(function.device, function.recipe.options), kept.program
    declined = (*function.log.skips, *kept.log.skips)
    steps = tuple(_step_report(number, step, program, target, declined) for number, step in enumerate(program.steps))
    return Report(function.name, function.device, program, len(function.programs), named, steps,
                  (symbolic, _rewrite_report("for these shapes", kept.log)), _memory_report(program), _machine_report(target),
                  conversions(program, target), _saved_seconds(steps),
                  transfers(program, function.device, outputs_staying(function.recipe.outputs)),
                  determinism_notes(program, target), program.launching())


def _saved_seconds(steps: Sequence[StepReport]) -> float | None:
    """By how much the convolutions on blocks of channels are expected to be quicker than plain ones; None where there are none."""
    saved = [step.plain_seconds - (_chosen(step).seconds or 0.0) for step in steps if step.plain_seconds is not None]
    return sum(saved) if saved else None


def _chosen(step: StepReport) -> CandidateReport:
    return next((each for each in step.candidates if each.is_chosen), CandidateReport(step.implementation, True))


def _step_report(number: int, step: Step, program: PlannedProgram, target: Target, declined: Sequence[Declined]) -> StepReport:
    node, choice = step.node, step.choice
    problem = conv_problem(node)
    flops = flops_of(step)
    candidates = () if choice is None else tuple(_candidate_report(each, choice, flops, target) for each in choice.candidates)
    return StepReport(
        number, node, _copy_text(step) if node is None else "", step.kernel.name if step.kernel is not None else "",
        "copy" if choice is None else choice.name, candidates, _reference_reason(step),
        () if choice is None else choice.copied, tuple(step.in_place), _updates(step, program),
        tuple(_place_type(place) for place in step.writes),
        sum(place.operand.nbytes for place in step.reads), sum(place.operand.nbytes for place in step.writes),
        node.source if node is not None else (), problem, None if problem is None else _not_cudnn(step, target),
        "" if choice is None else choice.why, fused_parts(node), not_fused(step, declined),
        precision_notes(step),
        plain_seconds(step, target))


def _not_cudnn(step: Step, target: Target) -> str | None:
    """Why cuDNN does not run a convolution; None where it does, or where something else is faster."""
    candidates = () if step.choice is None else step.choice.candidates
    asked = next((each for each in candidates if each.name == CUDNN), None)
    return why_not_cudnn(target) if asked is None else asked.refusal


def _candidate_report(candidate: Candidate, choice: Choice, flops: int, target: Target) -> CandidateReport:
    is_measured = candidate.measured is not None
    seconds = candidate.measured if is_measured else expected_seconds(choice, candidate, target)
    rate = flops / seconds if seconds and flops else None
    dtype = choice.problem.outputs[0].dtype
    share = rate / target.peak_flops(dtype) if rate is not None and dtype in ("float32", "float64") else None
    return CandidateReport(candidate.name, candidate.name == choice.name, seconds, None if rate is None else rate / 1e9,
                           candidate.refusal, share, is_measured)


def _machine_report(target: Target) -> MachineReport | None:
    """The ceilings that estimates reckon with; None for a device whose kernels are not estimated by them."""
    if target.device != "cpu" or not target.has_compiler:
        return None
    rates = target.ceilings.rates(target.threads)
    return MachineReport(target.threads, target.peak_flops("float32"), rates.memory, rates.l3, rates.l2, target.ceilings.reason)


def _reference_reason(step: Step) -> str | None:
    if step.kernel is not None:
        return None
    refusals = () if step.choice is None else step.choice.candidates
    return "; ".join(str(each.refusal) if each.name == NO_CANDIDATE else f"{each.name}: {each.refusal}" for each in refusals)


def _updates(step: Step, program: PlannedProgram) -> tuple[tuple[int, str], ...]:
    """The updates that a step makes, as (result, name of the shared variable)."""
    if step.node is not None:
        return tuple((new.index, target.label) for target, new in program.graph.updates if new.apply is step.node)
    written = step.writes[0].storage
    stored = [*program.schedule.swapped, *((leaf, None) for leaf in program.schedule.direct)]
    return tuple((0, leaf.label) for leaf, place in stored if written.kind == "update"
                 and (place.storage if place is not None else program.schedule.inputs[leaf]) in (written, written.home))


def _copy_text(step: Step) -> str:
    """What a step without a node is for."""
    written = step.writes[0]
    if written.operand.shape != step.reads[0].operand.shape:
        return "an input in the form that its reader wants"
    return {"output": f"copy to output {written.storage.number}", "update": "copy to the new value"}.get(
        written.storage.kind, "copy in row-major order")


def _place_type(place: Place) -> str:
    return str(TensorType(place.operand.dtype, place.operand.shape))


def _rewrite_report(stage: str, log: Any) -> RewriteReport:
    return RewriteReport(stage, dict(log.counts()),
                         tuple((each.rule, expression_text(each.node.outputs[0], 2), each.reason) for each in log.skips),
                         tuple(str(phase) for phase in log.phases))


def _memory_report(program: PlannedProgram) -> MemoryReport:
    schedule, memory = program.schedule, program.memory
    return MemoryReport(memory.arena_bytes, memory.lower_bound_bytes, live_bytes(program).peak_step, len(memory.slots),
                        sum(len(step.in_place) for step in program.steps), _held_bytes(program),
                        tuple(leaf.label for leaf in schedule.direct), tuple(leaf.label for leaf, _ in schedule.swapped))


def _held_bytes(program: PlannedProgram) -> tuple[tuple[str, int], ...]:
    """The bytes outside the arena, by kind of storage."""
    schedule = program.schedule
    storages = {*schedule.inputs.values(), *(storage for storage, _ in schedule.constants),
                *(place.storage for place in program.result_places()),
                *(place.storage for step in program.steps for place in step.writes if place.storage.kind == "kept")}
    return tuple((kind, total) for kind in KINDS if kind != "temporary"
                 and (total := sum(each.nbytes for each in storages if each.kind == kind and each.alias is None)))
