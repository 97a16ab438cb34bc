"""`fn.explain(format="html")`: the report as a piece of HTML for notebooks and pages."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from html import escape as text
from importlib import resources

from ..runtime.report import CandidateReport, Report, StepReport
from .explain_text import choice_text, general_sections, operand_text, rewrite_lines
from .names import escape, places_text, plural
from .operations import operation_text


class Html(str):
    """HTML that notebooks show as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def explain_as_html(report: Report) -> Html:
    """The report as one `div` with its own style: convolutions with all candidates, the other steps, and the rest as lists.

    Names and reasons are only ever text in it.
    """
    title = f"<h2>{_shown(report.name)} on {_shown(report.device)}</h2>"
    if report.program is None:
        hint = ("<p>No program yet: kernels are chosen for shapes. Call the function once, or "
                "<code>function.prepare(shapes)</code>.</p>")
        return wrapped(title, hint, *_list("rewriting", rewrite_lines(report.rewrites)))
    full = [step for step in report.steps if step.problem is not None or len(report.steps) < len(report.program.steps)]
    others = [step for step in report.steps if step not in full]
    parts = [title, f"<p>{_inputs(report)}</p>"]
    parts += [f"<h3>{'convolutions' if all(step.problem for step in full) else 'steps'}</h3>", *map(_step, full)] if full else []
    parts += _table("other steps" if full else "steps", others)
    if len(report.steps) == len(report.program.steps):
        parts += [part for name, lines in general_sections(report) for part in _list(name, lines)]
    return wrapped(*parts)


def wrapped(*parts: str) -> Html:
    """Pieces in one element with its style."""
    return Html(f'<div class="symconv"><style>{_style()}</style>{"".join(parts)}</div>')


@lru_cache(maxsize=1)
def _style() -> str:
    return (resources.files("symconv.printing") / "templates" / "explain.css").read_text(encoding="utf-8")


def _shown(name: str) -> str:
    return text(escape(name))


def _inputs(report: Report) -> str:
    inputs = ", ".join(f"{_shown(name)} <code>{text(kind)}</code>" for name, kind in report.inputs) or "no inputs"
    several = f"; one of {report.n_programs} programs" if report.n_programs > 1 else ""
    return f"The program for {inputs} ({plural(len(report.steps), 'step')}{several})."


def _list(title: str, lines: Sequence[str]) -> Iterable[str]:
    if lines:
        yield f"<h3>{text(title)}</h3><ul>{''.join(f'<li>{text(line.strip())}</li>' for line in lines)}</ul>"


def _step(step: StepReport) -> str:
    """A step in full."""
    node = step.node
    what = str(step.problem) if step.problem is not None else step.copy if node is None else operation_text(node)
    parts = [f"<h4>step {step.number}: <code>{text(what)}</code></h4>", f"<p>runs {text(choice_text(step))}</p>", _candidates(step)]
    lines = [f"cuDNN: no, {step.not_cudnn}"] if step.not_cudnn is not None else []
    lines += [f"fused into it: {', '.join(step.fused)}"] if step.fused else []
    lines += [f"not applied: {escape(reason)}" for reason in step.not_fused]
    lines += [] if node is None else [f"i{number} {operand_text(variable)}" for number, variable in enumerate(node.inputs)]
    lines += [f"gives {kind}" for kind in step.results]
    lines += [f"updates {escape(name)}" for _, name in step.updates] + list(step.notes)
    lines += [f"written at {escape(str(place))}" for place in step.sources]
    return f"<section>{''.join(parts)}<ul>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul></section>"


def _candidates(step: StepReport) -> str:
    if step.reference_reason is not None or not step.candidates:
        return ""
    rows = "".join(map(_candidate, step.candidates))
    head = '<tr><th scope="col">candidate</th><th scope="col" class="figure">time</th><th scope="col" class="figure">GFLOP/s</th>' \
           '<th scope="col">verdict</th></tr>'
    unmeasured = f'<p class="quiet">not measured: {_shown(step.not_measured)}</p>' if step.not_measured else ""
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{unmeasured}"


def _candidate(each: CandidateReport) -> str:
    kind = "chosen" if each.is_chosen else "refused" if each.refusal is not None else ""
    verdict = "chosen" if each.is_chosen else "slower" if each.refusal is None else _shown(each.refusal)
    seconds = "" if not each.seconds else f"{each.seconds * 1e3:.3g} ms {'measured' if each.is_measured else 'expected'}"
    speed = f"{each.gflops:.1f}" if each.gflops else ""
    return (f'<tr class="{kind}"><td>{_shown(each.name)}</td><td class="figure">{seconds}</td><td class="figure">{speed}</td>'
            f"<td>{verdict}</td></tr>")


def _table(title: str, steps: Sequence[StepReport]) -> Iterable[str]:
    if steps:
        head = "".join(f'<th scope="col">{name}</th>' for name in ("step", "what", "implementation", "result", "", "written at"))
        yield f"<h3>{title}</h3><table><thead><tr>{head}</tr></thead><tbody>{''.join(map(_row, steps))}</tbody></table>"


def _row(step: StepReport) -> str:
    what = step.copy if step.node is None else operation_text(step.node)
    how = step.implementation if step.reference_reason is None else f"NumPy reference: {escape(step.reference_reason)}"
    marks = (["in place"] if step.in_place else []) + [f"→ {escape(name)}" for _, name in step.updates]
    cells = (str(step.number), what, how, ", ".join(step.results), " ".join(marks), places_text(step.sources))
    return f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>"
