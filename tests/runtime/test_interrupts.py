"""An interrupt of the user's at any place of a call leaves state as it was, or as the call makes it: never between."""
from __future__ import annotations

import dis
import sys
from typing import Any

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.errors import BackendError
from symconv.runtime.devices.find import find_device

MOST_PLACES = {"fast_run": 250, "debug": 30, "reference": 60}


class Injected(KeyboardInterrupt):
    """Told from an interrupt of a person's who runs the tests."""


class Injector:
    """Raises at the `number`-th place where Python looks for signals while it runs symconv's code, and counts these places: behind
    a call, at the start of a function, at the end of a loop's round."""

    def __init__(self, number: int = -1) -> None:
        self.number, self.count = number, 0
        self.last: dict[Any, str] = {}

    def __call__(self, frame, event, argument):
        if "/symconv/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = self.last.get(frame, "")
            self.last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith("CALL") or before in ("RESUME", "JUMP_BACKWARD"):
                self.count += 1
                if self.count == self.number:
                    raise Injected
        elif event == "return":
            self.last.pop(frame, None)
        return self

    def run(self, function, *arguments):
        """Whether the call was interrupted."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            function(*arguments)
        except Injected:
            return True
        finally:
            sys.settrace(before)
        return False


class Counter:
    """A function whose n-th call brings all its state from n - 1 to n, some of it in place, some not."""

    def __init__(self, device: str, mode: str = "fast_run", **options) -> None:
        self.in_place = sc.shared(np.zeros(5, np.float32), name="in_place")
        self.one, self.other = (sc.shared(np.full(3, start, np.float32), name=f"swapped{start}") for start in (0, 100))
        self.grown = sc.shared(np.zeros((1, 2), np.float32), name="grown")
        x = T.vector("x")
        updates = [(self.in_place, self.in_place + x.sum()), (self.one, self.other - 99), (self.other, self.one + 101),
                   (self.grown, T.concatenate([self.grown, self.grown + 1])[-2:][:self.grown.shape[0]] + 1)]
        self.function = sc.compile([x], self.in_place.sum(), updates=updates, device=device, mode=mode, **options)
        self.argument = np.ones(1, np.float32)
        self.calls = 0
        self()

    def __call__(self, injector: Injector | None = None) -> bool:
        """Call once; whether that was interrupted."""
        if injector is None:
            self.function(self.argument)
            return False
        return injector.run(self.function, self.argument)

    def number(self) -> int:
        """How many calls the state has seen; all parts of it must agree."""
        found = {int(self.in_place.get_value()[0]), int(self.one.get_value()[0]), int(self.other.get_value()[2]) - 100}
        assert len(found) == 1, f"state of different calls: {found}"
        assert not any(each.container.group.lock._is_owned() for each in (self.in_place, self.one, self.other, self.grown))
        return found.pop()


def variants():
    for device in ("cpu", "emulator", "cuda"):
        marks = pytest.mark.gpu if device == "cuda" else ()
        for mode in ("fast_run", "debug", "reference"):
            yield pytest.param(device, mode, {}, id=f"{device}-{mode}", marks=marks)
        yield pytest.param(device, "fast_run", {"profile": True}, id=f"{device}-profiled", marks=marks)


@pytest.fixture(autouse=True)
def _only_on_devices_that_are_here(request):
    device = request.node.callspec.params["device"]
    if device != "cpu":
        try:
            find_device(device)
        except BackendError as error:
            pytest.skip(" ".join(str(error).split()))


@pytest.mark.parametrize(("device", "mode", "options"), tuple(variants()))
def test_state_is_never_between_two_calls(device, mode, options):
    with config.change(emulator__checked=False):
        counter = Counter(device, mode, **options)
        for _ in range(2):
            counter()
        whole = Injector()
        counter(whole)
        before, seen = counter.number(), set()
        for place in range(1, whole.count + 1, max(1, whole.count // MOST_PLACES[mode])):
            counter(Injector(place))
            after = counter.number()
            assert after - before in (0, 1), f"at place {place}"
            seen.add(after - before)
            before = after
        assert seen == {0, 1}
        counter()
        assert counter.number() == before + 1


@pytest.mark.parametrize("device", ["cpu", "emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_place_around_the_commit(device):
    """From where an interrupt first finds new state: each place, and some before."""
    with config.change(emulator__checked=False):
        counter = Counter(device)
        for _ in range(2):
            counter()
        whole = Injector()
        counter(whole)
        low, high = 1, whole.count
        while low < high:
            counter()  # every interrupted call is to begin behind a whole one: what that one kept decides what is done again
            middle, before = (low + high) // 2, counter.number()
            counter(Injector(middle))
            low, high = (low, middle) if counter.number() > before else (middle + 1, high)
        for place in range(max(low - 40, 1), min(low + 160, whole.count + 1)):
            counter()
            before = counter.number()
            assert counter(Injector(place))
            assert counter.number() - before == (place >= low), f"at place {place} of {whole.count}"
