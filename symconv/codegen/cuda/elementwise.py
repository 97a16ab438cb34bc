"""Elementwise kernels for CUDA: a scalar program on every element of inputs with any strides, broadcast as NumPy does.

A thread computes as many neighbouring elements of the result as fill 16 bytes of the widest operand.  Inputs that are
contiguous there are read in one access where their address allows it (which is asked at run time), the others element by
element.  Sizes and strides are run-time numbers, 32-bit ones where every place can be counted so.
"""
from __future__ import annotations

from collections.abc import Sequence

from ... import dtypes
from ...graph import Op
from ...ops.elementwise import Elementwise
from ...ops.lowered.fused_elementwise import FusedElementwise
from ...ops.scalar import ScalarProgram
from ...target import Target
from ..elementwise import contiguous_pairs, program_of, tile_axis_of
from ..implementation import AnyImplementation
from ..kernel import Operand, Problem
from ..loops import LoopNest, broadcast_strides, collapse
from ..scalar_printer import storage_type
from .elementwise_tiled import tiled_kernel
from .kernel import CudaImplementation, CudaKernel, LaunchPlan
from .looping import THREADS, Loops
from .printing import render_cuda

_VECTOR_BYTES = 16
_WIDEST = 8  # elements of one thread, for kernels with few operands
_PARAMETER_BYTES = 4000  # CUDA allows 4096 for all arguments of a kernel
_LAUNCH_SECONDS = 3e-6


class CudaElementwise(CudaImplementation):
    """One thread for each few elements, over any strides."""

    name = "elementwise_cuda"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Refuses outputs of different shapes, and more operands than the arguments of a kernel can name."""
        if len({operand.shape for operand in problem.outputs}) != 1:
            return "its outputs differ in shape"
        rank = len(problem.outputs[0].shape)
        needed = 8 * (len(problem.inputs) * (1 + rank) + len(problem.outputs) + rank + 1)
        return f"its arguments may need {needed} bytes, of which CUDA allows 4096" if needed > _PARAMETER_BYTES else None

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """All inputs may have any strides."""
        return True

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic at the target's copy rate, and a launch."""
        return _LAUNCH_SECONDS + target.copy_seconds(sum(operand.nbytes for operand in (*problem.inputs, *problem.outputs)))

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """The launch of the op's program."""
        return elementwise_plan(program_of(problem.op, problem.inputs), problem.inputs, problem.outputs)


def elementwise_plan(program: ScalarProgram, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> LaunchPlan:
    """The launch of a program on inputs broadcast to the outputs' one shape; none for outputs without elements."""
    operands = (*outputs, *inputs)
    if outputs[0].size == 0:
        return LaunchPlan(())
    nest = collapse(outputs[0].shape, [broadcast_strides(operand, outputs[0].shape) for operand in operands])
    tile_axis = tile_axis_of(nest, len(outputs), operands)
    kernel = _Elementwise(program, nest).kernel() if tile_axis is None else tiled_kernel(program, nest, tile_axis)
    return LaunchPlan((kernel,), in_place=contiguous_pairs(inputs, outputs), flops=nest.total * len(program.body),
                      bytes=sum(operand.nbytes for operand in operands))


def copy_plan(operand: Operand) -> LaunchPlan:
    """A launch that copies an array with any strides into a contiguous one of the same shape."""
    result = Operand.contiguous(operand.dtype, operand.shape)
    return elementwise_plan(ScalarProgram((operand.dtype,), (), (0,)), (operand,), (result,))


class _Elementwise(Loops):
    """One kernel in the making."""

    def __init__(self, program: ScalarProgram, nest: LoopNest) -> None:
        super().__init__(program, nest)
        self.width = self._width()

    def kernel(self) -> CudaKernel:
        """The launch."""
        n_vectors = -(-self.nest.total // self.width)
        name = self.name(f"v{self.width}")
        source = render_cuda("elementwise.cu.j2", name=name, **self._context())
        return CudaKernel(name, source, (-(-n_vectors // THREADS), 1, 1), (THREADS, 1, 1), tuple(range(len(self.types))),
                          self.scalars(self.nest.total))

    def _width(self) -> int:
        """Elements of one thread: 16 bytes of the widest operand, fewer for many operands; rows are whole multiples of it."""
        widest = max(dtypes.itemsize(dtype) for dtype in self.types)
        width = min(_VECTOR_BYTES // widest, _WIDEST if len(self.types) <= 4 else 4 if len(self.types) <= 12 else 2)
        while self.nest.rank > 1 and self.nest.sizes[-1] % width:
            width //= 2
        return width

    def _context(self) -> dict[str, object]:
        sizes, printed = self.accesses.sizes, self.printed()
        results = [{"number": number, "type": type_, "value": value} for number, type_, value in self.stores(printed)]
        outer = [{"index": f"i{axis}", "size": sizes[axis]} for axis in reversed(range(self.nest.rank - 1))]
        return {"summary": self.summary({0: "repeated", 1: "contiguous"}), "parameters": self.parameters("total"),
                "index": self.index, "unsigned": f"u{self.index}", "outer": outer, "inner": sizes[-1], "width": self.width,
                "threads": THREADS, "reads": [line for array in self.reads for line in self._read(array)],
                "body": [*(self.value(array, self._held(array)) for array in self.reads), *printed.lines], "results": results}

    def _place(self, array: int, with_inner: bool) -> str:
        indexes = {axis: f"i{axis}" for axis in range(self.nest.rank - 1)} | ({self.nest.rank - 1: "i"} if with_inner else {})
        return self.accesses.place(array, indexes)

    def _read(self, array: int) -> list[str]:
        """The lines that read an input: one value, or as many as the thread computes."""
        number, type_ = array - self.n_outputs, storage_type(self.types[array])
        step = self.accesses.steps[array][-1]
        if not step:
            return [f"const {type_} s{number} = ({self._place(array, False)})[0];"]
        vector = f"const sc_vector<{type_}, {self.width}> v{number}"
        if step != "1":
            return [f"{vector} = sc_load_strided<{self.width}>({self._place(array, True)}, {step}, count);"]
        return [f"{vector} = sc_load_vector<{self.width}>({self._place(array, True)}, count, {self._aligned(array)});"]

    def _aligned(self, array: int) -> str:
        """Whether an input can be read in one access: decided by its address where its strides keep it aligned."""
        if any(stride % self.width for stride in self.nest.strides[array][:-1]):
            return "false"
        bytes_ = self.width * dtypes.itemsize(self.types[array])
        return f"sc_is_aligned({self.accesses.arrays[array]}, {bytes_})"

    def _held(self, array: int) -> str:
        number = array - self.n_outputs
        return f"v{number}.values[lane]" if self.accesses.steps[array][-1] else f"s{number}"


_GENERATED = (CudaElementwise(),)
IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {Elementwise: _GENERATED, FusedElementwise: _GENERATED}
