"""Elementwise kernels: a scalar program on every element of inputs with any strides, broadcast as NumPy does.

The C source holds the structure: the number of loops after joining, and for each input whether it is contiguous, repeated or
strided in the innermost loop.  Sizes and strides are run-time numbers, so that a new batch size compiles nothing.  An input
that runs along another axis than the output (a transposed one) is read through a small square tile.
"""
from __future__ import annotations

import struct
import sys
from collections.abc import Sequence

from .. import dtypes
from ..errors import InternalError
from ..graph import Op
from ..ops.elementwise import Elementwise
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.scalar import ScalarProgram, result_dtype, single
from ..target import Target
from .access import Accesses, product
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem
from .loops import LoopNest, broadcast_strides, collapse
from .scalar_printer import compute_type, load, print_program, program_cost, run_time_constants, storage_type, stored
from .templates import render_kernel

PARALLEL_ELEMENTS = 32768  # additions below which waking the other threads costs more than it saves
BLOCK = 4096  # elements of a long innermost loop that one turn takes
STREAM_BYTES = 40 << 20  # read and written in all: beyond, nothing of a result is left in the caches for who reads it next
STREAM_COST = 12  # additions for an element: kernels that compute more than this do not wait for memory
STREAM_PIECE = 512  # elements of a result that are computed in the first cache before they go to memory
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
        """Memory traffic."""
        nbytes = sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs))
        return target.copy_seconds(nbytes, working_set=nbytes)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel of the op's program."""
        return elementwise_kernel(program_of(problem.op, problem.inputs), problem.inputs, problem.outputs, target)


def copy_kernel(operand: Operand, target: Target) -> Kernel:
    """A kernel that copies an array with any strides into a contiguous one of the same shape."""
    program = ScalarProgram((operand.dtype,), (), (0,))
    return elementwise_kernel(program, (operand,), (Operand.contiguous(operand.dtype, operand.shape),), target)


def elementwise_kernel(program: ScalarProgram, inputs: Sequence[Operand], outputs: Sequence[Operand],
                       target: Target) -> Kernel:
    """The kernel of a program on inputs broadcast to the outputs' one shape."""
    shape = outputs[0].shape
    operands = (*outputs, *inputs)
    nest = collapse(shape, [broadcast_strides(operand, shape) for operand in operands])
    loops = _ElementwiseLoops(program, nest, tile_axis_of(nest, len(outputs), operands))
    context = loops.context(target)
    form = "_tiled" if loops.is_tiled else "_stream" if context["stream"] else ""
    name = f"sc_{label(program)}_{SUFFIXES[outputs[0].dtype]}_{nest.rank}d{form}"
    source = render_kernel("elementwise.c.j2", name=name, sizes=loops.accesses.names, **context)
    sizes = (*loops.accesses.values, *map(bits_of, loops.constants.values()))
    return Kernel(name, source, sizes, in_place=contiguous_pairs(inputs, outputs),
                  flops=nest.total * len(program.body), bytes=sum(operand.nbytes for operand in operands))


def bits_of(value: float) -> int:
    """A number as it stands among the sizes: the bits of a double.

    >>> bits_of(1.5) == 0x3FF8000000000000
    True
    """
    return int.from_bytes(struct.pack("=d", value), sys.byteorder, signed=True)


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


def tile_axis_of(nest: LoopNest, n_outputs: int, operands: Sequence[Operand]) -> int | None:
    """The loop along which inputs lie that are far apart in the innermost one; None where there is no such input."""
    for operand, strides in zip(operands[n_outputs:], nest.strides[n_outputs:], strict=True):
        if nest.rank < 2 or nest.sizes[-1] < 4 or abs(strides[-1]) * dtypes.itemsize(operand.dtype) < _LINE_BYTES // 2:
            continue
        near = [axis for axis in range(nest.rank - 1)
                if 0 < abs(strides[axis]) < abs(strides[-1]) and nest.sizes[axis] >= 4]
        if near:
            return min(near, key=lambda axis: abs(strides[axis]))
    return None


