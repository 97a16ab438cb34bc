"""The report of a compiled function as plain data: what `Function.explain` tells, before it is made into text."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..graph import Apply, TensorType, Variable
from ..graph.provenance import Sources
from ..ops.conv_problem import ConvProblem
from ..ops.convolution import Conv
from ..rewrites.log import expression_text
from ..target import Target
from .planned import PlannedProgram
from .select import NO_CANDIDATE, Candidate, Choice, expected_seconds
from .step import Place, Step
from .targets import make_target, why_not_cudnn

if TYPE_CHECKING:
    from .function import Function, Kept


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
    shared variable); `copy` says what a step without a node is for."""

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


@dataclass(frozen=True, slots=True)
class RewriteReport:
    """What rewriting did in one stage ("any shape" or "these shapes"): hits by rule, what was declined, and the phases."""

    stage: str
    counts: dict[str, int]
    declined: tuple[tuple[str, str, str], ...]
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory plan: bytes of the arena, the least any plan could have, and how new values are stored."""

    arena_bytes: int
    lower_bound_bytes: int
    temporaries: int
    in_place: int
    updates_in_place: tuple[str, ...]
    updates_swapped: tuple[str, ...]


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
    """Everything about one program of a function. Without a program only `rewrites` says something."""

    name: str
    device: str
    program: PlannedProgram | None
    n_programs: int
    inputs: tuple[tuple[str, str], ...]
    steps: tuple[StepReport, ...]
    rewrites: tuple[RewriteReport, ...]
    memory: MemoryReport | None
    machine: MachineReport | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, fit for JSON."""
        return {"name": self.name, "device": self.device, "programs": self.n_programs,
                "inputs": [{"name": name, "type": type} for name, type in self.inputs],
                "steps": [_step_dict(step) for step in self.steps],
                "rewrites": [_rewrite_dict(each) for each in self.rewrites],
                "machine": None if self.machine is None else asdict(self.machine),
                "memory": None if self.memory is None else {
                    "arena_bytes": self.memory.arena_bytes, "lower_bound_bytes": self.memory.lower_bound_bytes,
                    "temporaries": self.memory.temporaries, "in_place": self.memory.in_place,
                    "updates_in_place": list(self.memory.updates_in_place),
                    "updates_swapped": list(self.memory.updates_swapped)}}


def make_report(function: Function, kept: Kept | None = None) -> Report:
    """The report of a function's program (by default the last one used; none where none was made)."""
    if kept is None:
        kept = function.kept[-1] if function.kept else None
    rewrites = [_rewrite_report("for any shape", function.rewrites)]
    inputs: Sequence[Variable] = function.graph.inputs if kept is None else kept.program.graph.inputs
    steps: tuple[StepReport, ...] = ()
    machine = None
    if kept is not None:
        target = make_target(function.device)
        machine = _machine_report(target)
        rewrites.append(_rewrite_report("for these shapes", kept.log))
        steps = tuple(_step_report(number, step, kept.program, target) for number, step in enumerate(kept.program.steps))
    return Report(function.name, function.device, None if kept is None else kept.program, len(function.programs),
                  tuple((variable.label, str(variable.type)) for variable in inputs), steps, tuple(rewrites),
                  None if kept is None else _memory_report(kept.program), machine)


def _step_report(number: int, step: Step, program: PlannedProgram, target: Target) -> StepReport:
    node, choice = step.node, step.choice
    problem = _conv_problem(step)
    flops = problem.flops if problem is not None else step.kernel.flops if step.kernel is not None else 0
    candidates = () if choice is None else tuple(_candidate_report(each, choice, flops, target) for each in choice.candidates)
    return StepReport(
        number, node, _copy_text(step) if node is None else "", step.kernel.name if step.kernel is not None else "",
        "copy" if choice is None else choice.name, candidates, _reference_reason(step),
        () if choice is None else choice.copied, tuple(step.in_place), _updates(step, program),
        tuple(_place_type(place) for place in step.writes),
        sum(place.operand.nbytes for place in step.reads), sum(place.operand.nbytes for place in step.writes),
        node.source if node is not None else (), problem, None if problem is None else why_not_cudnn(target.device),
        "" if choice is None else choice.why)


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


def _conv_problem(step: Step) -> ConvProblem | None:
    if step.node is None or not isinstance(step.node.op, Conv):
        return None
    return step.node.op.problem([variable.type for variable in step.node.inputs], step.node.outputs[0].type)


def _rewrite_report(stage: str, log: Any) -> RewriteReport:
    return RewriteReport(stage, dict(log.counts()),
                         tuple((each.rule, expression_text(each.node.outputs[0], 2), each.reason) for each in log.skips),
                         tuple(str(phase) for phase in log.phases))


def _memory_report(program: PlannedProgram) -> MemoryReport:
    schedule, memory = program.schedule, program.memory
    return MemoryReport(memory.arena_bytes, memory.lower_bound_bytes, len(memory.slots),
                        sum(len(step.in_place) for step in program.steps),
                        tuple(leaf.label for leaf in schedule.direct), tuple(leaf.label for leaf, _ in schedule.swapped))


def _step_dict(step: StepReport) -> dict[str, Any]:
    return {"step": step.number, "op": step.copy if step.node is None else str(step.node.op), "kernel": step.kernel,
            "implementation": step.implementation, "problem": None if step.problem is None else str(step.problem),
            "candidates": [_candidate_dict(each) for each in step.candidates],
            "reference_reason": step.reference_reason, "not_cudnn": step.not_cudnn,
            "not_measured": step.not_measured, "copied_inputs": list(step.copied),
            "in_place": list(step.in_place), "updates": [{"result": number, "name": name} for number, name in step.updates],
            "bytes_read": step.bytes_read, "bytes_written": step.bytes_written,
            "inputs": [] if step.node is None else [f"{variable.label}: {variable.type}" for variable in step.node.inputs],
            "results": list(step.results),
            "sources": [str(place) for place in step.sources]}


def _candidate_dict(each: CandidateReport) -> dict[str, Any]:
    return {"name": each.name, "chosen": each.is_chosen, "seconds": each.seconds, "measured": each.is_measured,
            "gflops": each.gflops, "share_of_peak": each.share, "refusal": each.refusal}


def _rewrite_dict(report: RewriteReport) -> dict[str, Any]:
    return {"stage": report.stage, "counts": report.counts, "phases": list(report.phases),
            "declined": [{"rule": rule, "node": node, "reason": reason} for rule, node, reason in report.declined]}
