"""Elementwise kernels: a scalar program on every element of inputs with any strides, broadcast as NumPy does.

The C source holds the structure: the number of loops after joining, and for each input whether it is contiguous, repeated or
strided in the innermost loop.  Sizes and strides are run-time numbers, so that a new batch size compiles nothing.  An input
that runs along another axis than the output (a transposed one) is read through a small square tile.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .. import dtypes
from ..errors import InternalError
from ..graph import Op
from ..ops.elementwise import Elementwise
from ..ops.fused import FusedElementwise
from ..ops.scalar import ScalarProgram, result_dtype, single
from ..target import Target
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem
from .loops import LoopNest, broadcast_strides, collapse
from .scalar_printer import load, print_program, program_cost, storage_type, stored
from .templates import render_kernel

PARALLEL_ELEMENTS = 32768  # additions below which waking the other threads costs more than it saves
BLOCK = 4096  # elements of a long innermost loop that one turn takes
TILE_SIDE = 32
_LINE_BYTES = 64
_MOST_TRANSPOSED = 16


def program_of(op: Op, inputs: Sequence[Operand]) -> ScalarProgram:
    """The scalar program that an elementwise op runs on inputs of these dtypes."""
    if isinstance(op, FusedElementwise):
        return op.program
    if not isinstance(op, Elementwise):
        raise InternalError(f"{op} is not elementwise")
    arguments = tuple(operand.dtype for operand in inputs)
    return single(op.scalar, arguments, result_dtype(op.scalar, arguments, op.dtype))


class GeneratedElementwise(Implementation):
    """Loops in C over any strides."""

    name = "elementwise_c"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Refuses outputs of different shapes."""
        shapes = {operand.shape for operand in problem.outputs}
        return None if len(shapes) == 1 else "its outputs differ in shape"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """All inputs may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic at 5 GB/s for each thread."""
        return sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs)) / (5e9 * max(1, target.threads))

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel of the op's program."""
        return elementwise_kernel(program_of(problem.op, problem.inputs), problem.inputs, problem.outputs, target)


def copy_kernel(operand: Operand, target: Target) -> Kernel:
    """A kernel that copies an array with any strides into a contiguous one of the same shape."""
    program = ScalarProgram((operand.dtype,), (), (0,))
    return elementwise_kernel(program, (operand,), (Operand.contiguous(operand.dtype, operand.shape),), target)


def elementwise_kernel(program: ScalarProgram, inputs: Sequence[Operand], outputs: Sequence[Operand], target: Target) -> Kernel:
    """The kernel of a program on inputs broadcast to the outputs' one shape."""
    shape = outputs[0].shape
    nest = collapse(shape, [broadcast_strides(operand, shape) for operand in (*outputs, *inputs)])
    layout = _Layout(program, nest, len(outputs), _tile_axis(nest, len(outputs), [*outputs, *inputs]))
    text = layout.context(target)
    name = f"sc_{label(program)}_{SUFFIXES[outputs[0].dtype]}_{nest.rank}d{'_tiled' if layout.tile_axis is not None else ''}"
    return Kernel(name, render_kernel("elementwise.c.j2", name=name, **text), sizes=layout.numbers,
                  in_place=contiguous_pairs(inputs, outputs), flops=nest.total * len(program.body),
                  bytes=sum(operand.nbytes for operand in (*inputs, *outputs)))


def label(program: ScalarProgram) -> str:
    """A short name for a program: its operations, abbreviated where there are many."""
    names = [step.op.rstrip("_") for step in program.body if step.op != "constant"]
    if len(names) > 4:
        return "_".join([*names[:3], f"and_{len(names) - 3}_more"])
    return "_".join(names) or "copy"


