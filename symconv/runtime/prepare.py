"""Prepare: the steps that need not run on every call.

A step that reads nothing but constants and state which the function does not update (weights in inference: their packing, a
Winograd transform, batch-norm folded into them) gives the same result until that state changes.  Such steps go first; what others
read of them is kept between calls.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..graph import Variable
from .step import Step, Storage

_MOST_CONSTANT_BYTES = 16 << 20  # a large array made of constants alone is made again rather than kept


def prepared_first(steps: Sequence[Step], storages: dict[Variable, Storage], updated: Iterable[Variable]) -> list[Step]:
    """The steps with those that can be prepared marked and put first; results that others read become kept storages."""
    changing = {storages[leaf] for leaf in updated if leaf in storages}
    still = {storage for storage in storages.values() if storage.kind == "shared"} - changing
    made: set[Storage] = set()
    from_state = set(still)
    for step in steps:
        step.is_prepared = _can_be_prepared(step, from_state, made)
        if step.is_prepared:
            written = {place.storage for place in step.writes}
            made |= written
            if any(place.storage in from_state for place in step.reads):
                from_state |= written
    _keep(steps, made)
    return [step for step in steps if step.is_prepared] + [step for step in steps if not step.is_prepared]


def _can_be_prepared(step: Step, from_state: set[Storage], made: set[Storage]) -> bool:
    """Whether a step reads only constants, state at rest and what prepared steps made; of constants alone, only small results."""
    reads = {place.storage for place in step.reads}
    if step.can_fail or not all(storage.kind == "constant" or storage in from_state or storage in made for storage in reads):
        return False
    if any(place.storage.kind != "temporary" for place in step.writes):
        return False
    return bool(reads & from_state) or sum(place.storage.nbytes for place in step.writes) <= _MOST_CONSTANT_BYTES


def _keep(steps: Sequence[Step], made: set[Storage]) -> None:
    """What a step that runs on every call reads of the prepared ones lies in kept memory."""
    number = 0
    for step in steps:
        if step.is_prepared:
            continue
        for place in step.reads:
            if place.storage in made and place.storage.kind == "temporary":
                place.storage.kind, place.storage.number = "kept", number
                number += 1


def place_kept(steps: Iterable[Step], alignment: int) -> int:
    """Give every kept storage its offset; the bytes of them all."""
    end = 0
    kept = dict.fromkeys(place.storage for step in steps if step.is_prepared for place in step.writes
                         if place.storage.kind == "kept")
    for storage in kept:
        storage.offset = end
        end += -(-max(storage.nbytes, 1) // alignment) * alignment
    return end


def watched_leaves(steps: Iterable[Step], storages: dict[Variable, Storage]) -> tuple[Variable, ...]:
    """The state that prepared steps read."""
    read = {place.storage for step in steps if step.is_prepared for place in step.reads}
    return tuple(leaf for leaf, storage in storages.items() if storage in read)
