"""What an execution of cuDNN reads and writes: the tensors of a launch, their shapes and how they lie in memory."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from ...errors import BackendError
from ...ops.epilogue import CHANNEL
from ...ops.spec import Role
from ..cuda.kernel import CudnnLaunch
from .graph import OPERAND_UID, UID, layout_strides
from .plan_list import PlanMaker, registered

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class TensorInMemory:
    """A tensor of a launch: axes (N, C, *spatial), strides in elements."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def launch_tensors(launch: CudnnLaunch) -> tuple[TensorInMemory, ...]:
    """The tensors of a launch in the order of its `uids`; an operand along the channels is a tensor with sizes of 1 elsewhere."""
    problem = launch.problem
    shapes: dict[Role, tuple[int, ...]] = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
    by_uid = {UID[role]: (problem.dtype, shape) for role, shape in shapes.items()}
    by_uid[UID[problem.kind.produces]] = (problem.result_dtype, problem.result_shape)
    for number, (place, dtype) in enumerate(zip(launch.fusion.places(), launch.fusion.dtypes, strict=True)):
        shape = problem.result_shape
        by_uid[OPERAND_UID + number] = (dtype, (1, shape[1], *(1,) * problem.spec.ndim) if place == CHANNEL else shape)
    return tuple(TensorInMemory(dtype, shape, layout_strides(shape, launch.plan.layout))
                 for dtype, shape in (by_uid[uid] for uid in launch.uids))


class StandIn(PlanMaker, Protocol):
    """What makes plans, and runs them on arrays of the host: cuDNN's place on the emulator, in tests."""

    def execute(self, launch: CudnnLaunch, tensors: tuple[Array, ...]) -> None:
        """Write the result, the first of `tensors`, which are in the order of `launch.uids`. PlanRefusedError to refuse."""


def registered_stand_in() -> StandIn:
    """The stand-in that a test has registered; a BackendError where there is none."""
    found = registered()
    if found is None:
        raise BackendError("the emulator runs generated kernels only: no stand-in for cuDNN is registered")
    return cast(StandIn, found)
