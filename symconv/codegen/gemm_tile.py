"""Sizes of the packed matrix product: the register tile and the cache blocks, from the dtype and the vector width.

The structure is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008), and of BLIS (Van
Zee and van de Geijn, 2015): a tile of the result in registers, a panel of the right matrix in the first cache, a block of the
left one in the second.
"""
from __future__ import annotations

from dataclasses import dataclass

from .. import dtypes
from ..target import Target

PARALLEL_FLOPS = 200_000
"""Work below which starting a team of threads costs more than it saves (a few microseconds)."""

START_SECONDS = 3.0e-6
"""What a team of threads costs to start, in estimates."""


@dataclass(frozen=True, slots=True)
class GemmTile:
    """The register tile: `rows` broadcast values times two vectors of `lanes` columns."""

    dtype: str
    vector_bytes: int
    registers: int = 16

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return dtypes.itemsize(self.dtype)

    @property
    def c_type(self) -> str:
        """The element's C type."""
        return dtypes.DTYPES[self.dtype].c_name

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.vector_bytes // self.itemsize

    @property
    def rows(self) -> int:
        """Rows of the tile: 12 sums of 16 registers, or 24 of the 32 that AVX-512 and NEON have."""
        return 12 if self.registers >= 32 else 6

    @property
    def columns(self) -> int:
        """Columns of the tile: two vectors."""
        return 2 * self.lanes

    @property
    def shuffles(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name and lane numbers (of two vectors, one behind the other) of the shuffles that kernels use."""
        half, lanes = self.lanes // 2, self.lanes
        low = tuple(lane + side for lane in range(half) for side in (0, lanes))
        return (("INTERLEAVE_LOW", low), ("INTERLEAVE_HIGH", tuple(lane + half for lane in low)),
                ("EVEN", tuple(range(0, 2 * lanes, 2))), ("ODD", tuple(range(1, 2 * lanes, 2))), *self._quick_shuffles)

    @property
    def _quick_shuffles(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """EVEN and ODD in the order that one instruction gives, within 16 bytes, and what takes a vector from and to that order."""
        chunk, lanes = 16 // self.itemsize, self.lanes
        even = tuple(side + first + lane for first in range(0, lanes, chunk) for side in (0, lanes) for lane in range(0, chunk, 2))
        disorder = tuple(number // 2 for number in even)
        order = tuple(disorder.index(lane) for lane in range(lanes))
        return (("QUICK_EVEN", even), ("QUICK_ODD", tuple(number + 1 for number in even)), ("IN_ORDER", order),
                ("QUICK_ORDER", disorder))

    @property
    def transpose_rounds(self) -> int:
        """Rounds of interleaving that transpose a square of `lanes` vectors."""
        return self.lanes.bit_length() - 1

    @property
    def suffix(self) -> str:
        """What kernel names call the dtype and the vector width (`f32_v32`)."""
        many = "_r32" if self.registers >= 32 and self.vector_bytes < 64 else ""
        return f"{'f32' if self.dtype == 'float32' else 'f64'}_v{self.vector_bytes}{many}"


def make_tile(dtype: str, target: Target) -> GemmTile:
    """The tile of float32 or float64 on a target."""
    return GemmTile(dtype, max(target.vector_bytes, 16), target.registers)


@dataclass(frozen=True, slots=True)
class GemmBlock:
    """Cache blocks: `depth` of a panel (16 kB in all), `columns` packed at once, rows and columns of one thread's task."""

    depth: int
    columns: int
    task_rows: int
    task_columns: int


def make_block(tile: GemmTile) -> GemmBlock:
    """The cache blocks for a tile."""
    depth = max(16 * 1024 // (tile.columns * tile.itemsize), 64)
    return GemmBlock(depth, 4096, 96, 8 * tile.columns)


def cycle_seconds(cycles: float, target: Target, threads: int) -> float:
    """Expected seconds of so many cycles in all, shared by a team: two multiply-adds of a vector start in each."""
    return 2 * cycles / target.ceilings.rates(threads).fmas


def compute_seconds(flops: float, tile_dtype: str, target: Target, efficiency: float) -> float:
    """Expected seconds of `flops` at a share of the machine's peak (`Target.ceilings`)."""
    return flops / (target.peak_flops(tile_dtype) * efficiency) if flops else 0.0
