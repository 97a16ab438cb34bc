"""Where the value of a shared variable lives: on the host, on devices, or both; whichever was written last is the value."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .state_groups import EndedError, StateGroup, current, holding_groups

if TYPE_CHECKING:
    from .devices.interface import Buffer, Device

Array = np.ndarray[Any, Any]
Result = TypeVar("Result")


@dataclass(slots=True)
class _Copy:
    """A value's copy on a device, and which version of the value it is."""

    buffer: Buffer
    version: int


class Container:
    """A shared variable's value. `version` counts changes, so that what was derived from it can be kept.

    `array` is the value on the host; a value that was last written on a device is fetched when it is asked for, so a training
    loop on a device moves no weights.  `borrowed` says that somebody outside may hold the host's array itself; then a function
    that writes into the value in place takes a copy of its own first.  Every call that reads or updates the value holds the lock of
    its `group`.
    """

    __slots__ = ("_array", "_array_version", "_copies", "_group", "borrowed", "version")

    def __init__(self, array: Array, borrowed: bool = False) -> None:
        self._array = array
        self._array_version = 0
        self._copies: dict[Device, _Copy] = {}
        self._group = StateGroup()
        self.version = 0
        self.borrowed = borrowed

    def __reduce__(self) -> Any:
        return Container, (self.array,)

    @property
    def group(self) -> StateGroup:
        """The shared variables that the same functions use."""
        group = self._group
        if group.parts is not None:
            group = self._group = current(group, self)
        return group

    def alone(self, action: Callable[[], Result]) -> Result:
        """What `action()` gives, called while nobody else reads or changes the value."""
        while True:
            try:
                return holding_groups((self.group,), action)
            except EndedError:  # between asking for the group and taking its lock
                continue

    @property
    def array(self) -> Array:
        """The value on the host."""
        if self._array_version != self.version:
            self.alone(self._fetch)
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        """The value's shape."""
        return self._array.shape

    def copied(self) -> Array:
        """A copy of the value."""
        return self.alone(lambda: self.array.copy())

    def lend(self) -> Array:
        """The host's array itself, for somebody outside."""
        return self.alone(self._lend)

    def _lend(self) -> Array:
        array = self.array  # first: a value that is fetched from a device comes in an array that nobody holds
        self.borrowed = True
        self.group.changes += 1
        return array

    def replace(self, array: Array, borrowed: bool = False) -> None:
        """Put another array in place of the value."""
        self.alone(partial(self._replace, array, borrowed))

    def _replace(self, array: Array, borrowed: bool) -> None:
        self._array = array
        self.borrowed = borrowed
        self._note_written()

    def _note_written(self) -> None:
        """The host's array has a new value."""
        self.version += 1
        self._array_version = self.version
        self.group.changes += 1

    def fill(self, number: float) -> None:
        """Set every element of the host's array itself."""
        self.alone(partial(self._fill, number))

    def _fill(self, number: float) -> None:
        self.array[...] = number
        self._note_written()

    def make_private(self) -> None:
        """Own the host's array before it is written in place."""
        if self.borrowed:
            self._array = self.array.copy()
            self.borrowed = False
            self.group.changes += 1

    def on(self, device: Device) -> Buffer:
        """The value on a device, brought there if it is not there yet. The buffer stays the same as long as its size does.

        A borrowed array may have been changed by whoever else holds it, so it is brought anew each time.
        """
        return self.alone(partial(self._bring, device))

    def _bring(self, device: Device) -> Buffer:
        copy = self._copies.get(device)
        if copy is None or copy.buffer.nbytes != self._array.nbytes:
            copy = self._copies[device] = _Copy(device.allocate(self._array.nbytes), -1)
        if copy.version != self.version or (self.borrowed and self._array_version == self.version):
            device.upload(copy.buffer, self.array)
            copy.version = self.version
        return copy.buffer

    def note_written_on(self, device: Device) -> None:
        """The device's copy has a new value, of the same shape."""
        self.version += 1
        self._copies[device].version = self.version
        self.group.changes += 1

    def adopt(self, device: Device, buffer: Buffer, shape: tuple[int, ...]) -> None:
        """Take a buffer of a device, full of a new value, as the value."""
        self.alone(partial(self._adopt, device, buffer, shape))

    def _adopt(self, device: Device, buffer: Buffer, shape: tuple[int, ...]) -> None:
        self.version += 1
        self._copies[device] = _Copy(buffer, self.version)
        if shape != self._array.shape:
            self._array = np.empty(shape, self._array.dtype)
            self.borrowed = False
        self.group.changes += 1

    def _fetch(self) -> None:
        """Bring the value from the device that has it into an array that nobody else holds."""
        if self._array_version == self.version:  # another thread has done so meanwhile
            return
        device, copy = next((device, copy) for device, copy in self._copies.items() if copy.version == self.version)
        if self.borrowed:
            self._array, self.borrowed = np.empty_like(self._array), False
            self.group.changes += 1
        device.download(copy.buffer, self._array)
        self._array_version = self.version


def note_written_in_place(containers: Iterable[Container]) -> None:
    """The hosts' arrays have new values, in a run that counts the change for their groups (`UsedState.count_change`)."""
    for container in containers:
        container.version += 1
        container._array_version = container.version
