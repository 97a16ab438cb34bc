"""DeviceFunction: a compiled function whose state and work are on a device with memory of its own."""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import InputTypeError, InternalError, explain_error
from ..graph import Variable
from .arguments import In, Out, match_arguments
from .container import Container
from .device_program import DeviceProgram
from .devices.interface import Buffer, Device, Span
from .function import Function, Kept
from .step import Place

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An argument that lies on the device already: row-major, with `value` the user's own array."""

    value: Any
    buffer: Buffer
    shape: tuple[int, ...]

    @property
    def array(self) -> Array:
        """A copy on the host, for shapes that depend on values."""
        return np.asarray(self.value.get() if hasattr(self.value, "get") else self.value)


class DeviceFunction(Function):
    """A compiled function on a device.

    Arguments are NumPy arrays, or arrays that lie on the device already, which are read where they are.  Shared variables stay
    on the device between calls; `get_value` fetches them.
    """

    def __init__(self, *given: Any, place: Device) -> None:
        super().__init__(*given)
        self.place = place
        self._on_device = [isinstance(output, Out) and output.on_device for output in _flat(self.recipe.outputs)]

    def _match(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        return match_arguments(self.recipe.inputs, args, kwargs, self.name, partial(_convert, self.place))

    def _bindings(self, arrays: list[Any]) -> dict[Variable, Array]:
        values = [each.array if isinstance(each, (Container, DeviceArray)) else each for each in arrays]
        return super()._bindings(values)

    def _run(self, arguments: list[Any]) -> list[Any]:
        leaves = [*arguments, *(leaf.container for leaf in self._shared)]
        kept = self._program(leaves)
        program = kept.program
        if not isinstance(program, DeviceProgram):
            raise InternalError(f"{self.name} has a program for another device")
        for leaf, value in zip(program.leaves, kept.in_order(leaves), strict=True):
            self._bring(program, leaf, value)
        prepare = bool(self.mode.check) or kept.must_prepare()
        try:
            self._run_program(kept, program, leaves, prepare)
        finally:  # an interrupt of the user's arrives behind the launch that wrote
            for container in kept.direct:
                container.note_written_on(self.place)
        if prepare:
            kept.note_prepared()
        places = zip(program.schedule.outputs, self._on_device, strict=True)
        results = [self._kept_here(program, place) if stays else self._fetched(program, place) for place, stays in places]
        self._store_updates(kept, program)
        return results

    def _run_program(self, kept: Kept, program: DeviceProgram, leaves: list[Any], prepare: bool) -> None:
        if self.mode.check:
            self._run_checked(kept, program, leaves)
        elif self.profiling:
            self._run_profiled(program, prepare)
        else:
            program.run(prepare)

    def _bring(self, program: DeviceProgram, leaf: Variable, value: Any) -> None:
        """Put the value of a leaf where the program reads it."""
        if isinstance(value, Container):
            program.bind(leaf, value.on(self.place))
        elif isinstance(value, DeviceArray):
            self.place.copy(Span.whole(program.input_buffer(leaf)), Span.whole(value.buffer))
        else:
            self.place.upload(program.input_buffer(leaf), value)

    def _run_checked(self, kept: Kept, program: DeviceProgram, leaves: list[Any]) -> None:
        """A run that watches itself (`Mode.check`); what it wrote in place is put back if it raises."""
        from .checked import Watch, check_rewrites

        bindings = self._bindings(leaves)
        values = {leaf: np.array(array) for leaf, array in kept.bindings(bindings).items()}
        if self.mode.check == "debug":
            check_rewrites(self.rewrites, bindings)
            check_rewrites(kept.log, values)
        before = [(container, np.array(container.array)) for container in kept.direct]
        try:
            program.run_stepwise(Watch(program, self.mode.check, values, program.host_array).step)
        except BaseException:
            for container, array in before:
                self.place.upload(container.on(self.place), array)
            raise

    def _run_profiled(self, program: DeviceProgram, prepare: bool) -> None:
        start, step_seconds = time.perf_counter(), np.zeros(len(program.steps))
        program.profile(prepare, step_seconds)
        self.profile.note(program, time.perf_counter() - start, step_seconds)

    def _store_updates(self, kept: Kept, program: DeviceProgram) -> None:
        """The new values that were not written in place, once all of them have memory."""
        places = [place for _, place in program.schedule.swapped]
        targets = [container.on(self.place) if place.operand.shape == container.shape else self.place.allocate(place.operand.nbytes)
                   for container, place in zip(kept.swapped, places, strict=True)]
        for container, place, target in zip(kept.swapped, places, targets, strict=True):
            self.place.copy(Span.whole(target), program.span(place))
            container.adopt(self.place, target, place.operand.shape)

    def _fetched(self, program: DeviceProgram, place: Place) -> Array:
        """An output as an array on the host."""
        array = program.host_arrays[place]()
        self.place.download(program.span(place).buffer, array)
        return array

    def _kept_here(self, program: DeviceProgram, place: Place) -> Any:
        """An output as an array of its own on the device."""
        buffer = self.place.allocate(place.operand.nbytes)
        self.place.copy(Span.whole(buffer), program.span(place))
        operand = place.operand
        return self.place.as_array(Span.whole(buffer), dtypes.numpy_dtype(operand.dtype), operand.shape, operand.strides)


def _convert(device: Device, given: In, value: Any, position: int) -> Any:
    """The argument: what lies on the device stays there, anything else becomes a host array."""
    found = None if isinstance(value, np.ndarray) else device.as_buffer(value)
    if found is None:
        return given.convert(value, position)
    buffer, shape, dtype = found
    type_ = given.variable.type
    fits = len(shape) == type_.ndim and all(want in (None, size) for want, size in zip(type_.shape, shape, strict=True))
    if dtype != given.numpy_dtype or not fits:
        raise InputTypeError(explain_error(f"the input {given.name!r} (argument {position}) has the type {type_}",
                                           f"an array on {device.name} of dtype {dtype} and shape {shape}", "convert it first"))
    return DeviceArray(value, buffer, shape)


def _flat(outputs: Any) -> Sequence[Any]:
    """The outputs as `compile` was given them, in order."""
    if outputs is None:
        return []
    if isinstance(outputs, Mapping):
        return list(outputs.values())
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
