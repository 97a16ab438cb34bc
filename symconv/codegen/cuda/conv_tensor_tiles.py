"""How convolutions on tensor cores are cut into tiles, where a tile's elements lie in shared memory, and how long they are expected
to take.

A tile's steps are 64 bytes deep: 32 half floats or 16 tf32 numbers.  All elements move in vectors of 16 bytes.

What bounds a block, for a warp's tile of a x b and 16 half floats of depth: `mma.sync` does 2 a b 16 operations, `ldmatrix` reads
(a + b) 32 bytes of shared memory, of which a multiprocessor gives 128 a cycle, and copies write their tile's share.  64x64 for a
warp asks for half of what an A100's tensor cores leave time for, 64x32 for three quarters, 32x32 for all of it; on an H100, whose
tensor cores are twice as fast, 64x64 asks for all.

A step of the 128x128 tile is 195 instructions of a warp on sm_80 (64 `mma.sync`, 16 `ldmatrix`, 8 copies) where channels are whole
vectors and lie on multiples of 16 bytes: as many as the tensor cores' 512 cycles leave time for twice over, and H100's 256 just.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from .rates import LAUNCH_SECONDS, GpuRates

VECTOR_BYTES = 16
DEPTH_BYTES = 64
_BANK_VECTORS = 8       # vectors that all banks of shared memory hold
_MOST_STAGES = 4
_WANTED_STAGES = 3
_SYSTEM_SHARED = 1024   # bytes of shared memory that the system takes from every block
_FULL_WARPS = 8         # on a multiprocessor; with fewer, waiting is not hidden
_FEW_WARPS_SHARE = 0.7  # of the full rate with fewer
_LEAST_STEPS = 8        # of a part of a sum: fewer are not worth a start and an end
_MOST_SPLITS = 512
_FILL_STEPS = 4         # steps that a block's start and its epilogue last


@dataclass(frozen=True, slots=True)
class Swizzle:
    """Vector v of row r lies at place v ^ (r / `divisor` % `modulus` * `factor`) of its row of `vectors` vectors.

    A fragment is read 8 rows (or columns) at a time, one vector of each: the 8 must lie in different banks.
    """

    vectors: int
    divisor: int
    modulus: int
    factor: int = 1

    def place(self, row: int, vector: int) -> int:
        """Where a vector lies, in vectors from the start of the tile.

        >>> [Swizzle(4, 2, 4).place(row, 0) % 8 for row in range(8)]
        [0, 4, 1, 5, 2, 6, 3, 7]
        """
        return row * self.vectors + (vector ^ row // self.divisor % self.modulus * self.factor)

    @property
    def text(self) -> str:
        """The same as C over `row` and `vector`."""
        turned = f"row / {self.divisor} % {self.modulus}" if self.divisor > 1 else f"row % {self.modulus}"
        turned = f"({turned}) * {self.factor}" if self.factor > 1 else turned
        return f"row * {self.vectors} + (vector ^ ({turned}))"


@dataclass(frozen=True, slots=True)
class ConvTile:
    """What a block computes, what each of its warps, and how many blocks a multiprocessor is to hold."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    blocks: int

    @property
    def warps_across(self) -> int:
        """Warps beside each other along the columns."""
        return self.columns // self.warp_columns

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps_across * (self.rows // self.warp_rows)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of one step of both factors."""
        return (self.rows + self.columns) * DEPTH_BYTES

    def residence(self, rates: GpuRates) -> tuple[int, int]:
        """Steps that have room in shared memory, and blocks that a multiprocessor holds then: three steps before more blocks.

        >>> from symconv.codegen.cuda.rates import gpu_rates
        >>> [TILES[2].residence(gpu_rates(arch)) for arch in (80, 86)]
        [(4, 3), (4, 2)]
        """
        for blocks in range(self.blocks, 0, -1):
            share = min(rates.block_shared_kib << 10, (rates.shared_kib << 10) // blocks - _SYSTEM_SHARED) - 8 * self.rows
            if share // self.stage_bytes >= _WANTED_STAGES:
                return min(_MOST_STAGES, share // self.stage_bytes), blocks
        return 2, 1

    def stages(self, rates: GpuRates) -> int:
        """Steps that have room in shared memory."""
        return self.residence(rates)[0]

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"


TILES = (ConvTile(256, 128, 64, 64, 1), ConvTile(128, 128, 64, 64, 2), ConvTile(128, 64, 64, 32, 3), ConvTile(64, 64, 32, 32, 4),
         ConvTile(128, 32, 32, 32, 4))


def depth_swizzle() -> Swizzle:
    """Of tiles whose rows are what fragments' rows are: a row is one step's depth, 4 vectors, so two rows fill all banks."""
    return Swizzle(DEPTH_BYTES // VECTOR_BYTES, 2, 4)


def transposed_swizzle(elements: int, itemsize: int) -> Swizzle:
    """Of tiles whose rows are a step's depth, `elements` elements wide.

    Half floats are read by `ldmatrix.trans`, 8 depths of one vector; tf32 numbers one by one, 4 depths of 2 vectors.
    """
    vectors = elements * itemsize // VECTOR_BYTES
    return Swizzle(vectors, 1, _BANK_VECTORS) if itemsize == 2 else Swizzle(vectors, 1, 4, 2)


@dataclass(frozen=True, slots=True)
class Work:
    """A product to be cut: rows and columns (of each phase and group), steps of depth in all blocks of one tile, parallel copies.

    `steps` are those of a block on average: phases of DGRAD differ in their taps.
    """

    rows: int
    columns: int
    steps: float
    copies: int
    dtype: str

    def blocks(self, tile: ConvTile) -> int:
        """Blocks of the launch."""
        return math.ceil(self.rows / tile.rows) * math.ceil(self.columns / tile.columns) * self.copies


def tile_seconds(work: Work, tile: ConvTile, rates: GpuRates) -> float:
    """Time of the multiprocessor with most blocks: all its products at its share of the tensor cores' rate.

    Less than 8 warps do not hide their waiting; small tiles of warps wait for shared memory.
    """
    itemsize = 4 if work.dtype == "float32" else 2
    count = math.ceil(work.blocks(tile) / rates.multiprocessors)
    warps = min(count, tile.residence(rates)[1]) * tile.threads // 32
    share = 1.0 if warps >= _FULL_WARPS else _FEW_WARPS_SHARE
    reuse = tile.warp_rows * tile.warp_columns / (tile.warp_rows + tile.warp_columns)
    share *= min(1.0, 0.4 + 0.6 * reuse / 32)
    step = 2 * tile.rows * tile.columns * DEPTH_BYTES // itemsize
    return count * (work.steps + _FILL_STEPS) * step / (share * rates.tensor_flops(work.dtype) / rates.multiprocessors)


def possible_splits(blocks: int, steps: float, tile: ConvTile, rates: GpuRates) -> list[int]:
    """In how many parts the depth may be summed: so that the multiprocessors hold their blocks one, two or three times.

    >>> from symconv.codegen.cuda.rates import gpu_rates
    >>> possible_splits(8, 144, TILES[3], gpu_rates(90)), possible_splits(5000, 144, TILES[3], gpu_rates(90))
    ([1, 18], [1])
    """
    most = max(1, min(int(steps) // _LEAST_STEPS, _MOST_SPLITS))
    return sorted({1, *(min(most, max(1, rates.multiprocessors * tile.blocks * waves // blocks)) for waves in (1, 2, 3))})


def split_seconds(work: Work, tile: ConvTile, part_bytes: int, rates: GpuRates, splits: int) -> float:
    """The product, and where it is in parts: these written, read again, and a launch more."""
    seconds = tile_seconds(work, tile, rates)
    return seconds if splits == 1 else seconds + LAUNCH_SECONDS + 2 * splits * part_bytes / rates.memory
