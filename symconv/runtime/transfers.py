"""Transfers: what a call copies between the user's memory and the program's, and between host and device."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .arguments import Out
from .planned import PlannedProgram
from .step import Place


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes that are copied: `how` says where from and to, and how often."""

    what: str
    nbytes: int
    how: str


def outputs_staying(outputs: Any) -> tuple[bool, ...]:
    """Which of a function's outputs, in the form that `compile` was given, stay on its device."""
    flat = () if outputs is None else outputs.values() if isinstance(outputs, Mapping) else (
        outputs if isinstance(outputs, (list, tuple)) else (outputs,))
    return tuple(isinstance(each, Out) and each.on_device for each in flat)


def transfers(program: PlannedProgram, device: str, stays: tuple[bool, ...] = ()) -> tuple[Transfer, ...]:
    """The copies of a program on a device, in the order of a call.

    On the CPU arguments are read where they lie (NumPy makes a row-major array of the right dtype of them first, if they are none),
    so only copies that steps make of them are listed.  `stays` says of each output whether it stays on the device.
    """
    return tuple(_on_cpu(program) if device == "cpu" else _on_device(program, stays))


def _on_cpu(program: PlannedProgram) -> Iterator[Transfer]:
    names = {storage: variable for variable, storage in program.schedule.inputs.items()}
    for number, step in enumerate(program.steps):
        storage = step.reads[0].storage if step.reads else None
        if step.node is None and storage in names and storage.kind == "input":
            where = f"to output {step.writes[0].storage.number}" if step.writes[0].storage.kind == "output" else "into another form"
            yield Transfer(names[storage].label, step.writes[0].operand.nbytes, f"copied by step {number} {where}, on every call")


def _on_device(program: PlannedProgram, stays: tuple[bool, ...]) -> Iterator[Transfer]:
    for constant_storage, constant in program.schedule.constants:
        yield Transfer(f"constant {constant_storage.number}", constant.data.nbytes, "host to device, once")
    for variable, storage in program.schedule.inputs.items():
        yield Transfer(variable.label, storage.nbytes, _arrival(storage.kind))
    for number, place in enumerate(program.schedule.outputs):
        kept = number < len(stays) and stays[number]
        yield Transfer(f"output {number}", _bytes(place), "stays on the device" if kept else "device to host, on every call")


def _arrival(kind: str) -> str:
    if kind == "shared":
        return "state: host to device when it is first used or has been set, then it stays there"
    return "host to device on every call, unless the argument lies there already"


def _bytes(place: Place) -> int:
    return place.operand.nbytes
