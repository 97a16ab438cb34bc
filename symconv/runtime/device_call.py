"""DeviceCall: one call of a program on a device with memory of its own."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph import Variable
from .checked import Watch
from .container import Container
from .device_program import DeviceProgram
from .devices.interface import Buffer, Lent, Span
from .step import Place

if TYPE_CHECKING:
    from .kept import Kept

Array = np.ndarray[Any, Any]


class DeviceCall:
    """A call on values of the program's leaves, in order: host arrays, arrays on the device, containers of state.

    All memory that it needs is taken before anything runs, so that where there is not enough no state has changed.
    """

    def __init__(self, kept: Kept, program: DeviceProgram, leaves: Sequence[Any], stays: Sequence[bool]) -> None:
        self.kept, self.program, self.device = kept, program, program.device
        outputs = program.schedule.outputs
        self._left = {number: program.lend(place) for number, (place, stays_there) in enumerate(zip(outputs, stays, strict=True))
                      if stays_there}
        if self._left:
            self.device.take_over()
        places = [place for _, place in program.schedule.swapped]
        self._shapes = [place.operand.shape for place in places]
        self._targets = [self._target(container, place) for container, place in zip(kept.swapped, places, strict=True)]
        self._lent: list[Lent] = []
        self._there: list[Variable] = []  # inputs that are read where the user has them
        self._is_stored = False
        self._bring(leaves)
        program.begin([Span.whole(buffer) for buffer in self._targets])

    def _target(self, container: Container, place: Place) -> Buffer:
        """Where a new value goes: into the container's own memory, or into new memory where its shape changes."""
        if place.operand.shape == container.shape:
            return container.on(self.device)
        return self.device.allocate(place.operand.nbytes)

    def _bring(self, leaves: Sequence[Any]) -> None:
        """Put the values of the leaves where the program reads them."""
        copies, n_sent = [], 0
        for number, (leaf, value) in enumerate(zip(self.program.leaves, leaves, strict=True)):
            if isinstance(value, Container):
                self.program.bind(leaf, value.on(self.device))
                continue
            if isinstance(value, Lent):
                self._lent.append(value)
                if self.program.may_lie_in(leaf, value):
                    self.program.bind(leaf, value.buffer)
                    self._there.append(leaf)
                else:
                    copies.append(self.device.copying(self.program.input_span(leaf), Span.whole(value.buffer)))
            else:
                self.program.staging.send(number, self.program.input_span(leaf), value)
                n_sent += 1
        if n_sent:
            self.program.staging.sent()
        if copies:
            self.device.run(copies)

    def _give_back(self) -> None:
        """What the user does next to his arrays comes behind all that reads them."""
        self.device.give_back(self._lent)
        self._lent = []
        while self._there:
            self.program.let_go(self._there.pop())

    def run(self, prepare: bool) -> None:
        """All launches."""
        self.program.run(prepare)

    def run_profiled(self, prepare: bool, seconds: Array, waits: Array) -> None:
        """With a wait behind each step."""
        self.program.profile(prepare, seconds, waits)

    def run_checked(self, check: str, values: dict[Variable, Array]) -> None:
        """Step by step; what was written in place is put back if a step is found wrong."""
        before = [(container, np.array(container.array)) for container in self.kept.direct]
        try:
            self.program.run_stepwise(Watch(self.program, check, values, self.program.host_array).step)
            self.program.commit_copies()
        except BaseException:
            if not self.program.has_committed:
                for container, array in before:
                    self.device.upload(container.on(self.device), array)
            raise

    def store(self) -> None:
        """The containers learn that their value on this device is new; the user's arrays are his again."""
        if self._lent:
            self._give_back()
        if self._is_stored or not self.program.has_committed:
            return
        for container in self.kept.direct:
            container.note_written_on(self.device)
        for container, buffer, shape in zip(self.kept.swapped, self._targets, self._shapes, strict=True):
            container.adopt(self.device, buffer, shape)
        self._is_stored = True

    def results(self) -> list[Any]:
        """Arrays on the host, and on the device those that are to stay there."""
        outputs = self.program.schedule.outputs
        numbers = [number for number in range(len(outputs)) if number not in self._left]
        found = self._left
        if self._left:
            self.device.hand_over()
            for number in self._left:
                self.program.handed_out(outputs[number])
        if numbers:
            arrays = [self.program.host_arrays[outputs[number]]() for number in numbers]
            self.program.staging.fetch(numbers, [self.program.span(outputs[number]) for number in numbers], arrays)
            found.update(zip(numbers, arrays, strict=True))
        return [found[number] for number in range(len(outputs))]
