"""The report: one table for each group of rows, geometric means beside the goals."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .contender import SYMCONV, Timing, geometric_mean


@dataclass
class Goal:
    """A bound on some of the rows' ratios."""

    text: str
    wanted: float
    found: float
    at_most: bool = False

    def line(self) -> str:
        """As a line of a list."""
        met = self.found <= self.wanted if self.at_most else self.found >= self.wanted
        return f"{self.text}: {self.found:.2f} (goal {'≤' if self.at_most else '≥'} {self.wanted:g}{'' if met else ', missed'})"


@dataclass
class Section:
    """A table with its goals."""

    title: str
    timings: list[Timing] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def time_text(seconds: float) -> str:
    """A time in milliseconds with three digits.

    >>> time_text(0.0123456), time_text(0.0000123)
    ('12.3', '0.0123')
    """
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def timing_table(timings: Sequence[Timing], work_unit: str = "GFLOP/s") -> list[str]:
    """A table of medians in ms, of the ratio, and of what symconv reaches."""
    names = list(dict.fromkeys(name for timing in timings for name in timing.row.builders))
    rows = [["work", *(f"{name} ms" for name in names), "best peer / symconv", "of the fastest tenth", work_unit, "symconv ran"]]
    for timing in timings:
        cells = [time_text(timing.median(name)) if name in timing.samples else "–" for name in names]
        work = timing.row.flops if work_unit == "GFLOP/s" else timing.row.bytes
        speed = f"{work / timing.median(SYMCONV) / 1e9:.1f}" if work else "–"
        ratios = [f"{ratio:.2f}" if ratio is not None else "–" for ratio in (timing.ratio, timing.ratio_of_fastest)]
        rows.append([timing.row.name, *cells, *ratios, speed,
                     timing.notes.get(SYMCONV, "")])
    kept = [column for column in range(len(rows[0])) if any(row[column] not in ("", "–") for row in rows[1:])]
    return markdown_table([[row[column] for column in kept] for row in rows])


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table; the first row is its head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def ratio_goals(text: str, timings: Sequence[Timing], mean: float, least: float | None = None,
                chosen: Callable[[Timing], bool] | None = None) -> list[Goal]:
    """The geometric mean of the ratios, and the least one, against goals."""
    ratios = [timing.ratio for timing in timings if timing.ratio is not None and (chosen is None or chosen(timing))]
    if not ratios:
        return []
    fastest = [timing.ratio_of_fastest for timing in timings
               if timing.ratio_of_fastest is not None and (chosen is None or chosen(timing))]
    head = f"{text}, geometric mean of {len(ratios)}" if len(ratios) > 1 else text
    goals = [Goal(f"{head} ({geometric_mean(fastest):.2f} of the fastest tenth)", mean, geometric_mean(ratios))]
    return goals if least is None else [*goals, Goal(f"{text}, least", least, min(ratios))]


def render(facts: dict[str, str], sections: Sequence[Section], where: str = "the CPU", program: str = "cpu.py") -> str:
    """The whole report in Markdown."""
    lines = [f"# symconv beside other libraries on {where}", "",
             "Medians of interleaved turns in one process; ratios are the best peer's time over symconv's, above 1 where symconv",
             f"is faster. Written by `python benchmarks/{program}`.", "", *(f"- {name}: {value}" for name, value in facts.items())]
    for section in sections:
        lines += ["", *section_lines(section)]
    return "\n".join(lines) + "\n"


def section_lines(section: Section) -> list[str]:
    """One section in Markdown."""
    unit = "GFLOP/s" if any(timing.row.flops for timing in section.timings) else "GB/s"
    lines = [f"## {section.title}", ""]
    if section.timings:
        lines += [*timing_table(section.timings, unit), ""]
    lines += section.lines
    lines += [f"- {goal.line()}" for goal in section.goals]
    failures = [f"- left out in `{timing.row.name}`: {name}: {reason}" for timing in section.timings
                for name, reason in timing.failures.items()]
    return lines + failures
