"""Fast Fourier transforms of powers of two, as the numbers that `conv_fft.c.j2` loops over.

Forward transforms are decimations in frequency, inverse ones decimations in time, both in place and in passes of four (Cooley and
Tukey 1965; Gentleman and Sande 1966): nothing is brought back into order, since spectra are only multiplied point by point.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over all elements: blocks of `length` elements are taken apart into `radix` parts."""

    radix: int
    length: int
    part: int
    turns: int


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform of `size` elements: its passes in forward order, and the first `size` powers of its root as text."""

    size: int
    passes: tuple[Pass, ...]
    cosines: tuple[str, ...]
    sines: tuple[str, ...]


@lru_cache(maxsize=64)
def make_transform(size: int) -> Transform:
    """The transform of a size that is a power of two from 1 on."""
    passes, length = [], size
    while length > 1:
        radix = 4 if length % 4 == 0 else 2
        passes.append(Pass(radix, length, length // radix, size // length))
        length //= radix
    angles = [2 * math.pi * number / size for number in range(size)]
    return Transform(size, tuple(passes), tuple(f"{math.cos(each):.17g}" for each in angles),
                     tuple(f"{math.sin(each):.17g}" for each in angles))


def frequencies(size: int) -> list[int]:
    """The frequency that each place holds after the forward transform.

    >>> frequencies(8)
    [0, 4, 1, 5, 2, 6, 3, 7]
    """
    if size == 1:
        return [0]
    radix = 4 if size % 4 == 0 else 2
    inner = frequencies(size // radix)
    return [radix * each + part for part in range(radix) for each in inner]


@lru_cache(maxsize=64)
def half_spectrum(down: int, across: int, pitch: int) -> tuple[tuple[int, int], ...]:
    """Places of the spectrum of down x across real numbers that say all of it, each with that of its complex conjugate.

    Lines lie `pitch` elements apart.
    """
    lines, columns = frequencies(down), frequencies(across)
    place_of = {(f, g): i * pitch + j for i, f in enumerate(lines) for j, g in enumerate(columns)}
    return tuple((place, place_of[-f % down, -g % across]) for (f, g), place in place_of.items() if g <= across // 2)
