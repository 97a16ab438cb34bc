"""Runs that watch themselves: `mode="debug"` and `mode="nan_guard"`.

debug: both sides of every rewrite are evaluated with the NumPy references on the call's own arguments and compared; then every step
runs by itself, its results are compared with its op's reference on what it read, and no byte outside its results may change.
nan_guard: after every step its results are looked at.  Both are slow, and leave state as it was when they raise.  On a device with
memory of its own values are fetched after each step; its memory is guarded by nothing but the emulator.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..config import config
from ..errors import InternalError, NumericalError, WrongKernelError, WrongRewriteError, explain_error
from ..graph import Constant, Variable
from ..rewrites.log import Application, Log, expression_text
from .differences import difference, is_strange, nudged, strange_text
from .interpret import leaf_value, run_reference
from .planned import PlannedProgram
from .program import Program
from .run_errors import limited, step_lines
from .step import Place, Step

Array = np.ndarray[Any, Any]
Values = dict[Variable, Array]
NUDGES = 4     # ways in which inputs are moved by rounding, where a difference was found
_GUARD_BYTES = 256  # around every result: nothing may write there


def check_rewrites(log: Log, bindings: Values) -> None:
    """Evaluate both sides of every rewrite of a log on these values of the leaves.

    Raises:
        WrongRewriteError: they differ where the first side is finite (a rewrite may be finite where the original was not).
    """
    values = dict(bindings)
    for application in log.applications:
        for before, after in zip(application.before, application.after, strict=True):
            fill(values, (before, after))
            wanted, result = leaf_value(before, values), leaf_value(after, values)
            found = difference(wanted, result, only_finite=True)
            if found is not None:
                found = difference(wanted, result, True, [_evaluated(before, bindings, number) for number in range(NUDGES)])
            if found is not None:
                raise WrongRewriteError(_rewrite_text(application, before, after, found))


def _rewrite_text(application: Application, before: Variable, after: Variable, found: str) -> str:
    return explain_error(f"the rewrite {application.rule} (phase {application.phase}) changes a value",
                         f"{found}\n  before: {expression_text(before)}\n  after: {expression_text(after)}",
                         f"this is a bug of symconv; until it is mended, compile with mode=Mode(…).excluding({application.rule!r})",
                         application.sources)


def _evaluated(variable: Variable, bindings: Values, number: int) -> Array:
    """A variable's value for leaves that are moved by rounding."""
    values = {leaf: nudged(array, number) for leaf, array in bindings.items()}
    fill(values, (variable,))
    return leaf_value(variable, values)


def fill(values: Values, wanted: Iterable[Variable]) -> None:
    """Compute what is missing of the wanted variables with the references, and keep what is met on the way."""
    stack = [variable for variable in wanted if variable not in values]
    while stack:
        variable = stack[-1]
        node = variable.apply
        if variable in values or node is None:
            stack.pop()
            continue
        missing = [each for each in node.inputs if each not in values and each.apply is not None]
        if missing:
            stack += missing
            continue
        stack.pop()
        results = run_reference(node, [leaf_value(each, values) for each in node.inputs])
        values.update(zip(node.outputs, results, strict=True))


class Watch:
    """What looks at every step of one run of a program, on whatever device: `step(position, run)` stands in a step's place.

    `read` gives a place as a host array; `blocks` the memory that no step may change outside its results, by name (nothing where a
    device guards its own).
    """

    def __init__(self, program: PlannedProgram, check: str, values: Values, read: Callable[[Place], Array]) -> None:
        self.program, self.values, self.read = program, values, read
        self.step = self._check_step if check == "debug" else self._look_at_step
        if check == "nan_guard":
            self._look_at_leaves()

    def blocks(self) -> dict[str, Array]:
        """Nothing is guarded."""
        return {}

    def check_memory(self, step: Step, position: int, before: dict[str, Array]) -> None:
        """Nothing is guarded."""

    def _check_step(self, position: int, run: Callable[[], None]) -> None:
        step = self.program.steps[position]
        wanted = self._wanted(step)
        before = {name: block.copy() for name, block in self.blocks().items()}
        run()
        self.check_memory(step, position, before)
        found = [np.array(self.read(place)) for place in step.writes]
        for number, (result, reference) in enumerate(zip(found, wanted, strict=False)):
            text = difference(reference, result) and self._difference(step, number, reference, result)
            if text is not None:
                raise WrongKernelError(_kernel_text(step, position, number, text))
        self._keep(step, found)

    def _wanted(self, step: Step) -> Sequence[Array]:
        """What the step's results should be; nothing is known of a step that brings an input into another form."""
        if step.node is None:
            return ()
        fill(self.values, step.node.inputs)
        return run_reference(step.node, [leaf_value(each, self.values) for each in step.node.inputs])

    def _difference(self, step: Step, number: int, wanted: Array, found: Array) -> str | None:
        """The same once more, with what rounding of the inputs changes.

        Winograd's form and Fourier transforms spread NaN and infinities over tiles.
        """
        if step.node is None:
            return None
        inputs = [leaf_value(each, self.values) for each in step.node.inputs]
        if any(word in step.name for word in ("winograd", "_fft_")) and not all(np.isfinite(each).all() for each in inputs):
            found = np.where(np.isfinite(found), found, wanted)
        nearby = [run_reference(step.node, [nudged(each, way) for each in inputs])[number] for way in range(NUDGES)]
        return difference(wanted, found, nearby=nearby)

    def _keep(self, step: Step, found: Sequence[Array]) -> None:
        if step.node is not None:
            self.values.update(zip(step.node.outputs, found, strict=True))

    def _look_at_leaves(self) -> None:
        for leaf, array in self.values.items():
            if is_strange(array, config.nan_guard_limit):
                text = strange_text(array, config.nan_guard_limit)
                raise NumericalError(explain_error(f"{leaf.label!r} holds {text} before the call",
                                                   do="look at where this value comes from", where=leaf.source))

    def _look_at_step(self, position: int, run: Callable[[], None]) -> None:
        run()
        step = self.program.steps[position]
        if step.node is None:
            return
        for number, place in enumerate(step.writes):
            array = self.read(place)
            if is_strange(array, config.nan_guard_limit):
                raise NumericalError(_chain_text(step, position, number, array))


