"""GPUs as cuDNN wants to know them, and what their figures mean for speed.

`devices.json` has seven GPUs that need not be there, under the names and with the members that cuDNN's device-properties JSON
has (`cudnn.create_device_properties`).  Where they are from: a GPU's own answer to `cudaGetDeviceProperties` has the same
members; the numbers are those of NVIDIA's data sheets of each product (multiprocessors, clocks, memory, bus) and of the table
"Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide (threads, registers, shared memory).
"""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, explain_error

# Multiplications and additions per multiprocessor and clock, counted as two operations, by compute capability: (float32,
# float64, dense 16-bit tensor cores that sum in float32, dense tf32 tensor cores).  CUDA C++ Programming Guide, "Arithmetic
# Instructions", and the peak rates in the architectures' white papers.
_RATES = {
    75: (128, 4, 1024, 0),
    80: (128, 64, 2048, 1024),
    86: (256, 4, 512, 256),
    89: (256, 4, 512, 256),
    90: (256, 128, 4096, 2048),
    100: (256, 128, 8192, 4096),
    120: (256, 4, 512, 256),
}
_MEMBERS = ("deviceName", "deviceVer", "multiProcessorCount", "smClockRateKHz", "memClockRateKHz", "memoryBusWidth",
            "totalGlobalMem")


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """One GPU: `text` is cuDNN's JSON; equal text, equal device. `name` is NVIDIA's, `architecture` 75, 80, …, 120."""

    text: str
    name: str
    architecture: int
    processors: int
    clock_hertz: float
    bytes_per_second: float
    memory_bytes: int

    @classmethod
    def parse(cls, text: str) -> DeviceProperties:
        """The GPU that cuDNN's JSON describes; ArgumentError where a member is missing."""
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> DeviceProperties:
        """The GPU with these members (as in `devices.json`)."""
        missing = [name for name in _MEMBERS if name not in members]
        if missing:
            raise ArgumentError(explain_error("this does not describe a GPU", f"without {', '.join(missing)}",
                                              "give every member that the entries of devices.json have"))
        bandwidth = 2e3 * members["memClockRateKHz"] * members["memoryBusWidth"] / 8  # two transfers per clock
        return cls(json.dumps(members, sort_keys=True), members["deviceName"], members["deviceVer"] // 10,
                   members["multiProcessorCount"], 1e3 * members["smClockRateKHz"], bandwidth, members["totalGlobalMem"])

    @property
    def version(self) -> int:
        """The compute capability as cuDNN writes it: 900 for 9.0."""
        return self.architecture * 10

    @property
    def has_bfloat16(self) -> bool:
        """Whether its tensor cores multiply bfloat16 (from compute capability 8.0)."""
        return self.architecture >= 80

    @property
    def has_tf32(self) -> bool:
        """Whether its tensor cores multiply tf32 (from compute capability 8.0)."""
        return self.architecture >= 80

    def flops_per_second(self, dtype: str, tf32: bool = False) -> float:
        """The peak rate of multiplications and additions with operands of a dtype.

        >>> round(known_device("h200").flops_per_second("float16") / 1e12)
        1071
        """
        rates = _RATES.get(self.architecture, _RATES[max((each for each in _RATES if each <= self.architecture), default=75)])
        single, double, half, tensor_single = rates
        rate = {"float64": double, "float32": tensor_single if tf32 and tensor_single else single,
                "bfloat16": half if self.has_bfloat16 else single}.get(dtype, half)
        return rate * self.processors * self.clock_hertz

    def __str__(self) -> str:
        return f"{self.name} (sm_{self.architecture})"


@lru_cache(maxsize=1)
def known_devices() -> dict[str, DeviceProperties]:
    """The GPUs of `devices.json` by their short names: h200, a100, t4, rtx3090, rtx4090, b200, rtx5090."""
    table = json.loads((Path(__file__).parent / "devices.json").read_text(encoding="utf-8"))
    return {name: DeviceProperties.of(members) for name, members in table.items()}


def known_device(target: str) -> DeviceProperties:
    """The GPU of a name ("h200", "H200", "RTX 4090", "NVIDIA H200"), or the one that stands for an architecture ("sm_90").

    Each architecture's GPU is the first of `devices.json` that has it; ArgumentError for any other word.

    >>> known_device("sm_90").name
    'NVIDIA H200'
    """
    word = target.lower().replace(" ", "").removesuffix("a" if target.startswith("sm_") else " ")
    for name, device in known_devices().items():
        if word in (name, f"sm_{device.architecture}", device.name.lower().replace(" ", "")):
            return device
    every = ", ".join(f"{name} (sm_{device.architecture})" for name, device in known_devices().items())
    raise ArgumentError(explain_error("no GPU is known under this name", repr(target), f"use one of {every}"))
