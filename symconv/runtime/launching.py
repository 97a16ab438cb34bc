"""Launches on a device that are always issued together: one by one in the first run, then as one recording where that can be."""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..codegen.cuda.kernel import ERROR_FLAG, LaunchPlan, parts_of
from .devices.interface import Action, Device, Span

logger = logging.getLogger("symconv")


def plan_actions(device: Device, plan: LaunchPlan, spans: dict[int, Span]) -> list[Action]:
    """The launches of a plan with the fills that they want; `spans` say what its buffers' numbers mean (it is changed)."""
    actions: list[Action] = []
    for launch in plan.launches:
        zeroed = [number for number in launch.zeroed if number != ERROR_FLAG]
        actions += [device.clearing(spans[number]) for number in zeroed]
        spans.update({number: replace(spans[number], is_written=True) for number in zeroed})
        actions.append(device.bind(launch, [spans[number] for number in launch.buffers]))
        spans.update({number: replace(spans[number], is_written=True) for number in parts_of(plan, launch.buffers)})
    return actions


class Stretch:
    """The actions of the steps `first` to `last`, made by `make` when they are first wanted.

    `reason` says why they are not one recording; empty where they are, or where nothing was recorded yet.
    """

    def __init__(self, device: Device, first: int, last: int, make: Callable[[], list[Action]]) -> None:
        self.device, self.first, self.last = device, first, last
        self.reason = ""
        self._make = make
        self._actions: list[Action] | None = None
        self._recording: Action | None = None
        self._setting: object = None

    @property
    def is_recorded(self) -> bool:
        """Whether it is issued as a whole."""
        return self._recording is not None

    @property
    def actions(self) -> list[Action]:
        """Its launches, one by one."""
        if self._actions is None or self._setting != self.device.setting:
            self.forget()
            self._actions, self._setting = self._make(), self.device.setting
        return self._actions

    def forget(self) -> None:
        """Pointers have changed: make all anew when it is next wanted."""
        self._actions, self._recording, self.reason = None, None, ""

    def issue(self, then: Sequence[Action] = ()) -> None:
        """All of it, then more actions, as one list: no interrupt comes between."""
        is_first = self._actions is None or self._setting != self.device.setting
        actions = self.actions
        if not is_first and self._recording is None and not self.reason and len(actions) > 1:
            self._record(actions)
        self.device.run([*([self._recording] if self._recording is not None else actions), *then])

    def _record(self, actions: list[Action]) -> None:
        """In the second run: what the first one loads for the first time cannot be loaded while something is recorded."""
        recorded = self.device.record(actions)
        if isinstance(recorded, str):
            self.reason = recorded
            logger.info("steps %d to %d are launched one by one: %s", self.first, self.last - 1, recorded)
        else:
            self._recording = recorded

    def describe(self) -> str:
        """In words, for `explain()`."""
        if self.is_recorded:
            how = "one recording"
        elif self._actions is None or not self.reason:
            how = "launched one by one in the first run"
        else:
            how = f"launched one by one: {self.reason}"
        return f"steps {self.first} to {self.last - 1}: {how}"