class CheckedRun(Watch):
    """One watched run of a program on the CPU, on arrays of its leaves; no byte outside a step's results may change."""

    def __init__(self, program: Program, arrays: Sequence[Array], check: str) -> None:
        self.cpu_program, self.arrays = program, list(arrays)
        self.padded, self.results = _guarded_results(program)
        super().__init__(program, check, {leaf: np.array(array) for leaf, array in zip(program.leaves, arrays, strict=True)},
                         program.array)

    def run(self, results: Sequence[Array], done: list[bool]) -> None:
        """Fill the results; `done` gets an element at the end. What is raised before leaves the leaves as they were."""
        before = [np.array(array) for array in self.arrays]
        try:
            self.cpu_program.run_stepwise(self.arrays[:len(self.program.inputs)], self.results, self.step)
            for result, found in zip(results, self.results, strict=True):
                result[...] = found
            done.append(True)
        except BaseException:
            if not done:
                _put_back(self.arrays, before)
            raise

    def blocks(self) -> dict[str, Array]:
        """The program's memory, the leaves, and the results with guard bytes around them."""
        blocks = self.cpu_program.memory_blocks()
        blocks.update({f"the memory of {leaf.label}": _bytes(array)
                       for leaf, array in zip(self.program.leaves, self.arrays, strict=True)})
        blocks.update({f"result {number} and its surroundings": padded for number, padded in enumerate(self.padded)})
        return blocks

    def check_memory(self, step: Step, position: int, before: dict[str, Array]) -> None:
        """Only the step's results and its workspace may have changed."""
        blocks = self.blocks()
        may_change = {name: np.zeros(block.size, bool) for name, block in blocks.items()}
        spans = [_span(self.cpu_program.array(place)) for place in step.writes]
        if step.workspace is not None and step.kernel is not None:
            start = self.cpu_program.arena_address + step.workspace.home.offset
            spans.append((start, start + step.kernel.workspace_bytes))
        for name, block in blocks.items():
            first = block.ctypes.data
            for start, stop in spans:
                may_change[name][max(0, start - first):max(0, stop - first)] = True
            wrong = np.flatnonzero((block != before[name]) & ~may_change[name])
            if len(wrong):
                found = f"it wrote outside its results: {len(wrong)} bytes of {name}, the first at byte {wrong[0]}"
                raise WrongKernelError(_kernel_text(step, position, None, found))


def _chain_text(step: Step, position: int, number: int, array: Array) -> str:
    node = step.node
    if node is None:
        raise InternalError("a step without a node makes no values")
    inputs = "; ".join(f"{variable.label} = {expression_text(variable, 3)}" for variable in node.inputs
                       if not isinstance(variable, Constant))
    text = strange_text(array, config.nan_guard_limit)
    found = f"{expression_text(node.outputs[number], 4)}\n  read: {inputs}\n  " + "\n".join(step_lines(step))
    return limited(explain_error(f"step {position} ({step.name}) gives {text} in its result {number}", found,
                                 "its inputs were free of such values: look at this operation", node.source))


def _kernel_text(step: Step, position: int, number: int | None, found: str) -> str:
    what = f"step {position} ({step.name})" + ("" if number is None else f", result {number},")
    name = step.choice.name if step.choice is not None else "a copy"
    verb = "is wrong" if number is None else "differs from the NumPy reference"
    node = "" if step.node is None else f"\n  node: {expression_text(step.node.outputs[0])}"
    reads = ", ".join(f"{place.operand.dtype}{list(place.operand.shape)} strides {list(place.operand.strides)}"
                      for place in step.reads)
    return explain_error(f"{what} {verb} (implementation {name})", f"{found}{node}\n  inputs: {reads}",
                         "this is a bug of symconv: please report it", () if step.node is None else step.node.source)


def _guarded_results(program: Program) -> tuple[list[Array], list[Array]]:
    """Memory for the results with guard bytes around each: all of it as bytes, and the arrays within."""
    padded, results = [], []
    for place in program.result_places():
        memory = np.full(place.operand.nbytes + 2 * _GUARD_BYTES + 64, 0xA5, np.uint8)
        start = _GUARD_BYTES + -(memory.ctypes.data + _GUARD_BYTES) % 64
        array = memory[start:start + place.operand.nbytes].view(dtypes.numpy_dtype(place.operand.dtype))
        padded.append(memory)
        results.append(array.reshape(place.operand.shape))
    return padded, results


def _put_back(arrays: Sequence[Array], before: Sequence[Array]) -> None:
    for array, old in zip(arrays, before, strict=True):
        if array.flags.writeable:
            array[...] = old


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _span(array: Array) -> tuple[int, int]:
    """The address of an array's first byte, and of the one after its last."""
    first = last = int(array.ctypes.data)
    if array.size == 0:
        return first, first
    for size, stride in zip(array.shape, array.strides, strict=True):
        first += min(0, (size - 1) * stride)
        last += max(0, (size - 1) * stride)
    return first, last + array.itemsize
