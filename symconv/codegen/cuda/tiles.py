"""How matrix products on CUDA cores are cut: what a block computes, and each of its threads."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    """What a block computes in steps of `depth`, and each of its threads."""

    rows: int = 64
    columns: int = 64
    depth: int = 16
    thread_rows: int = 4
    thread_columns: int = 4

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows * self.columns // (self.thread_rows * self.thread_columns)

    @property
    def across(self) -> int:
        """Threads beside each other along the columns."""
        return self.columns // self.thread_columns


TILE = Tile()
