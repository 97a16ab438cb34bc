"""Kept: a program of a function, with how its leaves are the function's, and what it knows of their state."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InternalError
from ..graph import Variable
from .bind import Guard
from .container import Container
from .program import Program
from .shared import SharedVariable

if TYPE_CHECKING:
    from .cross_compile import CrossProgram
    from .device_program import DeviceProgram

Array = np.ndarray[Any, Any]


@dataclass
class Kept:
    """A program with how its leaves correspond to the function's, the guards that must hold, and what rewriting noted.

    `order`: for each leaf of the program its place among a call's arrays; None where that is 0, 1, 2, … for all of them.
    `key`: the shapes it is for.  `must_prepare`: whether its prepared steps must run again (`look_at_state`).
    """

    program: Program | DeviceProgram | CrossProgram
    leaves: dict[Variable, Variable]
    guards: tuple[Guard, ...]
    log: Any
    order: tuple[int, ...] | None = None
    key: tuple[Any, ...] = ()
    must_prepare: bool = True
    _prepared_for: tuple[int, ...] | None = None

    def in_order(self, arrays: list[Any]) -> list[Any]:
        """The arrays of the function's leaves in the order of the program's."""
        return arrays if self.order is None else [arrays[place] for place in self.order]

    def inputs_of(self, arguments: list[Array]) -> list[Array]:
        """The function's arguments in the order of the program's inputs."""
        return arguments if self._input_order is None else [arguments[place] for place in self._input_order]

    @cached_property
    def _input_order(self) -> tuple[int, ...] | None:
        return None if self.order is None else self.order[:len(self.program.inputs)]

    def bindings(self, arrays: dict[Variable, Array]) -> dict[Variable, Array]:
        """The arrays of the function's leaves as those of the program's."""
        return {bound: arrays[leaf] for bound, leaf in self.leaves.items()}

    def look_at_state(self) -> None:
        """The state may have changed: must prepared steps run again?"""
        self.must_prepare = bool(self.program.n_prepared) and (
            self._prepared_for != self._versions or any(container.borrowed for container in self.watched))

    def note_prepared(self) -> None:
        """The prepared steps have run for the present state."""
        self._prepared_for, self.must_prepare = self._versions, False

    @property
    def _versions(self) -> tuple[int, ...]:
        return tuple([container.version for container in self.watched])

    @cached_property
    def watched(self) -> tuple[Container, ...]:
        """The state that prepared steps read."""
        return self._containers(self.program.watched)

    @cached_property
    def state(self) -> tuple[Container, ...]:
        """All the state that the program reads or writes, in its order."""
        return self._containers(self.program.state)

    @cached_property
    def direct(self) -> tuple[Container, ...]:
        """The state that the program writes in place."""
        return self._containers(self.program.schedule.direct)

    @cached_property
    def swapped(self) -> tuple[Container, ...]:
        """The state whose new value is another array."""
        return self._containers([bound for bound, _ in self.program.schedule.swapped])

    @cached_property
    def changes_state(self) -> bool:
        """Whether a run gives any state a new value."""
        return bool(self.direct or self.swapped)

    @cached_property
    def n_outputs(self) -> int:
        """How many of the program's results are outputs; the rest are new values of `swapped`."""
        return len(self.program.schedule.outputs)

    def _containers(self, bound: Sequence[Variable]) -> tuple[Container, ...]:
        return tuple(_container(self.leaves[each]) for each in bound)


def _container(leaf: Variable) -> Container:
    if not isinstance(leaf, SharedVariable):
        raise InternalError(f"{leaf!r} is used as state but is no shared variable")
    return leaf.container
