"""Everything that a page shows, as plain data: records of nodes, phases, steps, sources, memory."""
from __future__ import annotations

from typing import Any

from ..runtime.function import Function
from ..runtime.phases import AS_WRITTEN, BIND, PROGRAM, Snapshot, compilation_history
from ..runtime.planned import PlannedProgram
from .colours import palette
from .diagram import diagram_of
from .html_program import function_steps, memory_rows, program_sources, program_steps
from .html_records import Records, application_rows, declined_rows, link_phases
from .subject import Subject, make_subject

Plain = Any
_ABOUT = {
    AS_WRITTEN: "the expression as it was given, equal parts joined",
    "canonicalize": "one form for what can be written in several ways; what cancels is gone",
    "stabilize": "what is exact in floating point in place of what is not",
    "conv_canonical": "flips, transposes, pads and gradients of convolutions become part of the convolution",
    "specialize": "constants are folded; what is left gets smaller",
    "bind": "the shapes of this call are put in: every size is a number now",
    "bound_stabilize": "stable forms that need sizes",
    "bound_canonicalize": "what only becomes simple once sizes are known",
    "pooled_gradients": "gradients behind a pooling skip its zeros",
    "conv_scale": "scales move into the filters of convolutions",
    "conv_fuse": "what follows a convolution becomes its epilogue",
    "layout": "where images lie in blocks of channels, by estimated times",
    "elemwise_fuse": "elementwise operations and reductions that run in one loop",
    PROGRAM: "what runs: a kernel for each step; views need none",
}


def make_document(obj: Any) -> dict[str, Plain]:
    """The data of the page for anything that `debugprint` takes."""
    records = Records()
    if isinstance(obj, Function):
        return _function_document(obj, records)
    subject = make_subject(obj)
    program = subject.program
    phases = [_phase(PROGRAM if program is not None else "graph", subject, records)]
    steps = [] if program is None else program_steps(program, records)
    return _document(subject, records, phases, steps, program)


def _function_document(function: Function, records: Records) -> dict[str, Plain]:
    kept = function.kept[-1] if function.kept else None
    history = compilation_history(function, kept)
    subject = make_subject(function)
    phases: list[dict[str, Plain]] = []
    for number, snapshot in enumerate(history.snapshots):
        is_program = snapshot.name == PROGRAM
        phases.append(_phase(snapshot.name, subject if is_program else make_subject(snapshot.graph), records, snapshot))
        if number:
            link_phases(records, history.snapshots[number - 1], snapshot, number)
    steps = [] if kept is None else function_steps(function, kept, records)
    return {**_document(subject, records, phases, steps, None if kept is None else kept.program), "note": history.note}


def _document(subject: Subject, records: Records, phases: list[dict[str, Plain]], steps: list[dict[str, Plain]],
              program: PlannedProgram | None) -> dict[str, Plain]:
    return {"title": subject.title or "symconv graph", "note": "", "records": records.rows, "places": records.places,
            "phases": phases, "steps": steps, "sources": {} if program is None else program_sources(program),
            "memory": None if program is None else memory_rows(program, records), "palette": palette()}


def _phase(name: str, subject: Subject, records: Records, snapshot: Snapshot | None = None) -> dict[str, Plain]:
    """A phase: the records of its graph in order, what is returned or stored, marks of nodes, and what rewriting did."""
    diagram = diagram_of(subject)
    numbers = records.add(diagram, subject)
    marks = {number: list(node.marks) for number, node in zip(numbers, diagram.nodes, strict=True) if node.marks}
    outputs = {number: list(node.outputs) for number, node in zip(numbers, diagram.nodes, strict=True) if node.outputs}
    found: dict[str, Plain] = {"name": name, "about": _ABOUT.get(name, ""), "nodes": numbers, "marks": marks, "outputs": outputs}
    if snapshot is not None and name not in (AS_WRITTEN, BIND, PROGRAM):
        found |= {"applications": application_rows(snapshot, records), "declined": declined_rows(snapshot, records)}
    return found
