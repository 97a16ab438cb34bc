"""The text of a report: convolutions in full, other steps as a table, then rewriting, layouts, memory, copies and notes."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..graph import Apply, Variable
from ..ops.convolution import Conv
from ..runtime.layouts import Conversion
from ..runtime.report import CandidateReport, MemoryReport, Report, RewriteReport, StepReport
from .names import bytes_text, escape, places_text, plural, shortened, variable_text
from .operations import epilogue_text, operation_text

_WIDEST = 60


def report_text(report: Report) -> str:
    """The whole report."""
    title = f"{escape(report.name)} on {escape(report.device)}"
    if report.program is not None:
        return "\n".join(_report_lines(title, report))
    how = "Kernels are chosen for shapes: call the function once, or function.prepare(shapes)."
    return "\n".join([f"{title}: no program yet", how, *_section("rewriting", rewrite_lines(report.rewrites))])


def steps_text(report: Report) -> str:
    """The report's steps alone, each in full."""
    return "\n\n".join("\n".join(_step_lines(step)) for step in report.steps)


def _report_lines(title: str, report: Report) -> list[str]:
    inputs = ", ".join(f"{escape(name)} {type}" for name, type in report.inputs) or "no inputs"
    convolutions = [step for step in report.steps if step.problem is not None]
    others = [step for step in report.steps if step.problem is None]
    lines = [f"{title}: the program for {inputs} ({plural(len(report.steps), 'step')}"
             + (f"; one of {report.n_programs} programs)" if report.n_programs > 1 else ")")]
    lines += _section("convolutions", [line for step in convolutions for line in _step_lines(step)])
    lines += _section("other steps" if convolutions else "steps", _table([_row(step) for step in others]))
    lines += _section("chosen among several", [line for step in others for line in _choice_lines(step)])
    return lines + [line for title, each in general_sections(report) for line in _section(title, each)]


def general_sections(report: Report) -> list[tuple[str, Sequence[str]]]:
    """What is told of the program as a whole: titles and lines, some of them without any."""
    assert report.memory is not None
    return [("rewriting", rewrite_lines(report.rewrites)), ("layout", _layout_lines(report)),
            ("memory", _memory_lines(report.memory)),
            ("copies in and out", _transfer_lines(report)), ("started on the device", [escape(each) for each in report.launching]),
            ("what the bits depend on", report.notes), ("machine", _machine_lines(report))]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _step_lines(step: StepReport) -> list[str]:
    """A step in full: problem, choice, candidates, what is fused, the user's line."""
    node = step.node
    what = str(step.problem) if step.problem is not None else step.copy if node is None else operation_text(node)
    lines = [f"step {step.number}: {what}", f"  runs {choice_text(step)}"]
    if step.reference_reason is None:
        lines += _other_lines(step)
    if step.not_cudnn is not None:
        lines.append(f"  cuDNN: no, {step.not_cudnn}")
    if node is not None:
        lines += _node_lines(step, node)
    lines += [f"  not applied: {escape(reason)}" for reason in step.not_fused]
    if step.copied:
        copied = ", ".join(f"i{position}" for position in step.copied)
        lines.append(f"  copies {copied} first: the kernel does not take their strides")
    lines += [f"  gives {type}{_mark(step, number)}" for number, type in enumerate(step.results)]
    lines += [f"  {note}" for note in step.notes]
    return lines + [f"  written at {escape(str(place))}" for place in step.sources]


def _other_lines(step: StepReport) -> list[str]:
    """The candidates that were not chosen, and why none was timed where that was asked for."""
    told = "" if step.not_cudnn is None else "cudnn"  # by a line of its own
    lines = [f"  {_candidate_text(each)}" for each in step.candidates if not each.is_chosen and each.name != told]
    return lines + ([f"  not measured: {escape(step.not_measured)}"] if step.not_measured else [])


def _choice_lines(step: StepReport) -> list[str]:
    """Why this implementation, for a step that several were asked for."""
    if step.reference_reason is not None or len(step.candidates) < 2:
        return []
    return [f"step {step.number}: {choice_text(step)}", *_other_lines(step)]


def _node_lines(step: StepReport, node: Apply) -> list[str]:
    lines = []
    if isinstance(node.op, Conv) and node.op.epilogue is not None:
        names = [f"i{number}" for number in range(len(node.inputs))]
        lines.append(f"  fused into it: {epilogue_text(node.op, names)}")
    elif step.fused:
        lines.append(f"  fused in it: {', '.join(step.fused)}")
    elif isinstance(node.op, Conv):
        lines.append("  fused into it: nothing")
    lines += [f"  i{number} {operand_text(variable)}" for number, variable in enumerate(node.inputs)]
    return lines


def operand_text(variable: Variable) -> str:
    """A variable, or the operation that makes it, with its type."""
    what = variable_text(variable) if variable.apply is None else operation_text(variable.apply)
    return f"{shortened(what)} {variable.type}"


def choice_text(step: StepReport) -> str:
    """What runs a step: its kernel with the expected or measured time, or the reference and why."""
    if step.reference_reason is not None:
        return f"the NumPy reference: {escape(step.reference_reason)}"
    chosen = next((each for each in step.candidates if each.is_chosen), None)
    expected = "" if chosen is None else expected_text(chosen)
    return f"{step.implementation}{expected}, kernel {step.kernel}"


