"""From a device's name to the device; made when first asked for, once for a process."""
from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ...errors import ArgumentError, explain_error

if TYPE_CHECKING:
    from .interface import Device

ALIGNMENT = 256
"""Bytes on which every buffer and every place in an arena starts (what cudaMalloc promises, and vector accesses need)."""

NAMES = '"cpu", "cuda", "cuda:N" (the N-th NVIDIA GPU), "emulator"'


def is_device(name: str) -> bool:
    """Whether this is a device with memory of its own (not the CPU)."""
    return name == "emulator" or re.fullmatch(r"cuda(:\d+)?", name) is not None


def find_device(name: str) -> Device:
    """The device of a name.

    Raises:
        ArgumentError: no device is called so.
        BackendError: there is none on this machine; the message says what was looked for and where.
    """
    if not is_device(name):
        raise ArgumentError(explain_error(f"there is no device {name!r}", do=f"use one of {NAMES}"))
    return _device("cuda:0" if name == "cuda" else name)


@lru_cache(maxsize=64)
def _device(name: str) -> Device:
    if name == "emulator":
        from .emulator import EmulatorDevice

        return EmulatorDevice()
    from .cupy_device import CupyDevice

    return CupyDevice(int(name.partition(":")[2]))
