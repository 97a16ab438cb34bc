"""A report as plain data, fit for JSON."""
from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .report import CandidateReport, MemoryReport, Report, RewriteReport, StepReport


def report_data(report: Report) -> dict[str, Any]:
    """Everything that a report says, as dicts, lists, texts and numbers."""
    return {"name": report.name, "device": report.device, "programs": report.n_programs,
            "inputs": [{"name": name, "type": type} for name, type in report.inputs],
            "steps": [_step(step) for step in report.steps],
            "rewrites": [_rewrite(each) for each in report.rewrites],
            "layout": {"conversions": [{**asdict(each), "readers": list(each.readers)} for each in report.conversions],
                       "saved_seconds": report.saved_seconds},
            "memory": None if report.memory is None else _memory(report.memory),
            "transfers": [asdict(each) for each in report.transfers], "notes": list(report.notes),
            "launching": list(report.launching),
            "machine": None if report.machine is None else asdict(report.machine)}


def _memory(memory: MemoryReport) -> dict[str, Any]:
    return {"arena_bytes": memory.arena_bytes, "lower_bound_bytes": memory.lower_bound_bytes, "peak_step": memory.peak_step,
            "peak_bytes": memory.peak_bytes, "held_bytes": dict(memory.held_bytes), "temporaries": memory.temporaries,
            "in_place": memory.in_place, "updates_in_place": list(memory.updates_in_place),
            "updates_swapped": list(memory.updates_swapped)}


def _step(step: StepReport) -> dict[str, Any]:
    return {"step": step.number, "op": step.copy if step.node is None else str(step.node.op), "kernel": step.kernel,
            "implementation": step.implementation, "problem": None if step.problem is None else str(step.problem),
            "candidates": [_candidate(each) for each in step.candidates],
            "reference_reason": step.reference_reason, "not_cudnn": step.not_cudnn,
            "not_measured": step.not_measured, "copied_inputs": list(step.copied),
            "fused": list(step.fused), "not_fused": list(step.not_fused), "notes": list(step.notes),
            "plain_seconds": step.plain_seconds,
            "in_place": list(step.in_place), "updates": [{"result": number, "name": name} for number, name in step.updates],
            "bytes_read": step.bytes_read, "bytes_written": step.bytes_written,
            "inputs": [] if step.node is None else [f"{variable.label}: {variable.type}" for variable in step.node.inputs],
            "results": list(step.results),
            "sources": [str(place) for place in step.sources]}


def _candidate(each: CandidateReport) -> dict[str, Any]:
    return {"name": each.name, "chosen": each.is_chosen, "seconds": each.seconds, "measured": each.is_measured,
            "gflops": each.gflops, "share_of_peak": each.share, "refusal": each.refusal}


def _rewrite(report: RewriteReport) -> dict[str, Any]:
    return {"stage": report.stage, "counts": report.counts, "phases": list(report.phases),
            "declined": [{"rule": rule, "node": node, "reason": reason} for rule, node, reason in report.declined]}