def expected_text(candidate: CandidateReport) -> str:
    """The time of a candidate and the rate that it means, in brackets; nothing where none is known."""
    if not candidate.seconds:
        return ""
    speed = f", {candidate.gflops:.1f} GFLOP/s" if candidate.gflops else ""
    share = f", {candidate.share:.0%} of the peak" if candidate.share is not None else ""
    return f" ({'measured' if candidate.is_measured else 'expected'} {candidate.seconds * 1e3:.3g} ms{speed}{share})"


def _candidate_text(candidate: CandidateReport) -> str:
    if candidate.refusal is not None:
        return f"not {candidate.name}: {escape(candidate.refusal)}"
    return f"not {candidate.name}: slower{expected_text(candidate)}"


def _mark(step: StepReport, output: int) -> str:
    """What is special about where a result goes."""
    names = [escape(name) for number, name in step.updates if number == output]
    return (", in the memory of an input" if output in step.in_place else "") + "".join(f", → {name}" for name in names)


def _row(step: StepReport) -> tuple[str, ...]:
    """A step as a row of the table: number, what it does, implementation, result, marks, place."""
    what = step.copy if step.node is None else shortened(operation_text(step.node), _WIDEST)
    how = step.implementation if step.reference_reason is None else f"NumPy reference: {escape(step.reference_reason)}"
    marks = ["in place"] if step.in_place else []
    marks += [f"→ {escape(name)}" for _, name in step.updates]
    return str(step.number), what, how, ", ".join(step.results), " ".join(marks), places_text(step.sources)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    every = [("step", "what", "implementation", "result", "", "written at"), *rows]
    widths = [max(len(row[column]) for row in every) for column in range(len(every[0]))]
    return ["  ".join(text.ljust(width) if column else text.rjust(width)
                      for column, (text, width) in enumerate(zip(row, widths, strict=True)) if width).rstrip()
            for row in every]


def rewrite_lines(reports: Iterable[RewriteReport]) -> list[str]:
    """For each stage how often each rule was applied, then where one was not and why."""
    lines = []
    for report in reports:
        often = sorted(report.counts.items(), key=lambda item: (-item[1], item[0]))
        counts = ", ".join(f"{rule} {count}" for rule, count in often)
        lines.append(f"{report.stage}: {counts or 'nothing applied'}")
        lines += [f"  not {rule} at {escape(node)}: {escape(reason)}"
                  for rule, node, reason in report.declined]
    return lines


def _memory_lines(memory: MemoryReport) -> list[str]:
    temporaries = plural(memory.temporaries, "temporary", "temporaries")
    at = f", in use at step {memory.peak_step}" if memory.lower_bound_bytes else ""
    lines = [f"arena of {bytes_text(memory.arena_bytes)} for {temporaries} (no plan can need less than "
             f"{bytes_text(memory.lower_bound_bytes)}{at}); "
             f"{plural(memory.in_place, 'result')} written in place"]
    if memory.held_bytes:
        held = ", ".join(f"{_HELD[kind]} {bytes_text(nbytes)}" for kind, nbytes in memory.held_bytes)
        lines.append(f"beside it: {held}; {bytes_text(memory.peak_bytes)} in all at most")
    for names, how in ((memory.updates_in_place, "written in place"), (memory.updates_swapped, "swapped in after the run")):
        if names:
            lines.append(f"updates {how}: {', '.join(map(escape, names))}")
    return lines


def _transfer_lines(report: Report) -> list[str]:
    lines = [f"{escape(each.what)}: {bytes_text(each.nbytes)}, {each.how}" for each in report.transfers]
    return lines or ["none: arguments are read where they lie if they are row-major and of the input's dtype"]


_HELD = {"input": "inputs", "shared": "state", "constant": "constants", "output": "outputs", "update": "new state",
         "kept": "kept between calls"}


def _layout_lines(report: Report) -> list[str]:
    """The changes of layout, what they cost, and what they are expected to repay."""
    lines = [_conversion_line(each) for each in report.conversions]
    if report.saved_seconds is not None:
        blocked = sum(step.plain_seconds is not None for step in report.steps)
        cost = sum(each.seconds for each in report.conversions)
        lines.append(f"{plural(blocked, 'convolution')} in another layout than plain: "
                     f"expected to save {report.saved_seconds * 1e3:.3g} ms, for {cost * 1e3:.3g} ms of conversions")
    return lines


def _conversion_line(conversion: Conversion) -> str:
    change = f"from {conversion.layout_before} to {conversion.layout_after}"
    what = f"{escape(shortened(conversion.what))} {change}, {bytes_text(conversion.nbytes)}"
    readers = ", ".join(map(str, conversion.readers))
    readers = f", read by step {readers}" if readers else ""
    if conversion.step is None:
        return f"{what}: no copy, its readers take the strides{readers}"
    return f"{what}: copied by step {conversion.step} (expected {conversion.seconds * 1e3:.3g} ms){readers}"


def _machine_lines(report: Report) -> list[str]:
    """What the expected times above reckon with; nothing where none stands above."""
    machine = report.machine
    shown = [step for step in report.steps if step.problem is not None or len(step.candidates) > 1]
    if machine is None or not any(each.seconds for step in shown for each in step.candidates):
        return []
    how = "measured once for this machine" if not machine.reason else f"stated defaults: {escape(machine.reason)}"
    return [f"expected times reckon, for {plural(machine.threads, 'thread')}, with {machine.flops / 1e9:.0f} GFLOP/s of float32 "
            f"and copies of {machine.memory / 1e9:.0f} GB/s in memory, {machine.l3 / 1e9:.0f} in the third cache, "
            f"{machine.l2 / 1e9:.0f} in the second", f"these are {how}"]
