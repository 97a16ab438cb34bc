"""DeviceProgram: what runs on a call on a device with memory of its own, for one set of input shapes.

Everything has a fixed place: inputs are copied into buffers of the program, state lies in its containers' buffers, temporaries and
the workspaces of all steps in one arena.  So the work can be recorded once and started as a whole (a CUDA graph).  Steps that can
meet a user's error put its number into a flag of theirs.  State is written by the commit alone: the last steps, which write it in
place and cannot fail, and the copies of all other new values.  It is issued as one list, behind a look at the flags, and ends with
a mark on the host: an interrupt finds all of it issued, or nothing.
"""
from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from .. import dtypes
from ..codegen.cuda.kernel import ERROR_FLAG, WORKSPACE, LaunchPlan, workspace_part
from ..config import config
from ..errors import BackendError, InternalError, explain_error
from ..graph import Apply, FunctionGraph, Variable
from .devices.find import ALIGNMENT
from .devices.interface import Action, Buffer, Device, DeviceMemoryError, Lent, Span
from .interpret import act, check_results
from .launching import MOST_VARIANTS, Stretch, plan_actions
from .memory import MemoryPlan
from .outputs import MOST_KEPT, output_maker
from .planned import PlannedProgram
from .prepare import place_kept
from .run_errors import telling
from .schedule import Schedule
from .settling import settle
from .staging import Staging
from .step import Place, Step, Storage

Array = np.ndarray[Any, Any]
_FLAG_BYTES = 4
logger = logging.getLogger("symconv")


class Loan:
    """Memory of a result that was handed out: it comes back when the last array that looks at it is gone."""

    __slots__ = ("_home", "buffer")

    def __init__(self, buffer: Buffer, home: list[Buffer]) -> None:
        self.buffer, self._home = buffer, home

    def __del__(self) -> None:
        if len(self._home) < MOST_KEPT:
            self._home.append(self.buffer)


