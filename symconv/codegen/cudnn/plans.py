"""Execution plans: asked of cuDNN's heuristics, deselected by what the settings demand, as bytes that can be kept.

Heuristics A first, then the fallback.  Left out are plans with these of cuDNN's numerical notes: sums or inputs of less precision
always; tensor cores for float32 (that is tf32) unless it is asked for; Winograd for 16-bit types, whose transforms would round in
16 bits; what is not deterministic, where `config.deterministic` is on.  Then those over the workspace limit.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import BackendError, explain_error
from ...ops.conv_problem import ConvProblem
from ..implementation import RefusedError
from .devices import DeviceProperties
from .frontend import Frontend, Graph
from .fusion import Fusion, parse_fusion
from .graph import build_graph, empty_graph
from .library import load_frontend
from .padding import PaddingForm, padding_forms
from .support import Requirements, choose_layout, refuse

_MAGIC = b"symconv-cudnn-1\n"


class PlanRefusedError(RefusedError):
    """cuDNN has no plan for a problem, or refuses one that was built; the text is cuDNN's."""


@dataclass(frozen=True, slots=True)
class CudnnPlan:
    """A finished plan of one problem on one GPU: `padding` and `layout` say in which form cuDNN was asked, `engine` is its name
    for the engine and its knobs, `refusals` why forms and plans before it were passed over, `blob` cuDNN's own bytes."""

    problem: str
    device: str
    layout: str
    layout_reason: str
    padding: str
    engine: str
    workspace_bytes: int
    refusals: tuple[str, ...]
    blob: bytes

    def to_bytes(self) -> bytes:
        """The plan as bytes: a line of JSON, then the blob."""
        head = asdict(self)
        del head["blob"]
        return _MAGIC + json.dumps(head, sort_keys=True).encode() + b"\n" + self.blob

    @classmethod
    def from_bytes(cls, data: bytes) -> CudnnPlan:
        """The plan that `to_bytes` wrote; a BackendError for anything else."""
        if not data.startswith(_MAGIC):
            raise BackendError(explain_error("this is no plan of cuDNN that symconv wrote", f"{len(data)} bytes"))
        head, _, blob = data[len(_MAGIC):].partition(b"\n")
        try:
            members: dict[str, Any] = json.loads(head)
            plan = cls(**{**members, "refusals": tuple(map(str, members["refusals"]))}, blob=blob)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise BackendError(explain_error("this plan of cuDNN is damaged", f"{type(error).__name__}: {error}")) from None
        texts = (plan.problem, plan.device, plan.layout, plan.layout_reason, plan.padding, plan.engine)
        if not all(isinstance(text, str) for text in texts) or type(plan.workspace_bytes) is not int or plan.workspace_bytes < 0:
            raise BackendError(explain_error("this plan of cuDNN is damaged", repr(members)[:200]))
        return plan


def short_reason(error: Exception) -> str:
    """A refusal of cuDNN in one line: its own last reasons, else its first line."""
    lines = str(error).splitlines() or [type(error).__name__]
    reasons = [line.split("Reason:")[1].split(" at: ")[0].strip() for line in lines if "Reason:" in line and " at: " in line]
    return "; ".join(dict.fromkeys(reasons)) or lines[0]


def supported_graph(frontend: Frontend, device: DeviceProperties, form: PaddingForm, fusion: Fusion, layout: str,
                    requirements: Requirements) -> Graph:
    """The graph of a form with its plans, those that the requirements forbid left out; raises where `check_support` does."""
    graph = build_graph(frontend, device, form.problem, fusion, layout)
    graph.create_execution_plans([frontend.heur_mode.A, frontend.heur_mode.FALLBACK])
    graph.deselect_numeric_notes(_forbidden_notes(frontend, form.problem, requirements))
    graph.deselect_workspace_greater_than(requirements.workspace_bytes)
    graph.check_support()
    return graph


def _forbidden_notes(frontend: Frontend, problem: ConvProblem, requirements: Requirements) -> list[Any]:
    note = frontend.numerical_note
    notes = [note.REDUCED_PRECISION_REDUCTION, note.DOWN_CONVERT_INPUTS]
    if problem.dtype == "float32" and not requirements.tf32:
        notes.append(note.TENSOR_CORE)
    if problem.dtype in ("float16", "bfloat16"):
        notes.append(note.WINOGRAD)
    if requirements.deterministic:
        notes.append(note.NONDETERMINISTIC)
    return notes


def plans(problem: ConvProblem, device: DeviceProperties, requirements: Requirements | None = None,
          fusion: Fusion | None = None) -> Iterator[CudnnPlan]:
    """The plans of a problem, best first, each built when it is asked for; the next is for when one is refused later.

    Raises:
        PlanRefusedError: after the last, where there was none; it says what refused.
    """
    wanted = requirements or Requirements.current()
    reason = refuse(problem, device, wanted, fusion)
    if reason is not None:
        raise PlanRefusedError(explain_error(f"cuDNN has no plan for {problem} on {device}", reason))
    chain = parse_fusion(problem.epilogue, problem.dtype) if fusion is None else fusion
    assert isinstance(chain, Fusion)
    frontend, choice = load_frontend(), choose_layout(problem, device, chain)
    refusals: list[str] = []
    found = False
    for form in padding_forms(problem):
        try:
            graph = supported_graph(frontend, device, form, chain, choice.layout, wanted)
        except (RuntimeError, frontend.cudnnGraphNotSupportedError) as error:
            refusals.append(f"padding {form.name}: {short_reason(error)}")
            continue
        for index in range(graph.get_execution_plan_count()):
            try:
                graph.build_plan_at_index(index)
            except (RuntimeError, frontend.cudnnGraphNotSupportedError) as error:
                refusals.append(f"padding {form.name}, {graph.get_plan_name_at_index(index).strip()}: {short_reason(error)}")
                continue
            found = True
            yield CudnnPlan(str(problem), str(device), choice.layout, choice.reason, form.name,
                            graph.get_plan_name_at_index(index).strip(), graph.get_workspace_size(), tuple(refusals),
                            graph.serialize(as_bytes=True))
    if not found:
        raise PlanRefusedError(explain_error(f"cuDNN has no plan for {problem} on {device}", "; ".join(refusals)))


def load_plan(data: bytes, device: DeviceProperties, handle: Any = None) -> tuple[CudnnPlan, Graph]:
    """A plan and its graph from the bytes of `CudnnPlan.to_bytes`.

    Raises:
        BackendError: the bytes are of another GPU, damaged, or refused by this version of cuDNN.
    """
    plan = CudnnPlan.from_bytes(data)
    if plan.device != str(device):
        raise BackendError(explain_error("the plan is for another GPU", f"{plan.device}; here is {device}", "make the plans again"))
    frontend, problem = load_frontend(), ConvProblem.parse(plan.problem)
    graph = empty_graph(frontend, device, problem.dtype, problem.accumulator, handle)
    try:
        graph.deserialize(*((handle, plan.blob) if handle is not None else (plan.blob,)))
    except (RuntimeError, frontend.cudnnGraphNotSupportedError) as error:
        raise BackendError(explain_error(f"cuDNN does not take the kept plan of {plan.problem}", short_reason(error),
                                         "make the plans again")) from error
    return plan, graph
