"""Launches on a device that are always issued together: one by one in the first run, then as one recording where that can be."""
from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from ..codegen.cuda.kernel import ERROR_FLAG, LaunchPlan, parts_of
from .devices.interface import Action, Device, Span

logger = logging.getLogger("symconv")
MOST_VARIANTS = 4


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


class _Variant:
    """The actions of a stretch on memory at certain addresses, and what became of recording them."""

    __slots__ = ("actions", "reason", "recording")

    def __init__(self, actions: list[Action]) -> None:
        self.actions = actions
        self.recording: Action | None = None
        self.reason = ""

    @property
    def is_to_be_recorded(self) -> bool:
        """Not in the first run: what that loads for the first time cannot be loaded while something is recorded."""
        return self.recording is None and not self.reason and len(self.actions) > 1


class Stretch:
    """The actions of the steps `first` to `last`; `make` gives them for memory as it lies now.

    Memory of the user's that is read or handed out where it is lies now here, now there: for each of the last MOST_VARIANTS sets of
    addresses (`key`) there are actions and a recording.
    """

    def __init__(self, device: Device, first: int, last: int, make: Callable[[], list[Action]]) -> None:
        self.device, self.first, self.last = device, first, last
        self._make = make
        self._variants: OrderedDict[Hashable, _Variant] = OrderedDict()

    @property
    def is_recorded(self) -> bool:
        """Whether it was issued as a whole."""
        return any(variant.recording is not None for variant in self._variants.values())

    def forget(self) -> None:
        """Make all anew when it is next wanted."""
        self._variants.clear()

    def issue(self, key: Hashable, then: Sequence[Action] = ()) -> None:
        """All of it, then more actions, as one list: no interrupt comes between."""
        variant = self._variants.get(key)
        if variant is None:
            variant = self._variants[key] = _Variant(self._make())
            if len(self._variants) > MOST_VARIANTS:
                self._variants.popitem(last=False)
        elif variant.is_to_be_recorded:
            self._record(variant)
        self.device.run([*([variant.recording] if variant.recording is not None else variant.actions), *then])

    def _record(self, variant: _Variant) -> None:
        recorded = self.device.record(variant.actions)
        if isinstance(recorded, str):
            variant.reason = recorded
            logger.info("steps %d to %d are launched one by one: %s", self.first, self.last - 1, recorded)
        else:
            variant.recording = recorded

    def describe(self) -> str:
        """In words, for `explain()`."""
        reason = next((variant.reason for variant in self._variants.values() if variant.reason), "")
        how = ("one recording" if self.is_recorded else f"launched one by one: {reason}" if reason
               else "launched one by one in the first run")
        return f"steps {self.first} to {self.last - 1}: {how}"
