"""Plan memory: which temporaries share memory in place, and where each lies in the program's one arena.

A temporary lives from the step that writes it to the last step that touches it.  `MemoryPlan.check` proves afterwards that
no two temporaries that live at the same time overlap.
"""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from ..errors import InternalError
from .step import Place, Step, Storage

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Slot:
    """A temporary's place in the arena and the steps (first, last) between which it lives."""

    storage: Storage
    offset: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Slots in the arena. `lower_bound_bytes` is the most that lives at one step: no plan can be smaller."""

    slots: tuple[Slot, ...]
    arena_bytes: int
    lower_bound_bytes: int

    def check(self) -> None:
        """Raise InternalError if two slots overlap in memory while both live.

        The living slots are kept in the order of their offsets: a new one can only overlap its two neighbours, since the others
        were found apart from each other before.
        """
        living: list[tuple[int, int, Slot]] = []
        ending: list[tuple[int, int, int]] = []
        for number, slot in enumerate(sorted(self.slots, key=lambda each: each.first)):
            if slot.offset < 0 or slot.offset + slot.nbytes > self.arena_bytes:
                raise InternalError(f"{slot.storage} lies outside the arena")
            while ending and ending[0][0] < slot.first:
                _, offset, gone = heappop(ending)
                del living[bisect_left(living, (offset, gone))]
            place = bisect_left(living, (slot.offset, number))
            for _, _, other in living[max(place - 1, 0):place + 1]:
                if slot.offset < other.offset + other.nbytes and other.offset < slot.offset + slot.nbytes:
                    raise InternalError(f"{slot.storage} and {other.storage} overlap in the arena while both live")
            living.insert(place, (slot.offset, number, slot))
            heappush(ending, (slot.last, slot.offset, number))


def plan_memory(steps: Sequence[Step], alignment: int = ALIGNMENT) -> MemoryPlan:
    """Mark in-place writes, then give every temporary an offset that `alignment` divides (largest first, best fit); checked."""
    lives = _lives(steps)
    _share_in_place(steps, lives)
    merged = _lives(steps)
    slots = _assign(merged, alignment)
    arena = max((slot.offset + slot.nbytes for slot in slots), default=0)
    plan = MemoryPlan(tuple(slots), arena, _peak(slots, len(steps)))
    plan.check()
    return plan


def _lives(steps: Sequence[Step]) -> dict[Storage, tuple[int, int]]:
    """First and last step of every temporary's memory (aliases counted with their home)."""
    lives: dict[Storage, tuple[int, int]] = {}
    for position, step in enumerate(steps):
        for storage in step.storages:
            home = storage.home
            if home.kind == "temporary":
                first, _ = lives.get(home, (position, position))
                lives[home] = (first, position)
    return lives


def _share_in_place(steps: Sequence[Step], lives: dict[Storage, tuple[int, int]]) -> None:
    """Let a result take the memory of an input that nothing reads afterwards, where the kernel allows it."""
    for position, step in enumerate(steps):
        if step.kernel is None:
            continue
        taken: set[Storage] = set()
        for output, source in step.kernel.in_place:
            written, read = step.writes[output], step.reads[source]
            if output not in step.in_place and _may_share(step, written, read, position, lives) and read.storage.home not in taken:
                home = read.storage.home
                taken.add(home)
                lives[home] = (lives[home][0], lives[written.storage][1])
                written.storage.alias = home
                step.in_place.append(output)


def _may_share(step: Step, written: Place, read: Place, position: int, lives: dict[Storage, tuple[int, int]]) -> bool:
    home = read.storage.home
    if written.storage.kind != "temporary" or written.storage.alias is not None or home.kind != "temporary":
        return False
    if not (read.is_whole and written.is_whole and home.nbytes == written.storage.nbytes):
        return False
    if lives[home][1] != position:
        return False
    others = [place for place in step.reads if place.storage.home is home and place is not read]
    return all(place == read for place in others)


def _assign(lives: dict[Storage, tuple[int, int]], alignment: int = ALIGNMENT) -> list[Slot]:
    """Greedy best fit by size: each storage goes into the smallest gap left by those it lives together with."""
    slots: list[Slot] = []
    placed = _Placed(len(lives))
    order = sorted(lives.items(), key=lambda item: (-item[0].nbytes, item[1]))
    for storage, (first, last) in order:
        size = -(-max(storage.nbytes, 1) // alignment) * alignment
        storage.offset = placed.best_gap(size, first, last)
        placed.add(storage.offset, size, first, last)
        slots.append(Slot(storage, storage.offset, size, first, last))
    return slots


class _Placed:
    """The slots given so far in the order of their offsets, as columns: looked through once for every storage."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.columns = np.zeros((4, most), np.int64)  # start, stop, first, last

    def best_gap(self, size: int, first: int, last: int) -> int:
        """Where the smallest gap of at least `size` bytes starts (the lowest of them) while `first` … `last` run."""
        start, stop, begins, ends = self.columns[:, :self.count]
        together = np.flatnonzero((begins <= last) & (ends >= first))
        if not len(together):
            return 0
        reached = np.concatenate([[0], np.maximum.accumulate(stop[together])])
        gaps = start[together] - reached[:-1]
        fitting = np.flatnonzero(gaps >= size)
        return int(reached[fitting[np.argmin(gaps[fitting])]] if len(fitting) else reached[-1])

    def add(self, offset: int, size: int, first: int, last: int) -> None:
        """Put a slot in its place."""
        place = int(np.searchsorted(self.columns[0, :self.count], offset, side="right"))
        self.columns[:, place + 1:self.count + 1] = self.columns[:, place:self.count]
        self.columns[:, place] = offset, offset + size, first, last
        self.count += 1


def _peak(slots: Sequence[Slot], n_steps: int) -> int:
    changes = [0] * (n_steps + 1)
    for slot in slots:
        changes[slot.first] += slot.nbytes
        changes[slot.last + 1] -= slot.nbytes
    peak = level = 0
    for change in changes:
        level += change
        peak = max(peak, level)
    return peak
