"""Shared variables in groups: those that the same functions use have one lock, and one count of changes, for them all.

A network has hundreds of parameters; to take a lock for each, and to look whether each has changed, costs more time than a small
convolution.  So the variables are parted into groups: two are in one group as long as every function that uses one of them uses the
other too.  A call takes one lock for each group and compares one number; a training and an inference function over the same
parameters meet two or three groups.  Calls wait for each other exactly where they share a variable, as with a lock for each.

A new function that uses a part of a group divides it (`join`): the group ends, and everything in it is in one of two new groups
from then on.  That is one assignment, made while the old group's lock is held.  Who waited for that lock meanwhile finds the group
ended, lets go, and asks again.
"""
from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .locking import holding

if TYPE_CHECKING:
    from .container import Container

Result = TypeVar("Result")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a group was divided into. Containers are named by their ids: only those that were in the group ask."""

    ids: frozenset[int]
    inside: StateGroup
    outside: StateGroup


class StateGroup:
    """Containers that the same functions use.

    `lock` is held by whoever reads or changes one of them; `changes` counts what may make another array, another shape or other
    elements of any of them.  Locks of several groups are taken in the order of `number`.  `size`: how many containers it was made
    for (some may be gone since); 0 for that of a container which no function has joined.  `parts` is None until the group ends.
    """

    __slots__ = ("changes", "lock", "number", "parts", "size")

    def __init__(self, size: int = 0) -> None:
        self.lock = threading.RLock()
        self.changes = 0
        self.number = next(_numbers)
        self.size = size
        self.parts: _Parts | None = None


class EndedError(Exception):
    """A group was divided before its lock was taken."""


def current(group: StateGroup, container: Container) -> StateGroup:
    """The group that a container of this group is in now."""
    while group.parts is not None:
        parts = group.parts
        group = parts.inside if id(container) in parts.ids else parts.outside
    return group


def groups_of(containers: Iterable[Container]) -> tuple[StateGroup, ...]:
    """The groups of these containers, in the order in which their locks are taken."""
    return tuple(sorted({container.group for container in containers}, key=lambda group: group.number))


def holding_groups(groups: Sequence[StateGroup], run: Callable[[], Result]) -> Result:
    """What `run()` gives, called while the locks of all the groups are held.

    Raises:
        EndedError: one of the groups has ended; nothing was run.
    """
    if len(groups) == 1:
        group = groups[0]
        with group.lock:
            if group.parts is not None:
                raise EndedError
            result = run()  # not returned from here: an interrupt right behind the call is to find the lock still guarded
        return result
    return holding([group.lock for group in groups], partial(_run_if_current, groups, run))


def _run_if_current(groups: Sequence[StateGroup], run: Callable[[], Result]) -> Result:
    for group in groups:
        if group.parts is not None:
            raise EndedError
    return run()


def join(containers: Sequence[Container]) -> bool:
    """Part the groups so that some of them have exactly these containers, for one more function that uses them.

    False, and nothing is done, where this thread is inside of a call that uses one of them: that call's lock would no longer be
    that of its containers.
    """
    while True:
        groups = groups_of(containers)
        if any(_is_mine(group.lock) for group in groups):
            return False
        try:
            holding_groups(groups, partial(_divide, groups, containers))
        except EndedError:
            continue
        return True


def _is_mine(lock: Any) -> bool:
    """Whether this thread holds an RLock; `threading.Condition` asks it the same way."""
    return bool(lock._is_owned())


def _divide(groups: Sequence[StateGroup], containers: Sequence[Container]) -> None:
    fresh = [group for group in groups if not group.size]
    together = StateGroup(len(fresh))
    for group in fresh:
        group.parts = _Parts(frozenset(), together, together)
    used = Counter(container.group for container in containers)
    for group in groups:
        n_inside = used[group]
        if group.parts is None and n_inside < group.size:
            ids = frozenset(id(container) for container in containers if container.group is group)
            group.parts = _Parts(ids, StateGroup(n_inside), StateGroup(group.size - n_inside))


class UsedState:
    """The state that one function uses: runs while nothing else touches it, and whether anything of it has changed.

    A function that is called but once (`eval` makes many) divides no groups: until its second call it takes the whole of those that
    are there.  All but `holding` is asked within a run.
    """

    def __init__(self, containers: Iterable[Container]) -> None:
        self.containers = tuple({id(container): container for container in containers}.values())
        self._groups = groups_of(self.containers)
        self._n_runs = 0
        self._known = -1

    def holding(self, run: Callable[[], Result]) -> Result:
        """What `run()` gives, called while no other function that shares state with this one runs, and nobody sets a value."""
        if self._n_runs < 2:
            self._settle()
        while True:
            try:
                return holding_groups(self._groups, run)
            except EndedError:
                self._find_groups()

    def _settle(self) -> None:
        self._n_runs += 1
        if self._n_runs == 2 and not join(self.containers):
            self._n_runs = 1  # once more in the next call
        self._find_groups()

    def _find_groups(self) -> None:
        self._known, self._groups = -1, groups_of(self.containers)

    @property
    def has_changed(self) -> bool:
        """Whether anything has changed since `note`."""
        return sum([group.changes for group in self._groups]) != self._known

    def note(self) -> None:
        """What was derived from the state is as the state is now."""
        self._known = sum([group.changes for group in self._groups])

    def count_change(self) -> None:
        """Elements have changed in place, by a run of this function: what it noted itself stays true."""
        is_noted = not self.has_changed
        for group in self._groups:
            group.changes += 1
        if is_noted:
            self.note()
