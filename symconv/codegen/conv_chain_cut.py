"""How the work of a chain of convolutions is cut: into tasks, and these into chunks of lines."""
from __future__ import annotations

import math
from dataclasses import dataclass

from .blocked import reach
from .conv_common import Geometry, align
from .gemm_tile import GemmTile

_SCRATCH_BYTES = 288 * 1024
"""What a task's part of the middle may take of the second cache."""

_BAND_BYTES = 32 * 1024
"""What the lines of a chunk before the depthwise convolution may take of the first cache, for a pair of blocks."""

_SHARED_BYTES = 768 * 1024
"""What the middle may take of all caches where threads share it."""

_TASKS = 4
"""Tasks for each thread that there should be at least, as long as each makes a few lines."""

_LEAST_LINES = 4


@dataclass(frozen=True, slots=True)
class ChainCut:
    """Lines of a task and of a chunk; whether the middle is shared, and in how many parts its pixels are then; elements of each
    thread's scratch and of the shared middle.
    """

    threads: int
    lines: int
    chunk: int
    shared: bool
    pixel_parts: int
    scratch: int
    middle: int


def cut_chain(geometry: Geometry, rows: int, tile: GemmTile, threads: int, is_parallel: bool) -> ChainCut:
    """Lines in tasks of their own where there are enough without making many twice; else pairs of blocks over a shared middle.

    Args:
        geometry: of the depthwise convolution.
        rows: channels of the result.
        tile: register tiles.
        threads: that there are; one of them runs it all unless `is_parallel`.
        is_parallel: whether there is enough work for several.
    """
    team = threads if is_parallel else 1
    middle = geometry.batch * geometry.groups * math.prod(geometry.outside)
    shared = team > 1 and geometry.batch < 2 * team and middle * tile.itemsize <= _SHARED_BYTES
    lines = _shared_lines(geometry, tile, team) if shared else _task_lines(geometry, tile, threads)
    chunk = lines
    while chunk > 1 and _band_elements(geometry, chunk, tile) * tile.itemsize > _BAND_BYTES:
        chunk -= 1
    chunk = -(-lines // -(-lines // chunk))
    panels = max(1, geometry.batch * -(-rows // tile.columns))
    kept = 0 if shared else geometry.groups * lines * geometry.outside[2]
    scratch = align((_band_elements(geometry, chunk, tile) + kept) * tile.itemsize + tile.vector_bytes) // tile.itemsize
    return ChainCut(team, lines, chunk, shared, -(-2 * _TASKS * team // panels), scratch, middle if shared else 0)


def line_pixels(geometry: Geometry) -> int:
    """Pixels of a line of the middle with its padding."""
    return max(reach(geometry, 2, geometry.outside[2]), geometry.pad[2] + geometry.inside[2])


def _task_lines(geometry: Geometry, tile: GemmTile, threads: int) -> int:
    """Lines whose middle fits the second cache, in as many tasks as keep all threads busy."""
    most = max(1, geometry.outside[1])
    fitting = max(1, _SCRATCH_BYTES // max(1, geometry.groups * geometry.outside[2] * tile.itemsize))
    wanted = -(-_TASKS * threads // max(1, geometry.batch))
    lines = min(most, fitting, max(_LEAST_LINES, -(-most // wanted)))
    return -(-most // -(-most // lines))


def _shared_lines(geometry: Geometry, tile: GemmTile, threads: int) -> int:
    """All lines of a pair of blocks, or parts of them where there are few pairs."""
    panels = geometry.batch * -(-geometry.groups // tile.columns)
    return max(1, -(-geometry.outside[1] // -(-_TASKS * threads // panels)))


def _band_elements(geometry: Geometry, lines: int, tile: GemmTile) -> int:
    return 2 * reach(geometry, 1, lines) * line_pixels(geometry) * tile.lanes
