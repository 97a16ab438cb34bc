"""Launches that go together: what is recorded when, for which addresses, and what is said of it."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from symconv.runtime.devices.interface import Action, Device
from symconv.runtime.launching import MOST_VARIANTS, Stretch


class Recorder:
    """A device that notes what it runs and records; `refusal`: why it records nothing."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal, self.ran, self.asked = refusal, [], 0

    def run(self, actions: Sequence[Any]) -> None:
        self.ran.append([action() for action in actions])

    def record(self, actions: Sequence[Any]) -> Action | str:
        self.asked += 1
        return self.refusal or (lambda: [action() for action in actions])


def stretch_on(device: Recorder, count: int = 2) -> tuple[Stretch, list[int]]:
    """A stretch of so many actions, which give their numbers, and how often it was made."""
    made: list[int] = []

    def make() -> list[Action]:
        made.append(len(made))
        return [cast(Action, lambda number=number: number) for number in range(count)]

    return Stretch(cast(Device, device), 3, 5, make), made


def test_the_first_run_goes_one_by_one_and_the_next_ones_as_a_recording() -> None:
    device = Recorder()
    stretch, made = stretch_on(device)
    stretch.issue("here")
    assert (device.ran, device.asked, stretch.is_recorded) == ([[0, 1]], 0, False)
    assert stretch.describe() == "steps 3 to 4: launched one by one in the first run"
    for _ in range(2):
        stretch.issue("here")
    assert device.ran[1:] == [[[0, 1]]] * 2
    assert (device.asked, made) == (1, [0])
    assert stretch.describe() == "steps 3 to 4: one recording"


def test_what_cannot_be_recorded_is_asked_once() -> None:
    device = Recorder("no memory")
    stretch, _ = stretch_on(device)
    for _ in range(3):
        stretch.issue("here")
    assert (device.ran, device.asked) == ([[0, 1]] * 3, 1)
    assert stretch.describe() == "steps 3 to 4: launched one by one: no memory"


def test_one_launch_is_not_recorded() -> None:
    device = Recorder()
    stretch, _ = stretch_on(device, 1)
    for _ in range(3):
        stretch.issue("here")
    assert (device.ran, device.asked) == ([[0]] * 3, 0)


def test_the_oldest_addresses_make_room() -> None:
    stretch, made = stretch_on(Recorder())
    for key in range(MOST_VARIANTS + 1):
        stretch.issue(key)
    assert len(made) == MOST_VARIANTS + 1
    for key in range(1, MOST_VARIANTS + 1):  # still known
        stretch.issue(key)
    assert len(made) == MOST_VARIANTS + 1
    stretch.issue(0)  # gone
    assert len(made) == MOST_VARIANTS + 2


@pytest.mark.parametrize("runs", [1, 2])
def test_what_comes_behind_goes_in_the_same_list(runs: int) -> None:
    device = Recorder()
    stretch, _ = stretch_on(device)
    for _ in range(runs):
        stretch.issue("here", [cast(Action, lambda: "then")])
    assert device.ran[-1] == ([0, 1, "then"] if runs == 1 else [[0, 1], "then"])


def test_what_is_forgotten_is_made_anew() -> None:
    stretch, made = stretch_on(Recorder())
    stretch.issue("here")
    stretch.forget()
    stretch.issue("here")
    assert len(made) == 2
    assert not stretch.is_recorded
