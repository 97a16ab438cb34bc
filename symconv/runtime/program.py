"""Program: what runs on a call, for one set of input shapes. Frozen but for its arena."""
from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.driver import DATA_OFFSET, CompiledProgram, data_address
from ..codegen.kernel import Kernel
from ..codegen.toolchain import build
from ..errors import InternalError
from ..graph import FunctionGraph
from .interpret import act, run_reference
from .memory import ALIGNMENT, MemoryPlan
from .outputs import output_maker
from .planned import PlannedProgram
from .prepare import place_kept
from .run_errors import telling
from .schedule import Schedule
from .step import Place, Step

Array = np.ndarray[Any, Any]


_FIRST_NUMBER = 2  # of the storages with a pointer of their own, after the arena and what is kept between calls


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of generated steps as one C call, or one reference step in Python."""

    first: int
    compiled: CompiledProgram | None
    step: Step | None


class Program(PlannedProgram):
    """Steps, memory plan and built kernels.

    `run` takes arrays for the inputs and gives the outputs' and new values' arrays. Where the state lies is told before
    (`bind_state`), once for as long as it stays there: the caller keeps its arrays alive.
    """

    def __init__(self, graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan) -> None:
        super().__init__(graph, schedule, memory)
        self._numbers = self._number_storages()
        self._constants = [np.ascontiguousarray(constant.data) for _, constant in schedule.constants]
        self._arena = np.empty(memory.arena_bytes + ALIGNMENT, np.uint8)
        self._kept = np.empty(place_kept(self.steps, ALIGNMENT) + ALIGNMENT, np.uint8)
        self._pointers = (ctypes.c_void_p * (len(self._numbers) + _FIRST_NUMBER))()
        self._pointers[0] = -(-self._arena.ctypes.data // ALIGNMENT) * ALIGNMENT
        self._pointers[1] = -(-self._kept.ctypes.data // ALIGNMENT) * ALIGNMENT
        for (storage, _), array in zip(schedule.constants, self._constants, strict=True):
            self._pointers[self._numbers[storage]] = array.ctypes.data
        self._results = [output_maker(place.operand.shape, dtypes.numpy_dtype(place.operand.dtype))
                         for place in self.result_places()]
        self._first_state = _FIRST_NUMBER + len(self._constants)
        self._first_array = self._first_state + len(self.state)
        n_arrays = len(self.inputs) + len(self._results)
        self._arrays = (ctypes.c_void_p * n_arrays)()
        self._put_arrays = struct.Struct(f"{n_arrays}P").pack_into
        self._segments = self._make_segments()
        self._is_finished = False
        self._all_in_c = DATA_OFFSET >= 0 and all(segment.compiled is not None for segment in self._segments)

    def _number_storages(self) -> dict[Any, int]:
        """Numbers of the storages with a pointer of their own: 0 the arena, 1 what is kept; constants, state, inputs, results."""
        storages = (*(storage for storage, _ in self.schedule.constants),
                    *(self.schedule.inputs[leaf] for leaf in (*self.state, *self.inputs)),
                    *(place.storage for place in self.result_places()))
        return {storage: number for number, storage in enumerate(storages, _FIRST_NUMBER)}

    def _compiled(self, steps: list[tuple[int, list[tuple[int, int]], Sequence[int]]]) -> CompiledProgram:
        return CompiledProgram(steps, self._pointers, self._arrays, self._first_array)

    def _reference_to(self, place: Place) -> tuple[int, int]:
        """A place as (storage number, byte offset)."""
        home = place.storage.home
        if home.kind in ("temporary", "kept"):
            return int(home.kind == "kept"), home.offset + place.offset_bytes
        return self._numbers[home], place.offset_bytes

    def _make_segments(self) -> list[Segment]:
        built = iter(build([_kernel(step) for step in self.steps if step.kernel is not None]))
        segments: list[Segment] = []
        waiting: list[tuple[int, list[tuple[int, int]], Sequence[int]]] = []
        first = 0
        for position, step in enumerate(self.steps):
            if step.kernel is None:
                if waiting:
                    segments.append(Segment(first, self._compiled(waiting), None))
                segments.append(Segment(position, None, step))
                waiting, first = [], position + 1
                continue
            references = [self._reference_to(place) for place in (*step.writes, *step.reads)]
            if step.workspace is not None:
                references.append((0, step.workspace.home.offset))
            waiting.append((next(built).address, references, _kernel(step).sizes))
        if waiting:
            segments.append(Segment(first, self._compiled(waiting), None))
        return segments

    def new_results(self) -> list[Array]:
        """Arrays for the outputs, then for the swapped updates."""
        return [make() for make in self._results]

    def begin(self) -> None:
        """Before a run that is to say whether it came to its end."""
        self._is_finished = False
        for segment in self._segments[-1:]:
            if segment.compiled is not None:
                segment.compiled.is_finished = False

    @property
    def has_finished(self) -> bool:
        """Whether the run since `begin` came to its end. Steps that write state in place all run in the last C call, which says so
        itself: an interrupt right behind it does not hide what it has written."""
        last = self._segments[-1].compiled if self._segments else None
        return self._is_finished if last is None else last.is_finished

    def bind_state(self, arrays: Sequence[Array]) -> None:
        """Where the state lies from now on: the arrays of `state`, in order."""
        self._pointers[self._first_state:self._first_array] = list(map(data_address, arrays))

    def run(self, inputs: Sequence[Array], times: Array | None = None, prepare: bool = True,
            results: list[Array] | None = None) -> list[Array]:
        """Run on arrays of `inputs`, in order; gives the arrays of the outputs, then of the swapped updates.

        `times`, float64 with a place for every step, gets the seconds that each took.  `prepare`: whether the first
        `n_prepared` steps run too; not needed while the state of `watched` is as it was in the last run that did.
        `results` are the arrays to fill, of `new_results`.
        """
        results = [make() for make in self._results] if results is None else results
        arrays = [*inputs, *results]
        self._put_arrays(self._arrays, 0, *map(id, arrays))
        if not self._all_in_c:
            self._pointers[self._first_array:] = list(map(data_address, arrays))
        for segment in self._segments:
            if segment.compiled is not None:
                first = 0 if prepare or segment.first else self.n_prepared
                failure = segment.compiled.run(None if times is None else times[segment.first:], first)
                if failure is not None:
                    raise self.error_of(segment.first + failure[0], failure[1])
            elif segment.step is not None:
                _timed(partial(self._run_reference, segment.step), times, segment.first)
        self._is_finished = True
        return results

    def run_stepwise(self, inputs: Sequence[Array], results: Sequence[Array],
                     around: Callable[[int, Callable[[], None]], None]) -> None:
        """Run every step by itself: `around(position, run)` is called in its place and calls `run()`. For checks; slow."""
        arrays = [*inputs, *results]
        self._arrays[:len(arrays)] = list(map(id, arrays))
        self._pointers[self._first_array:] = list(map(data_address, arrays))
        for segment in self._segments:
            if segment.step is not None:
                around(segment.first, partial(self._run_reference, segment.step))
                continue
            for number in range(0 if segment.compiled is None else segment.compiled.n_steps):
                around(segment.first + number, partial(self._run_one, segment, number))

    def _run_one(self, segment: Segment, number: int) -> None:
        failure = None if segment.compiled is None else segment.compiled.run(None, number, number + 1)
        if failure is not None:
            raise self.error_of(segment.first + failure[0], failure[1])

    @property
    def arena_address(self) -> int:
        """Where the arena starts."""
        return int(self._pointers[0] or 0)

    def memory_blocks(self) -> dict[str, Array]:
        """The memory that the program owns, as bytes."""
        blocks = {"the arena": self._arena, "what is kept between calls": self._kept}
        blocks.update({f"constant {number}": array.reshape(-1).view(np.uint8) for number, array in enumerate(self._constants)})
        return blocks

    def _run_reference(self, step: Step) -> None:
        arrays = [self.array(place) for place in step.reads]
        targets = [self.array(place) for place in step.writes]
        if step.node is None:
            targets[0][...] = arrays[0]
            return
        act(step.node, arrays)
        with telling(step):
            results = run_reference(step.node, arrays)
        for target, result in zip(targets, results, strict=True):
            if target.shape != result.shape:
                raise InternalError(f"the reference of {step.node.op} gives shape {result.shape}, expected {target.shape}")
            target[...] = result

    def array(self, place: Place) -> Array:
        """A NumPy view of a place."""
        slot, offset = self._reference_to(place)
        dtype, operand = dtypes.numpy_dtype(place.operand.dtype), place.operand
        if operand.size == 0:
            return np.empty(operand.shape, dtype)
        low = sum(min(0, (size - 1) * stride) for size, stride in zip(operand.shape, operand.strides, strict=True))
        high = sum(max(0, (size - 1) * stride) for size, stride in zip(operand.shape, operand.strides, strict=True))
        address = (self._pointers[slot] or 0) + offset + low * dtype.itemsize
        raw = (ctypes.c_uint8 * ((high - low + 1) * dtype.itemsize)).from_address(address)
        flat = np.ctypeslib.as_array(raw).view(dtype)
        return np.lib.stride_tricks.as_strided(flat[-low:], operand.shape, [stride * dtype.itemsize for stride in operand.strides])


def _kernel(step: Step) -> Kernel:
    """A step's kernel, which must be one for the CPU."""
    if not isinstance(step.kernel, Kernel):
        raise InternalError(f"the step {step.name} has no kernel for the CPU")
    return step.kernel


def _timed(action: Callable[[], None], times: Array | None, position: int) -> None:
    if times is None:
        action()
        return
    import time

    start = time.perf_counter()
    action()
    times[position] = time.perf_counter() - start


