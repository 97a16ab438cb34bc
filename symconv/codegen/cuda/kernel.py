"""What an implementation for CUDA is asked and what it answers: launches of generated kernels and of cuDNN's plans, in order.

The C signature of a kernel is its `buffers` (as `sc_global<T>`), then its `scalars`.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import InternalError
from ...target import Target
from ..implementation import AnyImplementation
from ..kernel import Problem

if TYPE_CHECKING:
    from ...ops.conv_problem import ConvProblem
    from ..cudnn.fusion import Fusion
    from ..cudnn.plans import CudnnPlan

WORKSPACE = -1  # in `CudaKernel.buffers`: the workspace that the launches of one plan share
ERROR_FLAG = -2  # in `CudaKernel.buffers`: a uint32 that the runtime zeroes before the call and reads after it
_FIRST_PART = -16
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)  # what every template must compile for
MOST_THREADS = 1024
_ALIGNMENT = 256  # of every buffer
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_SCALARS = ("int32", "int64", "uint32", "uint64", "float32", "float64")



def workspace_part(number: int) -> int:
    """In `buffers`: the `number`-th of `LaunchPlan.parts`, a piece of the workspace with bounds of its own."""
    return _FIRST_PART - number


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number passed by value: `type` is int32, int64, uint32, uint64, float32 or float64."""

    type: str
    value: int | float

    def __post_init__(self) -> None:
        if self.type not in _SCALARS:
            raise InternalError(f"a kernel takes no scalar of type {self.type}")


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """One launch of a generated kernel.

    `name` is the function, spelling its configuration; `source` the whole text (it includes symconv.cuh and nothing else);
    `shared_bytes` is dynamic shared memory; `buffers` are positions in (outputs, then inputs) of the problem, or WORKSPACE or
    ERROR_FLAG; those in `zeroed` are filled with 0 before the launch.  `cubin` is its machine code where a saved function
    brought it.
    """

    name: str
    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    buffers: tuple[int, ...]
    scalars: tuple[Scalar, ...] = ()
    shared_bytes: int = 0
    zeroed: tuple[int, ...] = ()
    cubin: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not all(0 < size <= limit for size, limit in zip(self.grid, _GRID_LIMITS, strict=True)):
            raise InternalError(f"{self.name}: a grid of {self.grid} is outside CUDA's limits {_GRID_LIMITS}")
        if math.prod(self.block) > MOST_THREADS or min(self.block) < 1 or self.block[2] > 64:
            raise InternalError(f"{self.name}: a block of {self.block} threads; the limits are 1024 in all and 64 in z")


@dataclass(frozen=True, slots=True)
class CudnnLaunch:
    """One execution of a plan of cuDNN.

    `plan` is the finished plan for one GPU; `problem`, `fusion` and `plan.layout` say what it computes on which memory (the problem
    in the form that cuDNN was asked, its padding brought into shape).  `buffers` are, as for a kernel, positions in (outputs, then
    inputs) or parts of the workspace: first the tensors with the numbers `uids`, the result first, then cuDNN's own workspace where
    it wants one.
    """

    plan: CudnnPlan
    problem: ConvProblem
    fusion: Fusion
    buffers: tuple[int, ...]
    uids: tuple[int, ...]
    zeroed: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The kind of convolution and cuDNN's name for the engine."""
        return f"cudnn_{self.problem.kind.value}{self.problem.epilogue.replace('+', '_')}[{self.plan.engine}]"


Launch = CudaKernel | CudnnLaunch


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What `build` gives: launches in order on one stream, the workspace they share, and the fields of a CPU `Kernel`.

    `parts` are pieces of the workspace as (first byte, number of bytes), named in `buffers` by `workspace_part`; `notes` is what
    `explain()` tells of how the plan came about.
    """

    launches: tuple[Launch, ...]
    workspace_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    errors: tuple[str, ...] = ()
    flops: int = 0
    bytes: int = 0
    parts: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cudnn(self) -> CudnnLaunch | None:
        """Its execution of a plan of cuDNN; None where all are generated kernels."""
        return next((each for each in self.launches if isinstance(each, CudnnLaunch)), None)

    @property
    def name(self) -> str:
        """The names of its kernels."""
        return "+".join(dict.fromkeys(launch.name for launch in self.launches)) or "nothing"


def parts_of(plan: LaunchPlan, buffers: Sequence[int]) -> tuple[int, ...]:
    """These buffers, and the parts of the workspace that lie inside of them: all that a launch may have written."""
    inside = [workspace_part(number) for number, (first, nbytes) in enumerate(plan.parts) for buffer in buffers
              if buffer <= _FIRST_PART and plan.parts[_FIRST_PART - buffer][0] <= first
              and first + nbytes <= sum(plan.parts[_FIRST_PART - buffer])]
    return (*buffers, *inside)


def lay_out_parts(sizes: Sequence[int]) -> tuple[tuple[tuple[int, int], ...], int]:
    """Pieces of so many bytes, one behind the other on 256 bytes, for `LaunchPlan.parts`, and the bytes of them all.

    >>> lay_out_parts([10, 300])
    (((0, 10), (256, 300)), 768)
    """
    parts, end = [], 0
    for size in sizes:
        parts.append((end, size))
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return tuple(parts), end


class CudaImplementation(AnyImplementation):
    """One way to run an op on CUDA; `refuse`, `takes_strides` and `estimate` mean what they do for the CPU."""

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """The launches."""
        raise InternalError(f"the implementation {self.name} builds nothing")
