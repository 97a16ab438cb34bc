"""The area that inputs and results pass through: who waits for whom, which part is whose, what goes past it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from symconv.codegen.kernel import Operand
from symconv.runtime import staging
from symconv.runtime.devices.interface import Device, Span
from symconv.runtime.staging import Staging
from symconv.runtime.step import Place, Storage

Array = np.ndarray[Any, Any]


class Travelling:
    """A device whose copies are done only when somebody waits, from and to what lies there then. Spans are arrays of bytes."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.areas: list[Array] = []
        self.sent: list[Array] = []
        self.marks = 0

    def staging(self, nbytes: int) -> Array:
        self.areas.append(np.full(nbytes, 0xCD, np.uint8))
        return self.areas[-1]

    def send(self, target: Any, staged: Array) -> None:
        self.sent.append(staged)
        self.waiting.append(lambda: np.copyto(target, staged.reshape(-1).view(np.uint8)))

    def fetch(self, staged: Array, source: Any) -> None:
        self.waiting.append(lambda: np.copyto(staged, source))

    def synchronize(self) -> None:
        for copy in self.waiting:
            copy()
        self.waiting.clear()

    def mark(self) -> Callable[[], None]:
        def left() -> None:
            self.marks += 1
            self.synchronize()
        return left


def result(*shape: int) -> Place:
    operand = Operand.contiguous("float32", shape)
    return Place(Storage("output", 0, operand.nbytes), 0, operand)


def memory(array: Array) -> Span:
    """Memory of the device as large as an array."""
    return cast(Span, np.zeros(array.nbytes, np.uint8))


def floats(span: Span) -> list[float]:
    return cast(Array, span).view(np.float32).tolist()


def area_on(device: Travelling, inputs: list[int], *results: Place) -> Staging:
    return Staging(cast(Device, device), inputs, results)


def test_inputs_and_results_have_parts_of_their_own() -> None:
    device = Travelling()
    area = area_on(device, [8, 12], result(2), result(3))
    given = [np.array([1, 2], np.float32), np.array([3, 4, 5], np.float32)]
    there = [memory(each) for each in given]
    for number, (target, array) in enumerate(zip(there, given, strict=True)):
        area.send(number, target, array)
        array[:] = -1  # the caller may, as soon as it returns
    area.sent()
    found = [np.zeros(2, np.float32), np.zeros(3, np.float32)]
    area.fetch([0, 1], there, found)
    assert [floats(each) for each in there] == [[1, 2], [3, 4, 5]]
    assert [each.tolist() for each in found] == [[1, 2], [3, 4, 5]]
    assert [each.nbytes for each in device.areas] == [4 * 64]


def test_results_do_not_go_through_the_parts_of_inputs_that_still_travel() -> None:
    device = Travelling()
    area = area_on(device, [8], result(2))
    given, found = np.array([1, 2], np.float32), np.zeros(2, np.float32)
    there, other = memory(given), cast(Span, np.array([7, 8], np.float32).view(np.uint8))
    area.fetch([0], [other], [found])  # makes the area
    area.send(0, there, given)
    device.waiting.insert(0, device.waiting.pop())
    area.fetch([0], [other], [found])
    assert found.tolist() == [7, 8]
    assert floats(there) == [1, 2]
    parts = [device.areas[0][start:start + 8].view(np.float32).tolist() for start in (0, 64)]
    assert parts == [[1, 2], [7, 8]]


def test_the_next_call_waits_until_its_inputs_have_left() -> None:
    device = Travelling()
    area = area_on(device, [8])
    first, second = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    there, then = memory(first), memory(second)
    area.send(0, there, first)
    area.sent()
    area.send(0, then, second)
    area.sent()
    device.synchronize()
    assert (floats(there), floats(then), device.marks) == ([1, 2], [3, 4], 1)


def test_an_area_that_is_given_up_waits_for_what_travels_from_it() -> None:
    device = Travelling()
    area = area_on(device, [8])
    given = np.array([1, 2], np.float32)
    there = memory(given)
    area.send(0, there, given)
    area.sent()
    del area
    assert (floats(there), device.marks) == ([1, 2], 1)


def test_large_arrays_travel_from_and_to_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "MOST_BYTES", 8)
    device = Travelling()
    area = area_on(device, [12, 8], result(3), result(2))
    large, small = np.array([1, 2, 3], np.float32), np.array([4, 5], np.float32)
    there, then = memory(large), memory(small)
    area.send(0, there, large)
    area.send(1, then, small)
    assert device.sent[0] is large
    assert np.shares_memory(device.sent[1], device.areas[0])
    assert [each.nbytes for each in device.areas] == [2 * 64]  # the small input and the small result
    found = [np.zeros(3, np.float32), np.zeros(2, np.float32)]
    area.fetch([0, 1], [there, then], found)
    assert [each.tolist() for each in found] == [[1, 2, 3], [4, 5]]