def contiguous_pairs(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> tuple[tuple[int, int], ...]:
    """Pairs that may share memory: every element is read in the same turn in which it is overwritten."""
    return tuple((result, position) for result, output in enumerate(outputs) for position, operand in enumerate(inputs)
                 if operand.is_contiguous and operand.shape == output.shape
                 and dtypes.itemsize(operand.dtype) == dtypes.itemsize(output.dtype))


def _tile_axis(nest: LoopNest, n_outputs: int, operands: Sequence[Operand]) -> int | None:
    """The loop along which inputs lie that are far apart in the innermost one; None where there is no such input."""
    for operand, strides in zip(operands[n_outputs:], nest.strides[n_outputs:], strict=True):
        if nest.rank < 2 or nest.sizes[-1] < 4 or abs(strides[-1]) * dtypes.itemsize(operand.dtype) < _LINE_BYTES // 2:
            continue
        near = [axis for axis in range(nest.rank - 1)
                if 0 < abs(strides[axis]) < abs(strides[-1]) and nest.sizes[axis] >= 4]
        if near:
            return min(near, key=lambda axis: abs(strides[axis]))
    return None


@dataclass
class _Layout:
    """The loops of one kernel with everything the template prints."""

    program: ScalarProgram
    nest: LoopNest
    n_outputs: int
    tile_axis: int | None
    names: list[str] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.tile_axis is not None:
            order = [axis for axis in range(self.nest.rank - 1) if axis != self.tile_axis]
            self.nest = self.nest.reordered([*order, self.tile_axis, self.nest.rank - 1])
        self.outer_rank = self.nest.rank - (1 if self.tile_axis is None else 2)
        n_inputs = len(self.program.inputs)
        self.arrays = ([f"out{number}" for number in range(self.n_outputs)] + [f"in{number}" for number in range(n_inputs)])
        self.types = [*self.program.output_dtypes, *self.program.inputs]
        self.transposed = self._transposed()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The run-time numbers, in the order of their names."""
        return tuple(self.values)

    def number(self, name: str, value: int) -> str:
        """A run-time number: its name in C."""
        self.names.append(name)
        self.values.append(value)
        return name

    def context(self, target: Target) -> dict[str, object]:
        """What the template needs."""
        sizes = [self.number(f"n{axis}", size) for axis, size in enumerate(self.nest.sizes)]
        steps = [[self._step(array, axis) for axis in range(self.nest.rank)] for array in range(len(self.arrays))]
        tile = None if self.tile_axis is None else {"rows": sizes[-2], "side": TILE_SIDE,
                                                    "transposed": [self._tiled(array, steps[array]) for array in self.transposed]}
        before, body = self._statements(steps)
        return {"summary": self._summary(), "arrays": self._declarations(), "tile": tile, "before": before, "body": body,
                "outer": [{"index": f"i{axis}", "size": sizes[axis]} for axis in range(self.outer_rank)],
                "inner": sizes[-1], "total": " * ".join(sizes),
                "threshold": max(1024, PARALLEL_ELEMENTS // max(1, program_cost(self.program))),
                "block": self.number("block", _block(self.nest, target)) if tile is None else "",
                "sizes": self.names}

    def _transposed(self) -> list[int]:
        """Arrays that are read through a tile."""
        if self.tile_axis is None:
            return []
        found = [number for number in range(self.n_outputs, len(self.arrays))
                 if 0 < abs(self.nest.strides[number][-2]) < abs(self.nest.strides[number][-1])]
        return found[:_MOST_TRANSPOSED]

    def _step(self, array: int, axis: int) -> str:
        """The C name of a stride; "" for 0 and "1" for 1 in the two innermost loops, which the source knows."""
        stride = self.nest.strides[array][axis]
        if stride == 0:
            return ""
        if stride == 1 and axis >= self.outer_rank:
            return "1"
        return self.number(f"{self.arrays[array]}_s{axis}", stride)

    def _declarations(self) -> list[dict[str, str]]:
        return [{"declaration": f"{'' if number < self.n_outputs else 'const '}{storage_type(dtype)} *const {name}"}
                for number, (name, dtype) in enumerate(zip(self.arrays, self.types, strict=True))]

    def _place(self, array: int, steps: Sequence[str], row: str = "") -> str:
        """C expression of where an array's row starts."""
        terms = [_product(f"i{axis}", steps[axis]) for axis in range(self.outer_rank)]
        terms.append(_product(row, steps[-2]) if row else "")
        return " + ".join([self.arrays[array], *filter(None, terms)])

    def _tiled(self, array: int, steps: Sequence[str]) -> dict[str, str]:
        return {"type": storage_type(self.types[array]), "name": self.arrays[array], "row_stride": steps[-2],
                "place": f"{self._place(array, steps)} + {_product('i', steps[-1])}"}

    def _statements(self, steps: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
        """Lines before the innermost loop (row pointers, values that stay the same) and lines of its body."""
        before, body, row = [], [], "row" if self.tile_axis is not None else ""
        for array, name in enumerate(self.arrays):
            if array in self.transposed:
                continue
            const = "" if array < self.n_outputs else "const "
            before.append(f"{const}{storage_type(self.types[array])} *const {name}_row = {self._place(array, steps[array], row)};")
        for array in range(self.n_outputs, len(self.arrays)):
            once, line = self._loading(array, steps[array][-1])
            (before if once else body).append(line)
        printed = print_program(self.program, [f"x{number}" for number in range(len(self.program.inputs))])
        body += printed.lines
        body += [f"out{number}_row[i] = {stored(dtype, value)};"
                 for number, (dtype, value) in enumerate(zip(self.program.output_dtypes, printed.outputs, strict=True))]
        return before, body

    def _loading(self, array: int, step: str) -> tuple[bool, str]:
        """Whether an input is read once for a row, and the line that reads it."""
        name, dtype = self.arrays[array], self.types[array]
        if array in self.transposed:
            place = f"{name}_tile[row - row_start][i - start]"
        else:
            place = f"{name}_row[{_product('i', step) or '0'}]"
        value = load(dtype, place)
        c_type = "float" if dtype in ("float16", "bfloat16") else storage_type(dtype)
        return not step and array not in self.transposed, f"const {c_type} x{array - self.n_outputs} = {value};"

    def _summary(self) -> str:
        """The problem in one line."""
        kinds = [f"{name} {dtype} {self._kind(array)}"
                 for array, (name, dtype) in enumerate(zip(self.arrays, self.types, strict=True))]
        text = str(self.program) if len(self.program.body) <= 12 else label(self.program)
        return f"{text or 'copy'}   [{', '.join(kinds[:12])}{', …' if len(kinds) > 12 else ''}]"

    def _kind(self, array: int) -> str:
        strides = self.nest.strides[array]
        if array in self.transposed:
            return "transposed"
        return {0: "repeated", 1: "contiguous"}.get(strides[-1], "strided")


def _product(index: str, step: str) -> str:
    return "" if not step else index if step == "1" else f"{index} * {step}"


def _block(nest: LoopNest, target: Target) -> int:
    """How many elements of the innermost loop one turn takes, so that the turns divide evenly among the threads."""
    inner = nest.sizes[-1]
    if inner <= BLOCK:
        return max(inner, 1)
    turns = -(-inner // BLOCK)
    turns += -turns % max(1, target.threads)
    return -(-inner // turns // 64) * 64


_GENERATED = (GeneratedElementwise(),)
IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {Elementwise: _GENERATED, FusedElementwise: _GENERATED}
