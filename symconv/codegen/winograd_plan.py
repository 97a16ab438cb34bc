"""How the work of Winograd's form is cut, and how squares of vectors are turned: what its kernels have in common."""
from __future__ import annotations

from dataclasses import dataclass

from .conv_common import Geometry
from .gemm_tile import GemmTile

MOST_TILES = 128
"""Tiles of a block at most."""

RUN_PIXELS = 28
"""Pixels of a row that are transformed together: with 6 lines and three vectors of channels they take half of the first cache."""

DEPTH, SMALL_TILE_DEPTH = 64, 128
"""Terms summed in one pass, and where tiles are 2x2, whose errors are smaller. Sums of sums are more exact: with all of 512
channels in one, errors of tiles of 4x4 are 1.8 times as large."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How a square of vectors is turned: named shuffles, and rounds of (first, second, low shuffle, high shuffle), in place."""

    shuffles: tuple[tuple[str, tuple[int, ...]], ...]
    rounds: tuple[tuple[tuple[int, int, str, str], ...], ...]


def make_turn(lanes: int) -> Turn:
    """Two rounds within each four lanes, then rounds that exchange fours; two lanes take one.

    >>> [len(make_turn(lanes).rounds) for lanes in (2, 4, 8, 16)]
    [1, 2, 3, 4]
    """
    if lanes == 2:
        return Turn((("PAIRS_LOW", (0, 2)), ("PAIRS_HIGH", (1, 3))), (_round(2, 1, "PAIRS"),))
    low = tuple(lane for first in range(0, lanes, 4) for lane in (first, lanes + first, first + 1, lanes + first + 1))
    shuffles = [("PAIRS_LOW", low), ("PAIRS_HIGH", tuple(lane + 2 for lane in low))]
    rounds = [_round(lanes, distance, "PAIRS") for distance in (2, 1)]
    for distance in (8, 4):
        if distance < lanes:
            low = tuple(lanes + lane - distance if lane & distance else lane for lane in range(lanes))
            high = tuple(lanes + lane if lane & distance else lane + distance for lane in range(lanes))
            shuffles += [(f"FOURS_{distance}_LOW", low), (f"FOURS_{distance}_HIGH", high)]
            rounds.append(_round(lanes, distance, f"FOURS_{distance}"))
    return Turn(tuple(shuffles), tuple(rounds))


def _round(lanes: int, distance: int, name: str) -> tuple[tuple[int, int, str, str], ...]:
    return tuple((each, each + distance, f"{name}_LOW", f"{name}_HIGH") for each in range(lanes) if not each & distance)


def odd_lines(elements: int, tile: GemmTile) -> int:
    """Rounded up to whole lines of the cache, an odd number of them: what lies so far apart falls into different sets."""
    line = 64 // tile.itemsize
    return (-(-elements // line) | 1) * line


def count_tiles(geometry: Geometry, size: int) -> int:
    """Tiles of `size` x `size` pixels of the response (FPROP, WGRAD) or the image (DGRAD), of all images."""
    return geometry.batch * -(-geometry.outside[1] // size) * -(-geometry.outside[2] // size)


def parts_of(size: int, parts: int) -> int:
    """The length of nearly equal parts."""
    return -(-size // max(1, min(parts, size)))
