"""What is compared: a row is one piece of work, a contender one library's way to do it."""
from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SYMCONV = "symconv"


@dataclass(frozen=True)
class Contender:
    """One library's way to do a piece of work.

    `call()` does it once and returns when it is done; `read(result)` makes arrays of what it returned, to be compared with
    those of the others.  `note` is said in the report (which implementation ran, for example).
    """

    name: str
    call: Callable[[], Any]
    read: Callable[[Any], list[Array]]
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One line of a table.

    `builders` make the contenders by name, when the row's turn comes.  `tolerance` is how far results may differ, relative
    to the largest value of the result; `checked_calls` calls are compared (several for training steps: losses that stay
    equal need equal gradients).
    """

    group: str
    name: str
    builders: Mapping[str, Callable[[], Contender]]
    flops: int = 0
    bytes: int = 0
    tolerance: float = 1e-4
    checked_calls: int = 1


@dataclass
class Timing:
    """Seconds of each contender's calls in one row, what failed, and notes."""

    row: Row
    samples: dict[str, list[float]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def median(self, name: str) -> float:
        """The median call of a contender in seconds."""
        return float(np.median(self.samples[name]))

    def fastest(self, name: str) -> float:
        """What the fastest tenth of a contender's calls stay below: less moved by whatever else the machine does."""
        return float(np.quantile(self.samples[name], 0.1))

    @property
    def ratio(self) -> float | None:
        """Median of the best peer over symconv's: above 1 where symconv is faster."""
        return self._ratio(self.median)

    @property
    def ratio_of_fastest(self) -> float | None:
        """The same of the fastest tenth of the calls."""
        return self._ratio(self.fastest)

    def _ratio(self, seconds: Callable[[str], float]) -> float | None:
        peers = [seconds(name) for name in self.samples if name != SYMCONV]
        return min(peers) / seconds(SYMCONV) if peers and SYMCONV in self.samples else None


def installed(*modules: str) -> bool:
    """Whether all these modules could be imported."""
    return all(importlib.util.find_spec(module) is not None for module in modules)


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean; NaN of nothing."""
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")
