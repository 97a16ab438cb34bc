"""Fuel: how often rewriting may still change anything in this process (`config.fuel`), to find a wrong rewrite by halving."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..config import config
from .log import Application


class Fuel:
    """Counts applications since `config.fuel` was last set to what it is; with `config.fuel_report` it keeps a file of them."""

    def __init__(self) -> None:
        self.limit = -1
        self.spent = 0

    @property
    def left(self) -> int:
        """Applications still allowed; -1: no limit."""
        if config.fuel != self.limit:
            self.limit, self.spent = config.fuel, 0
        return -1 if self.limit < 0 else max(0, self.limit - self.spent)

    def spend(self, applications: Sequence[Application]) -> None:
        """Note what was done."""
        self.spent += len(applications)
        if config.fuel_report and applications:
            last = applications[-1]
            Path(config.fuel_report).write_text(json.dumps({
                "count": self.spent, "rule": last.rule, "phase": last.phase, "text": str(last),
                "sources": [str(place) for place in last.sources]}), encoding="utf-8")


FUEL = Fuel()
