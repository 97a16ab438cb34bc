"""The table of a profile."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..runtime.profile import Profile, ProgramProfile
from ..runtime.profile_rows import Share, StepRow, live_bytes
from .names import bytes_text, escape, places_text, plural, shortened, variable_text

_MOST_LINES = 20
_WIDEST = 78


def profile_text(profile: Profile) -> str:
    """A profile as text: where the time went, by operation, by line, and every program step by step."""
    name = escape(profile.name)
    if not profile.entries:
        return f"profile of {name}: no calls (compile with profile=True, or set config.profile)"
    calls, seconds = sum(entry.calls for entry in profile.entries), profile.seconds()
    lines = [f"profile of {name} on {escape(profile.device)}: {plural(calls, 'call')}, {_milliseconds(seconds['calls'])} "
             f"({_milliseconds(seconds['calls'] / calls)} each)", *_split_lines(seconds)]
    lines += _shares("by operation", profile.by_operation()) + _shares("by your line", profile.by_line())
    for entry in profile.entries:
        lines += _program_lines(entry, profile.rows_of(entry.program))
    return "\n".join(lines)


def _split_lines(seconds: dict[str, float]) -> list[str]:
    total = max(seconds["calls"], 1e-30)
    parts = [(seconds["python"], "in Python around the programs"), (seconds["between_steps"], "in programs, between steps"),
             (seconds["steps"] - seconds["waiting"], "in steps")]
    if seconds["waiting"]:
        parts.append((seconds["waiting"], "in steps, waiting for the device"))
    lines = ["  " + ", ".join(f"{part / total:.1%} {what}" for part, what in parts)]
    if seconds["making"]:
        lines.append(f"  programs for new shapes took {_milliseconds(seconds['making'])} to make, which is not counted above")
    return lines


def _shares(title: str, shares: Sequence[Share]) -> list[str]:
    rows = [(f"{each.share:.1%}", _milliseconds(each.seconds), shortened(escape(_short_path(each.what)), _WIDEST))
            for each in shares[:_MOST_LINES]]
    left = len(shares) - _MOST_LINES
    return ["", title, *_aligned(rows, 2), *([f"  … and {plural(left, 'more', 'more')}"] if left > 0 else [])]


def _short_path(what: str) -> str:
    """A line of the user's with the file's name alone; anything else as it is."""
    found = re.match(r"(.*?)(:\d+(: .*)?)$", what, re.DOTALL)
    return what if found is None else os.path.basename(found[1]) + found[2]


def _program_lines(entry: ProgramProfile, rows: Sequence[StepRow]) -> list[str]:
    """A program's steps, the dearest first."""
    program, live = entry.program, live_bytes(entry.program)
    inputs = ", ".join(f"{variable_text(variable)} {variable.type}" for variable in program.graph.inputs) or "no inputs"
    head = ("share", "ms", "GFLOP/s", "GB/s", "of roofline", "result", "arena after", "step", "implementation", "written at")
    body = [(f"{row.share:.1%}", f"{row.seconds_each * 1e3:.4f}", f"{row.gflops:.2f}", f"{row.gbytes:.2f}",
             "-" if row.roofline is None else f"{row.roofline:.0%}", bytes_text(row.bytes), bytes_text(row.live_bytes),
             str(row.step), f"{row.implementation}: {row.name}", places_text(row.sources))
            for row in sorted(rows, key=lambda each: -each.seconds)]
    peak = "" if live.peak_step < 0 else f", most in use at step {live.peak_step}: {bytes_text(max(live.at))}"
    return ["", f"program for {inputs}: {plural(entry.calls, 'call')}, {_milliseconds(entry.seconds)}",
            *_aligned([head, *body], 8), f"  memory: an arena of {bytes_text(program.memory.arena_bytes)}{peak}"]


def _aligned(rows: Sequence[tuple[str, ...]], numbers: int) -> list[str]:
    """Rows in columns, the first `numbers` of them to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    return ["  " + "  ".join(text.rjust(width) if column < numbers else text.ljust(width)
                             for column, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"