class _ElementwiseLoops:
    """The loops of one kernel, and from them everything that the template prints."""

    def __init__(self, program: ScalarProgram, nest: LoopNest, tile_axis: int | None) -> None:
        self.program = program
        self.constants = run_time_constants(program)
        self.is_tiled = tile_axis is not None
        if tile_axis is not None:
            order = [axis for axis in range(nest.rank - 1) if axis != tile_axis]
            nest = nest.reordered([*order, tile_axis, nest.rank - 1])
        self.nest = nest
        self.outer = list(range(nest.rank - (2 if self.is_tiled else 1)))
        self.n_outputs = len(program.outputs)
        self.reads = range(self.n_outputs, self.n_outputs + len(program.inputs))
        arrays = [f"out{number}" for number in range(self.n_outputs)] + [f"in{number}" for number in range(len(self.reads))]
        types = [*program.output_dtypes, *program.inputs]
        self.accesses = Accesses(nest, arrays, types, self.n_outputs, inner=[-2, -1] if self.is_tiled else [-1])
        self.transposed = [array for array in self.reads if self.is_tiled
                           and 0 < abs(nest.strides[array][-2]) < abs(nest.strides[array][-1])][:_MOST_TRANSPOSED]

    def context(self, target: Target) -> dict[str, object]:
        """What the template needs, but for the kernel's name and the names of the run-time numbers."""
        sizes = self.accesses.sizes
        before, body = self._statements()
        return {"summary": self._summary(), "declarations": self.accesses.declarations(), "before": before, "body": body,
                "numbers": [{"name": f"c{number}", "type": compute_type(self.program.dtypes[number])} for number in self.constants],
                "tile": self._tile() if self.is_tiled else None, "stream": self._stream(),
                "inner": sizes[-1], "total": " * ".join(sizes),
                "outer": [{"index": f"i{axis}", "size": sizes[axis]} for axis in self.outer],
                "block": "" if self.is_tiled else self.accesses.number("block", _block(self.nest, target)),
                "threshold": max(1024, PARALLEL_ELEMENTS // max(1, program_cost(self.program)))}

    def _stream(self) -> dict[str, object] | None:
        """How a large result is written past the caches; None where it is not."""
        dtype, items = self.accesses.dtypes[0], self.nest.total
        if self.nest.rank > 1 or self.n_outputs > 1 or dtype not in ("float32", "float64"):
            return None
        if program_cost(self.program) > STREAM_COST:
            return None
        full = [dtype for dtype, strides in zip(self.accesses.dtypes, self.nest.strides, strict=True) if strides[-1]]
        if items * sum(map(dtypes.itemsize, full)) < STREAM_BYTES:
            return None
        return {"piece": STREAM_PIECE, "type": storage_type(dtype), "suffix": SUFFIXES[dtype]}

    def _tile(self) -> dict[str, object]:
        """Rows and side of the tiles, and how the transposed inputs are read into them."""
        arrays = [{"type": storage_type(self.accesses.dtypes[array]), "name": self.accesses.arrays[array],
                   "row": product("row", self.accesses.steps[array][-2]),
                   "place": self.accesses.place(array, self._outer_indexes() | {self.nest.rank - 1: "i"})}
                  for array in self.transposed]
        return {"rows": self.accesses.sizes[-2], "side": 64 if len(arrays) <= 2 else 32, "transposed": arrays}

    def _outer_indexes(self) -> dict[int, str]:
        return {axis: f"i{axis}" for axis in self.outer}

    def _statements(self) -> tuple[list[str], list[str]]:
        """Lines before the innermost loop (row pointers, values that stay the same) and lines of its body."""
        indexes = self._outer_indexes() | ({self.nest.rank - 2: "row"} if self.is_tiled else {})
        direct = [array for array in range(len(self.accesses.arrays)) if array not in self.transposed]
        before = [self.accesses.row(array, indexes) for array in direct]
        body: list[str] = []
        for array in self.reads:
            if array in self.transposed:
                body.append(self._from_tile(array))
            else:
                (before if self.accesses.is_repeated(array) else body).append(self.accesses.reading(array, "i"))
        printed = print_program(self.program, [f"x{number}" for number in range(len(self.reads))],
                                constants={number: f"c{number}" for number in self.constants})
        target = "values[i - piece]" if self._stream() else "out{}_row[i]"
        writes = [f"{target.format(number)} = {stored(dtype, value)};"
                  for number, (dtype, value) in enumerate(zip(self.program.output_dtypes, printed.outputs, strict=True))]
        return before, [*body, *printed.lines, *writes]

    def _from_tile(self, array: int) -> str:
        dtype = self.accesses.dtypes[array]
        value = load(dtype, f"{self.accesses.arrays[array]}_tile[row - row_start][i - start]")
        return f"const {compute_type(dtype)} x{array - self.n_outputs} = {value};"

    def _summary(self) -> str:
        """The problem in one line, without sizes."""
        kinds = [f"{name} {dtype} {self._kind(array)}" for array, (name, dtype)
                 in enumerate(zip(self.accesses.arrays[:12], self.accesses.dtypes, strict=False))]
        text = self._program_text() if 0 < len(self.program.body) <= 12 else label(self.program)
        return f"{text}   [{', '.join(kinds)}{', …' if len(self.accesses.arrays) > 12 else ''}]"

    def _program_text(self) -> str:
        """The program, its run-time numbers by their names."""
        first = len(self.program.inputs)
        lines = [f"v{number} = {f'c{number}:{step.dtype}' if number in self.constants else step}"
                 for number, step in enumerate(self.program.body, first)]
        return "; ".join(lines) + " -> " + ", ".join(f"v{number}" for number in self.program.outputs)

    def _kind(self, array: int) -> str:
        if array in self.transposed:
            return "transposed"
        return {0: "repeated", 1: "contiguous"}.get(self.nest.strides[array][-1], "strided")


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
