"""What the page tells of a program: each step with its candidates, source and time, and the arena as rectangles."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..runtime.function import Function
from ..runtime.kept import Kept
from ..runtime.planned import PlannedProgram
from ..runtime.profile_rows import StepRow
from ..runtime.report import StepReport, make_report
from ..runtime.step import Step, Storage
from .html_records import Records
from .names import escape
from .operations import operation_text

Plain = Any


def function_steps(function: Function, kept: Kept, records: Records) -> list[dict[str, Plain]]:
    """The steps of a function's program, with candidates and, after profiled calls, times."""
    report = make_report(function, kept)
    rows = {row.step: row for row in function.profile.rows_of(kept.program)}
    steps = program_steps(kept.program, records)
    for row, told in zip(steps, report.steps, strict=True):
        row.update(_report_row(told))
        if told.number in rows:
            row["time"] = _time_row(rows[told.number])
    return steps


def program_steps(program: PlannedProgram, records: Records) -> list[dict[str, Plain]]:
    """The steps of a program without what only its function knows."""
    return [_step_row(number, step, records) for number, step in enumerate(program.steps)]


def _step_row(number: int, step: Step, records: Records) -> dict[str, Plain]:
    what = "copy" if step.node is None else operation_text(step.node)
    return {"number": number, "what": escape(what), "kernel": step.kernel.name if step.kernel is not None else "",
            "how": "copy" if step.choice is None else step.choice.name, "prepared": step.is_prepared,
            "node": -1 if step.node is None else records.numbers[step.node],
            "reads": [_operand(place.operand) for place in step.reads],
            "writes": [_operand(place.operand) for place in step.writes],
            "bytes": sum(place.operand.nbytes for place in (*step.reads, *step.writes))}


def _operand(operand: Any) -> str:
    return f"{operand.dtype}[{', '.join(map(str, operand.shape))}]"


def _report_row(told: StepReport) -> dict[str, Plain]:
    candidates = [{"name": each.name, "chosen": each.is_chosen, "seconds": each.seconds, "measured": each.is_measured,
                   "gflops": each.gflops, "share": each.share, "refusal": None if each.refusal is None else escape(each.refusal)}
                  for each in told.candidates]
    found = {"problem": "" if told.problem is None else str(told.problem), "candidates": candidates,
             "reference": told.reference_reason or "", "unmeasured": told.not_measured, "fused": list(told.fused),
             "unfused": list(told.not_fused), "notes": list(told.notes), "cudnn": told.not_cudnn or "",
             "copied": list(told.copied), "inPlace": list(told.in_place), "updates": [name for _, name in told.updates]}
    if told.node is None:
        found["what"] = told.copy
    return {name: value for name, value in found.items() if value not in ("", [])}


def _time_row(row: StepRow) -> dict[str, Plain]:
    return {"each": row.seconds_each, "runs": row.runs, "share": row.share, "gflops": row.gflops, "gbytes": row.gbytes,
            "roofline": row.roofline}


def program_sources(program: PlannedProgram) -> dict[str, str]:
    """The generated source of every kernel by its name; those that have none (libraries' launches) are left out."""
    found: dict[str, str] = {}
    for step in program.steps:
        source = getattr(step.kernel, "source", "")
        if step.kernel is not None and source:
            found.setdefault(step.kernel.name, source)
    return found


def memory_rows(program: PlannedProgram, records: Records) -> dict[str, Plain]:
    """The arena: for every buffer its offset and bytes, the steps between which it lives, and what lies in it."""
    memory = program.memory
    writers = _writers(program.steps)
    slots = [{"storage": str(slot.storage), "offset": slot.offset, "bytes": slot.nbytes, "first": slot.first, "last": slot.last,
              **_contents(writers.get(slot.storage, []), program.steps, records)} for slot in memory.slots]
    return {"arena": memory.arena_bytes, "bound": memory.lower_bound_bytes, "steps": len(program.steps), "slots": slots}


def _writers(steps: Iterable[Step]) -> dict[Storage, list[tuple[int, int]]]:
    """For every home of storages the (step, result) that write it; result -1 is a workspace."""
    found: dict[Storage, list[tuple[int, int]]] = {}
    for number, step in enumerate(steps):
        for result, place in enumerate(step.writes):
            found.setdefault(place.storage.home, []).append((number, result))
        if step.workspace is not None:
            found.setdefault(step.workspace.home, []).append((number, -1))
    return found


def _contents(writers: list[tuple[int, int]], steps: tuple[Step, ...] | list[Step], records: Records) -> dict[str, Plain]:
    texts, nodes = [], []
    for number, result in writers:
        step = steps[number]
        if result < 0:
            texts.append(f"workspace of step {number}")
            continue
        variable = None if step.node is None else step.node.outputs[result]
        name = f" {escape(variable.name)}" if variable is not None and variable.name else ""
        texts.append(f"step {number}{name}: {_operand(step.writes[result].operand)}")
        nodes += [] if step.node is None else [records.numbers[step.node]]
    return {"contents": texts, "nodes": nodes}
