"""From a device's name to the device; made when first asked for, once for a process."""
from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import ArgumentError, explain_error

if TYPE_CHECKING:
    from .interface import Device

ALIGNMENT = 256
"""Bytes on which every buffer and every place in an arena starts (CuPy's pool keeps to 512, and vector accesses need less)."""

NAMES = '"cpu", "cuda", "cuda:N" (the N-th NVIDIA GPU), "emulator", "emulator:N" (one with memory of its own)'


def is_device(name: str) -> bool:
    """Whether this is a device with memory of its own (not the CPU)."""
    return re.fullmatch(r"(cuda|emulator)(:\d+)?", name) is not None


def find_device(name: str) -> Device:
    """The device of a name.

    Raises:
        ArgumentError: no device is called so.
        BackendError: there is none on this machine; the message says what was looked for and where.
    """
    if not is_device(name):
        raise ArgumentError(explain_error(f"there is no device {name!r}", do=f"use one of {NAMES}"))
    kind, _, number = name.partition(":")
    return _device(kind, int(number or 0))


@lru_cache(maxsize=64)
def _device(kind: str, number: int) -> Device:
    if kind == "emulator":
        from .emulator import EmulatorDevice

        return EmulatorDevice(number)
    from .cupy_device import CupyDevice

    return CupyDevice(number)
