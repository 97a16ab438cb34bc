"""The memory plan against a plain greedy search, and its proof against plans that are wrong."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symconv.errors import InternalError
from symconv.runtime.memory import ALIGNMENT, MemoryPlan, Slot, _assign
from symconv.runtime.step import Storage

Lives = dict[Storage, tuple[int, int]]


def random_lives(seed: int, count: int) -> Lives:
    """Temporaries of a few sizes, some long-lived as activations are."""
    rng = np.random.default_rng(seed)
    lives: Lives = {}
    for number in range(count):
        first = int(rng.integers(0, count))
        length = int(rng.integers(0, count if rng.random() < 0.2 else 4))
        lives[Storage("temporary", number, int(rng.choice([0, 4, 64, 100, 1000, 4096])))] = (first, first + length)
    return lives


def plain_best_fit(lives: Lives) -> list[int]:
    """The offsets, largest storage first, each in the smallest gap (the lowest of them) between those that live with it."""
    placed: list[tuple[int, int, int, int]] = []
    for storage, (first, last) in sorted(lives.items(), key=lambda item: (-item[0].nbytes, item[1])):
        size = -(-max(storage.nbytes, 1) // ALIGNMENT) * ALIGNMENT
        gaps, end = [], 0
        for start, stop, begins, ends in sorted(placed):
            if begins <= last and ends >= first:
                if start - end >= size:
                    gaps.append((start - end, end))
                end = max(end, stop)
        offset = min(gaps)[1] if gaps else end
        placed.append((offset, offset + size, first, last))
    return [offset for offset, *_ in placed]


@pytest.mark.parametrize("seed", range(20))
def test_plan_is_the_plain_greedy_one(seed: int) -> None:
    lives = random_lives(seed, 60)
    slots = _assign(lives)
    assert [slot.offset for slot in slots] == plain_best_fit(lives)
    MemoryPlan(tuple(slots), max(slot.offset + slot.nbytes for slot in slots), 0).check()


@pytest.mark.parametrize("seed", range(20))
def test_proof_finds_every_overlap(seed: int) -> None:
    """A slot moved anywhere: `check` refuses the plan exactly where comparing every pair finds an overlap."""
    rng = np.random.default_rng(seed)
    slots = _assign(random_lives(seed, 40))
    arena = max(slot.offset + slot.nbytes for slot in slots) + 4096
    for _ in range(20):
        number, offset = int(rng.integers(len(slots))), int(rng.integers(arena // ALIGNMENT - 64)) * ALIGNMENT
        changed = [*slots[:number], replace(slots[number], offset=offset), *slots[number + 1:]]
        overlaps = any(a.first <= b.last and b.first <= a.last and a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes
                       for place, a in enumerate(changed) for b in changed[:place])
        plan = MemoryPlan(tuple(changed), arena, 0)
        if overlaps:
            with pytest.raises(InternalError, match="overlap in the arena"):
                plan.check()
        else:
            plan.check()


def test_outside_the_arena() -> None:
    slot = Slot(Storage("temporary", 0, 64), 64, 64, 0, 1)
    with pytest.raises(InternalError, match="outside the arena"):
        MemoryPlan((slot,), 100, 64).check()
