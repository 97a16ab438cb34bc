"""Host memory through which a program's inputs and results pass: page-locked on a GPU, so that copies need no wait of the host.

One area for each program, used in every call.  An input is copied into its part as soon as the copies of the call before have left
the area; it then travels while the host goes on.  Large arrays travel from where they are.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .devices.interface import Device, Span
from .step import Place

Array = np.ndarray[Any, Any]
MOST_BYTES = 32 << 20  # of an array that goes through the area
_ALIGNMENT = 64


class Staging:
    """The area of one program, made when it is first used; `inputs` and `results` are the places that may pass through it."""

    def __init__(self, device: Device, inputs: Sequence[int], results: Sequence[Place]) -> None:
        self.device = device
        self._left: Callable[[], None] | None = None
        self._area: Array | None = None
        sizes = [*inputs, *(place.operand.nbytes for place in results)]
        self._starts, self._end = [], 0
        for size in sizes:
            self._starts.append(self._end)
            if size <= MOST_BYTES:
                self._end += -(-size // _ALIGNMENT) * _ALIGNMENT
        self._n_inputs = len(inputs)

    def __del__(self) -> None:
        """The memory is used again by whoever asks next: what travels from it must have left."""
        if self._left is not None:
            self._left()

    def _part(self, number: int, nbytes: int) -> Array:
        if self._area is None:
            self._area = self.device.staging(self._end)
        start = self._starts[number]
        return self._area[start:start + nbytes]

    def send(self, number: int, target: Span, array: Array) -> None:
        """Copy the `number`-th input to the device; the caller's array may be changed as soon as this returns."""
        if array.nbytes > MOST_BYTES:
            self.device.send(target, array)
            return
        if self._left is not None:
            self._left()
            self._left = None
        part = self._part(number, array.nbytes)
        part[...] = array.reshape(-1).view(np.uint8)
        self.device.send(target, part)

    def sent(self) -> None:
        """All inputs of a call are on their way."""
        self._left = self.device.mark()

    def fetch(self, numbers: Sequence[int], sources: Sequence[Span], arrays: Sequence[Array]) -> None:
        """Copy results into arrays on the host, with one wait for all of them."""
        passing = []
        for number, source, array in zip(numbers, sources, arrays, strict=True):
            part = array.reshape(-1).view(np.uint8)
            if 0 < array.nbytes <= MOST_BYTES:
                own, part = part, self._part(self._n_inputs + number, array.nbytes)
                passing.append((own, part))
            self.device.fetch(part, source)
        self.device.synchronize()
        self._left = None
        for own, part in passing:
            own[...] = part
