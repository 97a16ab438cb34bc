"""DeviceProgram: what runs on a call on a device with memory of its own, for one set of input shapes.

Everything has a fixed place: inputs are copied into buffers of the program, state lies in its containers' buffers, temporaries
in one arena.  So the work can be recorded once and started as a whole (a CUDA graph).  Steps that can meet a user's error put its
number into a flag of theirs; the flags are read before the steps that write state in place, which stand behind all that can fail.
"""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.cuda.kernel import ERROR_FLAG, WORKSPACE, LaunchPlan
from ..config import config
from ..errors import BackendError, IndexRangeError, InternalError, explain_error
from ..graph import Apply, FunctionGraph, Variable
from .devices.find import ALIGNMENT
from .devices.interface import Buffer, Device, Span
from .interpret import check_results
from .memory import MemoryPlan
from .outputs import output_maker
from .planned import PlannedProgram
from .prepare import place_kept
from .schedule import Schedule
from .step import Place, Step, Storage

Array = np.ndarray[Any, Any]
_FLAG_BYTES = 4
logger = logging.getLogger("symconv")


class DeviceProgram(PlannedProgram):
    """Steps, memory plan and loaded kernels on a device."""

    def __init__(self, graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan, device: Device) -> None:
        super().__init__(graph, schedule, memory)
        self.device = device
        self._arena = device.allocate(memory.arena_bytes)
        self._kept = device.allocate(place_kept(self.steps, ALIGNMENT))
        self._flags = device.allocate(_FLAG_BYTES * len(self.steps))
        self._buffers: dict[Storage, Buffer] = {storage: self._constant(constant.data) for storage, constant in schedule.constants}
        for place in self.result_places():
            if place.storage.alias is None:
                self._buffers[place.storage] = device.allocate(place.storage.nbytes)
        self.host_arrays = {place: output_maker(place.operand.shape, dtypes.numpy_dtype(place.operand.dtype))
                            for place in schedule.outputs}
        self._last_failing = max([position for position, step in enumerate(self.steps) if step.can_fail], default=-1)
        self._actions: list[Callable[[], None]] | None = None
        self._recorded: dict[tuple[int, int], Callable[[], None] | None] = {}

    def _constant(self, data: Array) -> Buffer:
        buffer = self.device.allocate(data.nbytes)
        self.device.upload(buffer, np.ascontiguousarray(data))
        return buffer

    def bind(self, leaf: Variable, buffer: Buffer) -> None:
        """Let a leaf's value lie in this buffer from now on."""
        storage = self.schedule.inputs[leaf]
        if self._buffers.get(storage) is not buffer:
            self._buffers[storage] = buffer
            self._actions, self._recorded = None, {}

    def input_buffer(self, leaf: Variable) -> Buffer:
        """The program's own buffer of an input, to be filled before a run."""
        storage = self.schedule.inputs[leaf]
        if storage not in self._buffers:
            self.bind(leaf, self.device.allocate(storage.nbytes))
        return self._buffers[storage]

    def run(self, prepare: bool = True) -> None:
        """Run on the buffers that the leaves are bound to.

        Raises:
            IndexRangeError: a step met a user's error; then no state has been written.
        """
        first = 0 if prepare else self.n_prepared
        middle = max(first, self._last_failing + 1)
        if middle > first:
            if any(step.kernel is not None and step.kernel.errors for step in self.steps):
                self.device.clear(Span.whole(self._flags))
            self._run_steps(first, middle)
            self._check_flags(first, middle)
        if middle < len(self.steps):
            self._run_steps(middle, len(self.steps))

    def run_stepwise(self, around: Callable[[int, Callable[[], None]], None]) -> None:
        """Run every step by itself: `around(position, run)` is called in its place and calls `run()`. For checks; slow."""
        self.device.clear(Span.whole(self._flags))
        for position in range(len(self.steps)):
            around(position, partial(self._run_one, position))

    def _run_one(self, position: int) -> None:
        self._action(position)()
        if self.steps[position].can_fail:
            self._check_flags(position, position + 1)

    def host_array(self, place: Place) -> Array:
        """A copy of a place's elements on the host."""
        self.device.synchronize()
        array = self.array(place)
        return np.array(array.get() if hasattr(array, "get") else array)

    def profile(self, prepare: bool, times: Array) -> None:
        """Run step by step; `times` gets the seconds of each, the wait for it included."""
        import time

        if prepare or not self.n_prepared:
            self.device.clear(Span.whole(self._flags))
        for position in range(0 if prepare else self.n_prepared, len(self.steps)):
            self.device.synchronize()
            start = time.perf_counter()
            self._run_one(position)
            self.device.synchronize()
            times[position] = time.perf_counter() - start

    def _run_steps(self, first: int, last: int) -> None:
        """As one recording where that can be; the first run goes launch by launch, so that everything is loaded."""
        key = (first, last)
        if self._recorded.get(key) is not None:
            self._recorded[key]()  # type: ignore[misc]
            return

        def work() -> None:
            for position in range(first, last):
                self._action(position)()

        work()
        if key not in self._recorded:
            has_reference = any(step.kernel is None for step in self.steps[first:last])
            self._recorded[key] = None if has_reference else self.device.record(work)

    def _action(self, position: int) -> Callable[[], None]:
        if self._actions is None:
            self._actions = [self._make_action(number, step) for number, step in enumerate(self.steps)]
        return self._actions[position]

    def _make_action(self, position: int, step: Step) -> Callable[[], None]:
        """What runs one step, every pointer decided."""
        if step.kernel is None:
            return partial(self._run_reference, step)
        plan = step.kernel
        if not isinstance(plan, LaunchPlan):
            raise InternalError(f"step {position} ({step.name}) has a kernel for another device")
        spans = {number: self._operand(step, number) for number in range(len(step.writes) + len(step.reads))}
        flag = position * _FLAG_BYTES
        spans[ERROR_FLAG] = Span(self._flags, flag, flag + _FLAG_BYTES, flag, "the error flag", _FLAG_BYTES)
        if step.workspace is not None:
            offset = step.workspace.home.offset
            spans[WORKSPACE] = Span(self._arena, offset, offset + plan.workspace_bytes, offset, "the workspace", 1, False)
        actions: list[Callable[[], None]] = []
        for launch in plan.launches:
            zeroed = [number for number in launch.zeroed if number != ERROR_FLAG]
            actions += [partial(self.device.clear, spans[number]) for number in zeroed]
            spans.update({number: replace(spans[number], is_written=True) for number in zeroed})
            actions.append(partial(self.device.load(launch), [spans[number] for number in launch.buffers]))
            spans.update({number: replace(spans[number], is_written=True) for number in launch.buffers})
        return partial(_run_all, actions)

    def _operand(self, step: Step, number: int) -> Span:
        """What a step may touch of its `number`-th operand (results, then inputs)."""
        n_results = len(step.writes)
        place = (*step.writes, *step.reads)[number]
        name = f"result {number}" if number < n_results else f"input {number - n_results}"
        return replace(self.span(place), name=name, element=dtypes.itemsize(place.operand.dtype),
                       is_written=number >= n_results or number in step.in_place)

    def span(self, place: Place) -> Span:
        """Where a place's elements are, on the device."""
        home = place.storage.home
        if home.kind in ("temporary", "kept"):
            buffer = self._kept if home.kind == "kept" else self._arena
            return Span(buffer, home.offset, home.offset + place.storage.nbytes, home.offset + place.offset_bytes)
        return Span(self._buffers[home], 0, home.nbytes, place.offset_bytes)

    def array(self, place: Place) -> Any:
        """A place as an array of the device's array module."""
        operand = place.operand
        return self.device.as_array(self.span(place), dtypes.numpy_dtype(operand.dtype), operand.shape, operand.strides)

    def _run_reference(self, step: Step) -> None:
        """The op's reference on the device's arrays; a copy where the step has no op."""
        arrays, targets = [self.array(place) for place in step.reads], [self.array(place) for place in step.writes]
        if step.node is None:
            targets[0][...] = arrays[0]
            return
        try:
            results = self._reference_results(step.node, arrays)
        except IndexError as error:
            raise IndexRangeError(explain_error(str(error), where=step.node.source)) from None
        check_results(step.node, results)
        for target, result in zip(targets, results, strict=True):
            target[...] = result

    def _reference_results(self, node: Apply, arrays: Sequence[Any]) -> Sequence[Any]:
        """By the array module of the device; through the host where the reference asks for what that has not."""
        with np.errstate(all="ignore"):
            try:
                return node.op.reference(*arrays)
            except (TypeError, NotImplementedError) as error:
                if all(isinstance(array, np.ndarray) for array in arrays):
                    raise
                reason = str(error)
            return self._results_through_host(node, arrays, reason)

    def _results_through_host(self, node: Apply, arrays: Sequence[Any], reason: str) -> Sequence[Any]:
        text = explain_error(f"{node.op} has no kernel for {self.device.name}, and its reference does not run there", reason,
                             "leave it out, or compile for the CPU", node.source)
        if config.assert_no_host_op:
            raise BackendError(text)
        logger.warning("%s; it runs on the host", text)
        results = node.op.reference(*(array.get() for array in arrays))
        return [self.device.to_array(np.ascontiguousarray(result)) for result in results]

    def _check_flags(self, first: int, last: int) -> None:
        if not any(step.kernel is not None and step.kernel.errors for step in self.steps[first:last]):
            return
        flags = np.empty(len(self.steps), np.uint32)
        self.device.download(self._flags, flags)
        for position in np.flatnonzero(flags[first:last]) + first:
            raise self.error_of(int(position), int(flags[position]))


def _run_all(actions: Sequence[Callable[[], None]]) -> None:
    for action in actions:
        action()
