"""Profiles as trace events, for Perfetto and `chrome://tracing`.

The format: "Trace Event Format" (Google, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU):
complete events (`X`) with a start and a length in microseconds, counters (`C`), and names of threads (`M`).
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .file_places import file_place, write_whole_text
from .planned import PlannedProgram
from .profile_rows import LiveBytes, live_bytes, operation_name, problem_text
from .step import Step

if TYPE_CHECKING:
    from .profile import Call, Profile

HOST, STEPS = 1, 2
_PROCESS = 1
Event = dict[str, Any]


def write_trace(profile: Profile, path: Any) -> None:
    """Write the calls of a profile as a trace."""
    write_whole_text(file_place(path), json.dumps(trace_of(profile), indent=1) + "\n")


def trace_of(profile: Profile) -> dict[str, Any]:
    """The calls of a profile as the object that a trace file holds; times count from the first call that is kept."""
    names = [("process_name", 0, f"symconv {profile.name} on {profile.device}"), ("thread_name", HOST, "host"),
             ("thread_name", STEPS, "steps")]
    events: list[Event] = [{"ph": "M", "pid": _PROCESS, "tid": thread, "name": what, "args": {"name": name}}
                           for what, thread, name in names]
    zero = min((call.start for call in profile.calls), default=0.0)
    described: dict[int, tuple[list[Event], LiveBytes]] = {}
    for number, call in enumerate(profile.calls):
        key = id(call.program)
        if key not in described:
            arguments = [_arguments(position, step) for position, step in enumerate(call.program.steps)]
            described[key] = arguments, live_bytes(call.program)
        events += _call_events(number, call, zero, *described[key])
    return {"traceEvents": events, "displayTimeUnit": "ms",
            "otherData": {"function": profile.name, "device": profile.device, "calls": len(profile.calls)}}


def _arguments(position: int, step: Step) -> Event:
    """What is shown of a step when it is clicked."""
    node = step.node
    return {"step": position, "kernel": step.name, "implementation": "copy" if step.choice is None else step.choice.name,
            "problem": problem_text(step), "operation": str(node.op) if node is not None else operation_name(step),
            "written at": [str(place) for place in node.source] if node is not None else []}


def _call_events(number: int, call: Call, zero: float, arguments: list[Event], live: LiveBytes) -> Iterator[Event]:
    yield _complete(f"call {number}", HOST, call.start - zero, call.end - call.start, {"inputs": _inputs(call.program)})
    yield _complete("program", HOST, call.program_start - zero, call.program_seconds, {"steps": len(call.program.steps)})
    start = call.program_start - zero
    for position, seconds in enumerate(call.step_seconds):
        if seconds <= 0:
            continue  # not run in this call: it depends on state alone, which had not changed
        step = call.program.steps[position]
        yield _complete(operation_name(step), STEPS, start, float(seconds), arguments[position])
        yield {"ph": "C", "pid": _PROCESS, "tid": STEPS, "name": "arena bytes in use", "ts": _micro(start),
               "args": {"bytes": live.at[position]}}
        start += float(seconds)
    yield {"ph": "C", "pid": _PROCESS, "tid": STEPS, "name": "arena bytes in use", "ts": _micro(start), "args": {"bytes": 0}}


def _inputs(program: PlannedProgram) -> list[str]:
    return [f"{variable.label}: {variable.type}" for variable in program.graph.inputs]


def _complete(name: str, thread: int, start: float, seconds: float, arguments: Event) -> Event:
    return {"ph": "X", "pid": _PROCESS, "tid": thread, "name": name, "cat": "host" if thread == HOST else "step",
            "ts": _micro(start), "dur": _micro(seconds), "args": arguments}


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 3)
