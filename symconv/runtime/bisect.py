"""Which rewrite changes an answer: run a script again and again with more or fewer rewrites allowed, halving the range each time.

The script tells right from wrong by its exit status: an `assert` that fails is enough.
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, explain_error


@dataclass(frozen=True, slots=True)
class Culprit:
    """The rewrite that makes the script fail: the `number`-th of `total` applications."""

    number: int
    total: int
    rule: str
    phase: str
    text: str
    sources: tuple[str, ...]
    output: str

    def __str__(self) -> str:
        lines = [f"rewrite {self.number} of {self.total} changes the answer: the rule {self.rule} (phase {self.phase})",
                 f"  {self.text}", *(f"  where: {place}" for place in self.sources),
                 f"  do: check it with mode=\"debug\"; leave it out with Mode(...).excluding({self.rule!r})"]
        if self.output:
            lines += ["  the script then ends with:", *(f"    {line}" for line in self.output.splitlines()[-5:])]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Outcome:
    failed: bool
    report: dict[str, Any]
    output: str


def bisect(script: str, arguments: Sequence[str] = (), say: Callable[[str], None] = print) -> Culprit:
    """Find the first rewrite with which a script fails.

    Raises:
        ArgumentError: the script succeeds with all rewrites, or fails without any, so that no rewrite is to blame.
    """
    if not Path(script).is_file():
        raise ArgumentError(explain_error("there is no script of this name", script))
    whole = _run(script, arguments, -1)
    if not whole.failed:
        raise ArgumentError(explain_error("the script succeeds with all rewrites", "exit status 0",
                                          "let it fail (assert, sys.exit(1)) when the answer is wrong"))
    total = int(whole.report.get("count", 0))
    if not total or _run(script, arguments, 0).failed:
        raise ArgumentError(explain_error("the script fails without any rewrite too", whole.output.strip()[-500:],
                                          "look for the fault in the script, or in a kernel with mode=\"debug\""))
    good, bad, last = 0, total, whole
    while bad - good > 1:
        middle = (good + bad) // 2
        outcome = _run(script, arguments, middle)
        say(f"{middle} rewrites: {'wrong' if outcome.failed else 'right'}")
        if outcome.failed:
            bad, last = middle, outcome
        else:
            good = middle
    if last is whole:
        last = _run(script, arguments, bad)
    report = last.report
    return Culprit(bad, total, report["rule"], report["phase"], report["text"], tuple(report["sources"]), last.output.strip())


def _run(script: str, arguments: Sequence[str], fuel: int) -> _Outcome:
    """The script in a process of its own with so many rewrites."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "fuel.json")
        environment = dict(os.environ, SYMCONV_FUEL=str(fuel), SYMCONV_FUEL_REPORT=str(report))
        done = subprocess.run([sys.executable, script, *arguments], env=environment, capture_output=True, text=True, check=False)
        found = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
    return _Outcome(done.returncode != 0, found, done.stderr or done.stdout)
