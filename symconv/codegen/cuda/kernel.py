"""What an implementation for CUDA is asked and what it answers: launches of generated kernels, in order.

The C signature of a kernel is its `buffers` (as `sc_global<T>`), then its `scalars`.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from ...errors import InternalError
from ...target import Target
from ..implementation import AnyImplementation
from ..kernel import Problem

WORKSPACE = -1  # in `CudaKernel.buffers`: the workspace that the launches of one plan share
ERROR_FLAG = -2  # in `CudaKernel.buffers`: a uint32 that the runtime zeroes before the call and reads after it
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)  # what every template must compile for
MOST_THREADS = 1024
_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_SCALARS = ("int32", "int64", "uint32", "uint64", "float32", "float64")


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
    ERROR_FLAG; those in `zeroed` are filled with 0 before the launch.
    """

    name: str
    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    buffers: tuple[int, ...]
    scalars: tuple[Scalar, ...] = ()
    shared_bytes: int = 0
    zeroed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(0 < size <= limit for size, limit in zip(self.grid, _GRID_LIMITS, strict=True)):
            raise InternalError(f"{self.name}: a grid of {self.grid} is outside CUDA's limits {_GRID_LIMITS}")
        if math.prod(self.block) > MOST_THREADS or min(self.block) < 1 or self.block[2] > 64:
            raise InternalError(f"{self.name}: a block of {self.block} threads; the limits are 1024 in all and 64 in z")


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What `build` gives: launches in order on one stream, the workspace they share, and the fields of a CPU `Kernel`."""

    launches: tuple[CudaKernel, ...]
    workspace_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    errors: tuple[str, ...] = ()
    flops: int = 0
    bytes: int = 0

    @property
    def name(self) -> str:
        """The names of its kernels."""
        return "+".join(dict.fromkeys(launch.name for launch in self.launches)) or "nothing"


class CudaImplementation(AnyImplementation):
    """One way to run an op on CUDA; `refuse`, `takes_strides` and `estimate` mean what they do for the CPU."""

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """The launches."""
        raise InternalError(f"the implementation {self.name} builds nothing")
