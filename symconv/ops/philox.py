"""The counter-based generator Philox4x32-10 in NumPy.

John K. Salmon, Mark A. Moraes, Ron O. Dror, David E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.  A block
is four 32-bit words, a function of a 128-bit counter and a 64-bit key only, so every block may be computed anywhere.
"""
from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox4x32(counter: tuple[Array, Array, Array, Array], key: tuple[int, int]) -> tuple[Array, Array, Array, Array]:
    """The blocks of counters given as four arrays of 32-bit words (lowest first, held in uint64), under one key.

    >>> zero = np.zeros(1, np.uint64)
    >>> [f"{int(word[0]):08x}" for word in philox4x32((zero, zero, zero, zero), (0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        product0, product1 = np.uint64(MULTIPLIERS[0]) * c0, np.uint64(MULTIPLIERS[1]) * c2
        c0, c1, c2, c3 = ((product1 >> _HALF) ^ c1 ^ np.uint64(k0), product1 & _LOW,
                          (product0 >> _HALF) ^ c3 ^ np.uint64(k1), product0 & _LOW)
        k0, k1 = (k0 + KEY_STEPS[0]) & 0xFFFFFFFF, (k1 + KEY_STEPS[1]) & 0xFFFFFFFF
    return c0, c1, c2, c3


def philox_words(key: int, first: int, blocks: int, package: Any = np) -> Array:
    """The words [blocks, 4] of consecutive counters `first`, `first + 1`, … (64 bits, wrapping), as uint32 arrays of `package`.

    Key and counter enter with their low halves first; the upper half of the 128-bit counter is 0.
    """
    counters = np.uint64(first) + package.arange(blocks, dtype=np.uint64)
    zero = package.zeros(blocks, np.uint64)
    words = philox4x32((counters & _LOW, counters >> _HALF, zero, zero), (key & 0xFFFFFFFF, key >> 32))
    return np.stack(words, axis=1).astype(np.uint32)