class DeviceProgram(PlannedProgram):
    """Steps, memory plan and bound launches on a device.

    `has_committed` is False from `begin` on until the commit of that call is issued.
    """

    def __init__(self, graph: FunctionGraph, schedule: Schedule, memory: MemoryPlan, device: Device) -> None:
        super().__init__(graph, schedule, memory)
        self.device = device
        self._buffers: dict[Storage, Buffer] = {}
        self._addresses: dict[Storage, int] = {}  # of leaves, as the launches have them
        self._own: dict[Storage, Buffer] = {}  # of inputs that come from elsewhere
        self._seen: dict[Storage, set[int]] = {}  # addresses of the user's arrays
        self._homes: dict[Storage, list[Buffer]] = {}  # memory of results that nobody holds
        self._larger_workspaces: dict[int, Buffer] = {}  # of steps that were given another plan than the arena has room for
        self._is_settled = False
        self._bound_steps: dict[int, list[Action]] = {}
        self._bound_for: Any = None
        try:
            self._allocate()
        except DeviceMemoryError as error:
            raise DeviceMemoryError(explain_error(f"no memory for a program on {device.name}", f"{self._needs()}\n  {error}",
                                                  "use smaller batches, or free() functions that are not needed")) from None
        self.host_arrays = {place: output_maker(place.operand.shape, dtypes.numpy_dtype(place.operand.dtype))
                            for place in schedule.outputs}
        self.staging = Staging(device, [storage.nbytes for storage in schedule.inputs.values()], schedule.outputs)
        self.commit_start = min([position for position, step in enumerate(self.steps) if _writes_state(step)],
                                default=len(self.steps))
        self._stretches = [self._stretch(first, last) for first, last in self._runs()]
        self._commit = Stretch(device, self.commit_start, len(self.steps), self._commit_actions)
        self._targets: tuple[Span, ...] = ()
        self._committed: list[bool] = []
        self._key: tuple[Any, ...] = ()
        self._commit_key: tuple[Any, ...] = ()

    def _allocate(self) -> None:
        device, schedule = self.device, self.schedule
        self._arena = device.allocate(self.memory.arena_bytes)
        self._kept = device.allocate(place_kept(self.steps, ALIGNMENT))
        self._flags = device.allocate(_FLAG_BYTES * len(self.steps))
        for storage, constant in schedule.constants:
            self._buffers[storage] = device.allocate(constant.data.nbytes)
            device.upload(self._buffers[storage], np.ascontiguousarray(constant.data))
        for place in self.result_places():
            if place.storage.alias is None:
                self._buffers[place.storage] = device.allocate(place.storage.nbytes)

    def _needs(self) -> str:
        """What it needs in bytes, for an error."""
        results = sum(place.storage.nbytes for place in self.result_places() if place.storage.alias is None)
        constants = sum(constant.data.nbytes for _, constant in self.schedule.constants)
        inputs = sum(storage.nbytes for storage in self.schedule.inputs.values() if storage.kind == "input")
        workspace = max((step.workspace.nbytes for step in self.steps if step.workspace is not None), default=0)
        return (f"temporaries {self.memory.arena_bytes:,} bytes (the largest workspace {workspace:,}), results {results:,}, "
                f"constants {constants:,}, inputs {inputs:,}; functions use {self.device.memory_in_use():,} bytes of the device")

    def _runs(self) -> list[tuple[int, int]]:
        """The steps before the commit, cut where prepared ones end and around those that run their reference."""
        cuts = {0, self.n_prepared, self.commit_start}
        for position, step in enumerate(self.steps):
            if step.kernel is None:
                cuts |= {position, position + 1}
        ends = sorted(cut for cut in cuts if cut <= self.commit_start)
        return list(pairwise(ends))

    def _stretch(self, first: int, last: int) -> Stretch:
        return Stretch(self.device, first, last, lambda: self._step_actions(range(first, last)))

    def _step_actions(self, positions: range) -> list[Action]:
        return [action for position in positions for action in self._bound(position)]

    def _commit_actions(self) -> list[Action]:
        copies = [self.device.copying(target, self.span(place))
                  for target, (_, place) in zip(self._targets, self.schedule.swapped, strict=True) if target.nbytes]
        return [*self._step_actions(range(self.commit_start, len(self.steps))), *copies]

    def bind(self, leaf: Variable, buffer: Buffer) -> None:
        """Let a leaf's value lie in this buffer."""
        storage = self.schedule.inputs[leaf]
        self._buffers[storage] = buffer
        self._addresses[storage] = buffer.address

    def may_lie_in(self, leaf: Variable, lent: Lent) -> bool:
        """Whether an input is read where the user has it. Not where his arrays keep changing their place: then the launches
        would be made anew each time, and a copy costs less."""
        storage = self.schedule.inputs[leaf]
        if not lent.is_ordered or lent.buffer.address % ALIGNMENT or storage in self._own:
            return False
        seen = self._seen.setdefault(storage, set())
        seen.add(lent.buffer.address)
        return len(seen) <= MOST_VARIANTS

    def lend(self, place: Place) -> Any:
        """The user's array of an output that stays on the device, over memory that the launches will write.

        The memory comes back when nobody holds it any more; loops that let go of a result before the next but one so have it in
        the same two places, and what was recorded for these.
        """
        storage = place.storage.home
        if storage not in self._homes:
            self._homes[storage] = [self._buffers[storage]]
        home = self._homes[storage]
        buffer = home.pop() if home else self.device.allocate(storage.nbytes)
        self._buffers[storage], self._addresses[storage] = buffer, buffer.address
        return self.device.shown(buffer, dtypes.numpy_dtype(place.operand.dtype), place.operand.shape, Loan(buffer, home))

    def handed_out(self, place: Place) -> None:
        """The memory of an output is the user's."""
        self._buffers.pop(place.storage.home, None)

    def let_go(self, leaf: Variable) -> None:
        """The user's memory of an input is his again; the launches keep its address, for the next time that it is there."""
        del self._buffers[self.schedule.inputs[leaf]]

    def input_span(self, leaf: Variable) -> Span:
        """The program's own memory of an input, to be filled before a run."""
        storage = self.schedule.inputs[leaf]
        if storage not in self._own:
            self._own[storage] = self.device.allocate(storage.nbytes)
        self.bind(leaf, self._own[storage])
        return Span.whole(self._own[storage])

    def begin(self, targets: Sequence[Span]) -> None:
        """Before a run: where the new values that are not written in place go, in the order of `schedule.swapped`."""
        self._targets, self._committed = tuple(targets), []
        self._key = (self.device.setting, *self._addresses.values())
        self._commit_key = (*self._key, *(target.buffer.address for target in targets))

    @property
    def has_committed(self) -> bool:
        """Whether the state has the new values of the call that began last."""
        return bool(self._committed)

    def run(self, prepare: bool = True) -> None:
        """Run on the buffers that the leaves are bound to.

        Raises:
            IndexRangeError: a step met a user's error; then no state has been written.
        """
        self.settle()
        self._clear_flags()
        for stretch in self._stretches:
            if stretch.first >= self.n_prepared or prepare:
                self._issue(stretch)
        self._check_flags(0, self.commit_start)
        if self.schedule.swapped or self.commit_start < len(self.steps):
            self._commit.issue(self._commit_key, then=[self._mark])

    def settle(self) -> None:
        """Once, before anything runs: every plan of cuDNN is tried, and those that it refuses are replaced (`settling.py`)."""
        if not self._is_settled and settle(self.steps, self.schedule.target, self._try):
            self._stretches = [self._stretch(first, last) for first, last in self._runs()]
            self._commit.forget()
            self._bound_steps = {}
        self._is_settled = True

    def _try(self, position: int, plan: LaunchPlan) -> None:
        """Run a step as this plan, into its own result, or beside it where that is state."""
        step = self.steps[position]
        reserved = 0 if step.workspace is None else step.workspace.nbytes
        if plan.workspace_bytes > reserved:
            self._larger_workspaces[position] = self.device.allocate(plan.workspace_bytes)
        spans = self._spans(position, step, plan)
        if step.writes[0].storage.home.kind == "shared":
            spans[0] = replace(Span.whole(self.device.allocate(step.writes[0].storage.nbytes)), is_written=False)
        self.device.run(plan_actions(self.device, plan, spans))

    @property
    def _mark(self) -> Action:
        return partial(self._committed.append, True)

    def _issue(self, stretch: Stretch) -> None:
        if self.steps[stretch.first].kernel is None:
            self._run_reference(self.steps[stretch.first])
        else:
            stretch.issue(self._key)

    def launching(self) -> tuple[str, ...]:
        """How its launches are issued, for `explain()`."""
        kernels = [stretch for stretch in self._stretches if self.steps[stretch.first].kernel is not None]
        references = [f"step {stretch.first}: its reference" for stretch in self._stretches if stretch not in kernels]
        if self.commit_start < len(self.steps):
            kernels.append(self._commit)
        return (*(stretch.describe() for stretch in kernels), *references)

    def run_stepwise(self, around: Callable[[int, Callable[[], None]], None]) -> None:
        """Run every step by itself: `around(position, run)` is called in its place and calls `run()`. For checks; slow."""
        self.settle()
        self._clear_flags()
        for position in range(len(self.steps)):
            around(position, partial(self._run_one, position))

    def commit_copies(self) -> None:
        """After `run_stepwise`: the new values that were not written in place."""
        self.device.run([*self._commit_actions()[self._n_commit_launches():], self._mark])

    def _n_commit_launches(self) -> int:
        return len(self._step_actions(range(self.commit_start, len(self.steps))))

    def _run_one(self, position: int) -> None:
        if self.steps[position].kernel is None:
            self._run_reference(self.steps[position])
            return
        self.device.run(self._bound(position))
        self._check_flags(position, position + 1)

    def host_array(self, place: Place) -> Array:
        """A copy of a place's elements on the host."""
        self.device.synchronize()
        array = self.array(place)
        return np.array(array.get() if hasattr(array, "get") else array)

    def profile(self, prepare: bool, times: Array, waits: Array) -> None:
        """Run, waiting for every step; `times` gets the seconds of each, `waits` those in it that the host waited."""
        self.settle()
        self._clear_flags()
        for position in range(0 if prepare else self.n_prepared, self.commit_start):
            if self.steps[position].kernel is None:
                times[position] = self._reference_seconds(position)
                continue
            ((times[position], waits[position]),) = self.device.timed([self._bound(position)])
        self._check_flags(0, self.commit_start)
        late = [self._bound(position) for position in range(self.commit_start, len(self.steps))]
        copies = self._commit_actions()[sum(map(len, late)):]
        found = self.device.timed([*late, [*copies, self._mark]])
        for position, (seconds, waited) in enumerate(found[:-1], start=self.commit_start):
            times[position], waits[position] = seconds, waited

    def _reference_seconds(self, position: int) -> float:
        import time

        self.device.synchronize()
        start = time.perf_counter()
        self._run_one(position)
        self.device.synchronize()
        return time.perf_counter() - start

    def _bound(self, position: int) -> list[Action]:
        """The launches of one step, every pointer decided."""
        if self._bound_for != self._key:
            self._bound_steps, self._bound_for = {}, self._key
        if position not in self._bound_steps:
            step = self.steps[position]
            plan = step.kernel
            if not isinstance(plan, LaunchPlan):
                raise InternalError(f"step {position} ({step.name}) has a kernel for another device")
            self._bound_steps[position] = plan_actions(self.device, plan, self._spans(position, step, plan))
        return self._bound_steps[position]

    def _spans(self, position: int, step: Step, plan: LaunchPlan) -> dict[int, Span]:
        """What a step's launches may touch, by the numbers of their buffers."""
        spans = {number: self._operand(step, number) for number in range(len(step.writes) + len(step.reads))}
        flag = position * _FLAG_BYTES
        spans[ERROR_FLAG] = Span(self._flags, flag, flag + _FLAG_BYTES, flag, "the error flag", _FLAG_BYTES)
        workspace, offset = self._workspace(position, step)
        if workspace is not None:
            pieces = {WORKSPACE: (0, plan.workspace_bytes)}
            pieces.update({workspace_part(number): part for number, part in enumerate(plan.parts)})
            for number, (first, nbytes) in pieces.items():
                start = offset + first
                spans[number] = Span(workspace, start, start + nbytes, start, "the workspace", 1, False)
        return spans

    def _workspace(self, position: int, step: Step) -> tuple[Buffer | None, int]:
        """Where a step's workspace is: the memory, and its first byte."""
        if position in self._larger_workspaces:
            return self._larger_workspaces[position], 0
        return (None, 0) if step.workspace is None else (self._arena, step.workspace.home.offset)

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
        with self.device.here():
            arrays, targets = [self.array(place) for place in step.reads], [self.array(place) for place in step.writes]
            results = arrays[:1] if step.node is None else self._results_of(step, step.node, arrays)
            for target, result in zip(targets, results, strict=True):
                target[...] = result

    def _results_of(self, step: Step, node: Apply, arrays: Sequence[Any]) -> Sequence[Any]:
        act(node, arrays)
        with telling(step):
            results = self._reference_results(node, arrays)
        check_results(node, results)
        return results

    def _reference_results(self, node: Apply, arrays: Sequence[Any]) -> Sequence[Any]:
        """By the array module of the device; through the host where the reference asks for what that has not."""
        with np.errstate(all="ignore"):
            try:
                return node.op.reference(*arrays)
            except (TypeError, NotImplementedError, AttributeError) as error:
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

    def _clear_flags(self) -> None:
        if any(step.kernel is not None and step.kernel.errors for step in self.steps):
            self.device.run([self.device.clearing(Span.whole(self._flags))])

    def _check_flags(self, first: int, last: int) -> None:
        if not any(step.kernel is not None and step.kernel.errors for step in self.steps[first:last]):
            return
        flags = np.empty(len(self.steps), np.uint32)
        self.device.download(self._flags, flags)
        for position in np.flatnonzero(flags[first:last]) + first:
            raise self.error_of(int(position), int(flags[position]))


def _writes_state(step: Step) -> bool:
    return any(place.storage.home.kind == "shared" for place in step.writes)
