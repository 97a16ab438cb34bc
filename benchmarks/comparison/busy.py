"""A training step while another process keeps one of the cores busy: how much slower than on the quiet machine."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .contender import SYMCONV, Row, Timing
from .report import Goal, Section, markdown_table, time_text


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process that computes without end, bound to one of this process's cores where the system can do that."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
        yield
    finally:
        process.kill()
        process.wait()


def busy_section(rows: list[Row], time_rows: Callable[[list[Row]], list[Timing]]) -> Section:
    """Each row quiet and then with a busy core."""
    section = Section("With another process on one core")
    quiet = time_rows(rows)
    with busy_core():
        loaded = time_rows(rows)
    for before, after in zip(quiet, loaded, strict=True):
        slowdown = {name: after.median(name) / before.median(name) for name in before.samples if name in after.samples}
        table = [["library", "quiet ms", "busy ms", "slowdown"]]
        table += [[name, time_text(before.median(name)), time_text(after.median(name)), f"{value:.2f}"]
                  for name, value in slowdown.items()]
        section.lines += [f"{before.row.name}:", "", *markdown_table(table), ""]
        section.goals.append(Goal(f"{before.row.name}: symconv's slowdown", 2.5, slowdown[SYMCONV], at_most=True))
    return section
