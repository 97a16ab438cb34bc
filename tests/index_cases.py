"""Seeded random index expressions; what they select is told by positions in a flat array, without index rules of our own."""
from __future__ import annotations

import random
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def random_shape(rng: random.Random, zeros: bool = True) -> tuple[int, ...]:
    return tuple(rng.choice([0, 1, 2, 3, 4, 5] if zeros else [1, 2, 3, 4, 5]) for _ in range(rng.randint(1, 4)))


def random_slice(rng: random.Random, size: int) -> slice:
    bounds = [None, *range(-size - 2, size + 3)]
    return slice(rng.choice(bounds), rng.choice(bounds), rng.choice([None, 1, 2, -1, -2, 3, -7]))


def random_array(rng: random.Random, size: int) -> Array:
    shape = rng.choice([(2,), (3, 1), (1,), (3, 2), (0,)]) if size else (0,)
    values = [rng.randrange(-size, size) for _ in range(int(np.prod(shape)))]
    return np.array(values, dtype=rng.choice([np.int64, np.int32, np.int8])).reshape(shape)


def random_index(rng: random.Random, shape: tuple[int, ...], arrays: bool) -> tuple[Any, ...]:
    """An index of one entry or more; NumPy may refuse it where its arrays do not broadcast together."""
    index: list[Any] = []
    for size in shape[:rng.randint(1, len(shape))]:
        kind = rng.random()
        if kind < 0.3 and size:
            index.append(rng.randrange(-size, size))
        elif kind < 0.65 or not arrays:
            index.append(random_slice(rng, size))
        else:
            index.append(random_array(rng, size))
    if rng.random() < 0.3:
        index.insert(rng.randrange(len(index) + 1), None)
    if rng.random() < 0.3:
        index.insert(rng.randrange(len(index) + 1) if len(index) == len(shape) else len(index), Ellipsis)
    return tuple(index)


def update(x: Array, index: Any, y: Array, mode: str) -> Array:
    """x with y set or added element by element, the last of repeated positions winning; y is broadcast to x[index]."""
    result = x.copy().reshape(-1)
    places = np.arange(x.size).reshape(x.shape)[index]
    for place, value in zip(places.ravel(), np.broadcast_to(y, places.shape).ravel(), strict=True):
        result[place] = value if mode == "set" else result[place] + value
    return result.reshape(x.shape)


def seen_through(op: Any, memory: Array, base: Array, shape: tuple[int, ...]) -> Array | None:
    """What `op.view` shows of `memory`, a strided part of the row-major float64 array `base`; None where it refuses."""
    answer = op.view(memory.shape, tuple(stride // 8 for stride in memory.strides), shape, {})
    if answer is None:
        return None
    offset, strides = answer
    first = (memory.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // 8 + offset
    places = first + sum((axis * stride for axis, stride in zip(np.indices(shape), strides, strict=True)),
                         np.zeros(shape, dtype=np.int64))
    return base.reshape(-1)[places]
