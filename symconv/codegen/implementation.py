"""What every implementation answers. Lists of them for each device, best first, stand in `codegen/lists.py`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import BackendError, InternalError
from ..graph import Op
from ..target import Target
from .kernel import Kernel, Preparation, Problem


class RefusedError(BackendError):
    """What took a problem cannot run it after all, found when it was built or run: another implementation is to do it."""


class AnyImplementation:
    """One way to run an op on one device. Stateless; `name` is what `explain()` and a forced choice call it.

    What `build` gives depends on the device: a `Kernel` on the CPU, a `LaunchPlan` on CUDA.
    """

    name = ""
    is_cached = True
    """Whether `build` depends on problem and target alone, so that it need not be asked twice."""

    def serves(self, op: Op) -> bool:
        """Whether it is meant for this op at all (a kind of convolution, say); those that are not are not even asked."""
        return True

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """None if it can run the problem, else the reason why not, in words for the user."""
        return None

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Whether the input at `position` may have any strides (else it is copied first)."""
        return False

    def estimate(self, problem: Problem, target: Target) -> float:
        """Expected seconds; only compared with other implementations of the same problem."""
        return 0.0

    def prepare(self, problem: Problem, target: Target) -> tuple[Preparation, ...]:
        """The inputs that the kernel wants in another form; none by default."""
        return ()

    def build(self, problem: Problem, target: Target) -> Any:
        """What runs it on its device."""
        raise InternalError(f"the implementation {self.name} builds nothing")

    def every_build(self, problem: Problem, target: Target) -> tuple[Any, ...]:
        """All that `build` could give, where a measurement may find that another than the first is faster."""
        return (self.build(problem, target),)

    def rank(self, problem: Problem, target: Target, order: Sequence[int]) -> None:
        """What was measured: numbers of `every_build`, fastest first. `build` and `instead` follow it where selection measures."""

    def instead(self, problem: Problem, target: Target, refused: Any) -> Any:
        """What to run instead of something it built that the device refused; None where another implementation is to do it."""
        return None


class Implementation(AnyImplementation):
    """One way to run an op on the CPU."""

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel."""
        raise InternalError(f"the implementation {self.name} builds nothing")
