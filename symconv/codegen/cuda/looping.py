"""What kernels with a thread for each element share, and those over a loop nest, whichever thread computes what."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...ops.scalar import ScalarProgram
from ..access import Accesses
from ..elementwise import label
from ..helpers import SUFFIXES
from ..loops import LoopNest
from ..scalar_printer import PrintedProgram, compute_type, load, run_time_constants, storage_type, stored
from .kernel import CudaKernel, Scalar
from .printing import print_cuda_program

THREADS = 256
MOST_BLOCKS = 1 << 16


def count_blocks(elements: int) -> int:
    """Blocks of THREADS threads that go through the elements; with more than fit a grid, each takes several."""
    return max(1, min(-(-elements // THREADS), MOST_BLOCKS))


def int64_scalars(numbers: Iterable[int]) -> tuple[Scalar, ...]:
    """Numbers passed by value as int64."""
    return tuple(Scalar("int64", number) for number in numbers)


def flat_rows(*rows: Sequence[int]) -> list[int]:
    """The numbers of each axis together: its size, and what a step along it counts in each array."""
    return [number for each in zip(*rows, strict=True) for number in each]


def element_kernel(name: str, source: str, elements: int, buffers: tuple[int, ...], numbers: Iterable[int]) -> CudaKernel:
    """A launch with a thread for each element, of a kernel that takes its numbers as int64."""
    return CudaKernel(name, source, (count_blocks(elements), 1, 1), (THREADS, 1, 1), buffers, int64_scalars(numbers))


def index_type(nest: LoopNest, slack: int = 1 << 16) -> str:
    """int32_t where every element and every place that a thread may look at is counted by it, else int64_t."""
    reach = max(sum(abs(stride) * (size - 1) for stride, size in zip(each, nest.sizes, strict=True)) for each in nest.strides)
    return "int32_t" if max(reach, nest.total) + slack < 2**31 else "int64_t"


class Loops:
    """What kernels over one loop nest share: arrays, run-time numbers, how inputs become values and values results."""

    def __init__(self, program: ScalarProgram, nest: LoopNest, inner: Sequence[int] = (-1,)) -> None:
        self.program, self.nest = program, nest
        self.n_outputs = len(program.outputs)
        self.types = [*program.output_dtypes, *program.inputs]
        names = [f"out{number}" for number in range(self.n_outputs)] + [f"in{number}" for number in range(len(program.inputs))]
        self.accesses = Accesses(nest, names, self.types, self.n_outputs, inner=inner)
        self.index = index_type(nest)
        self.constants = run_time_constants(program)

    @property
    def reads(self) -> range:
        """The arrays that are inputs."""
        return range(self.n_outputs, len(self.types))

    def name(self, ending: str) -> str:
        """The kernel's name: what it computes, of which dtype, and how."""
        return (f"sc_{label(self.program)}_{SUFFIXES[self.types[0]]}_{self.nest.rank}d_{ending}"
                f"{'_long' if self.index == 'int64_t' else ''}")

    def parameters(self, *more: str) -> list[str]:
        """The kernel's parameters: pointers, sizes and strides, `more` sizes, constants of the program."""
        pointers = [f"sc_global<{'' if array < self.n_outputs else 'const '}{storage_type(dtype)}> {self.accesses.arrays[array]}"
                    for array, dtype in enumerate(self.types)]
        constants = [f"{compute_type(self.program.dtypes[number])} c{number}" for number in self.constants]
        return [*pointers, *(f"{self.index} {name}" for name in (*self.accesses.names, *more)), *constants]

    def scalars(self, *more: int) -> tuple[Scalar, ...]:
        """The values of the parameters behind the pointers."""
        sizes = [Scalar(self.index[:-2], value) for value in (*self.accesses.values, *more)]
        return (*sizes, *(Scalar(self.program.dtypes[number], value) for number, value in self.constants.items()))

    def printed(self) -> PrintedProgram:
        """The program over the values x0, x1, …"""
        names = [f"x{number}" for number in range(len(self.program.inputs))]
        return print_cuda_program(self.program, names, constants={number: f"c{number}" for number in self.constants})

    def stores(self, printed: PrintedProgram) -> list[tuple[int, str, str]]:
        """For each result its number, the type of its elements, and the value as it is put in memory."""
        return [(number, storage_type(dtype), stored(dtype, value))
                for number, (dtype, value) in enumerate(zip(self.program.output_dtypes, printed.outputs, strict=True))]

    def value(self, array: int, place: str) -> str:
        """The line that makes an input's value of an element in memory or in a register."""
        dtype = self.types[array]
        return f"const {compute_type(dtype)} x{array - self.n_outputs} = {load(dtype, place)};"

    def summary(self, kinds: Mapping[int, str]) -> str:
        """The problem in one line, without sizes; `kinds` names the innermost strides."""
        text = str(self.program) if 0 < len(self.program.body) <= 12 and not self.constants else label(self.program)
        arrays = [f"{name} {dtype} {kinds.get(strides[-1], 'strided')}" for name, dtype, strides
                  in zip(self.accesses.arrays[:12], self.types, self.nest.strides, strict=False)]
        return f"{text}   [{', '.join(arrays)}{', …' if len(self.types) > 12 else ''}]"
