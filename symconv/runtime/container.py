"""Where the value of a shared variable lives: on the host, on devices, or both; whichever was written last is the value."""
from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .devices.interface import Buffer, Device

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class _Copy:
    """A value's copy on a device, and which version of the value it is."""

    buffer: Buffer
    version: int


class Container:
    """A shared variable's value. `version` counts changes, so that what was derived from it can be kept.

    `array` is the value on the host; a value that was last written on a device is fetched when it is asked for, so a training
    loop on a device moves no weights.  `borrowed` says that somebody outside may hold the host's array itself; then a function
    that writes into the value in place takes a copy of its own first.  `lock` is held by every call that reads or updates the
    value.
    """

    __slots__ = ("_array", "_array_version", "_copies", "borrowed", "lock", "version")

    def __init__(self, array: Array, borrowed: bool = False) -> None:
        self._array = array
        self._array_version = 0
        self._copies: dict[Device, _Copy] = {}
        self.version = 0
        self.borrowed = borrowed
        self.lock = threading.RLock()

    @property
    def array(self) -> Array:
        """The value on the host."""
        if self._array_version != self.version:
            self._fetch()
        return self._array

    @property
    def shape(self) -> tuple[int, ...]:
        """The value's shape."""
        return self._array.shape

    def replace(self, array: Array, borrowed: bool = False) -> None:
        """Put another array in place of the value."""
        with self.lock:
            self._array = array
            self.borrowed = borrowed
            self.note_written()

    def note_written(self) -> None:
        """The host's array has a new value."""
        self.version += 1
        self._array_version = self.version

    def make_private(self) -> None:
        """Own the host's array before it is written in place."""
        if self.borrowed:
            self._array = self.array.copy()
            self.borrowed = False

    def on(self, device: Device) -> Buffer:
        """The value on a device, brought there if it is not there yet. The buffer stays the same as long as its size does.

        A borrowed array may have been changed by whoever else holds it, so it is brought anew each time.
        """
        with self.lock:
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

    def adopt(self, device: Device, buffer: Buffer, shape: tuple[int, ...]) -> None:
        """Take a buffer of a device, full of a new value, as the value."""
        with self.lock:
            self.version += 1
            self._copies[device] = _Copy(buffer, self.version)
            if shape != self._array.shape:
                self._array = np.empty(shape, self._array.dtype)
                self.borrowed = False

    def _fetch(self) -> None:
        """Bring the value from the device that has it into an array that nobody else holds."""
        with self.lock:
            device, copy = next((device, copy) for device, copy in self._copies.items() if copy.version == self.version)
            if self.borrowed:
                self._array, self.borrowed = np.empty_like(self._array), False
            device.download(copy.buffer, self._array)
            self._array_version = self.version
