"""Pooling on CUDA: the four ops of `ops/pooling.py` for every rank, stride, padding and border rule, without atomics.

`BlockedPool` and `BlockedPoolGrad` are the same kernels with one more axis, behind the pooled ones.
"""
from __future__ import annotations

import math
from typing import Any, cast

from ... import dtypes
from ...errors import InternalError
from ...graph import Op
from ...ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from ...ops.pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from ...target import Target
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Operand, Problem
from ..scalar_printer import compute_type, load, storage_type, stored
from .kernel import WORKSPACE, CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .looping import THREADS, count_blocks, element_kernel
from .printing import render_cuda

_MOST_IMAGE = 2**31 - 1
_INDEX_BYTES = 4


class _Pooling(CudaImplementation):
    """What the four have in common."""

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only images of more elements than 32-bit numbers count; of how many images and channels there are, 64-bit ones do."""
        pool, image, _ = self.parts(problem)
        end = len(image.shape) - isinstance(problem.op, (BlockedPool, BlockedPoolGrad))
        elements = math.prod(image.shape[end - pool.rank:end])
        return f"an image of {elements} elements" if elements > _MOST_IMAGE else None

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        """The pool, and operands of the shapes of its image and of its result."""
        raise InternalError(f"{self.name} does not know its operands")

    def launch(self, problem: Problem, suffix: str, parts: tuple[str, ...], buffers: tuple[int, ...], elements: int) -> CudaKernel:
        """A launch of one of the kernels of the source."""
        pool, image, windows = self.parts(problem)
        name, inner = _name(problem.op, pool, image.dtype), isinstance(problem.op, (BlockedPool, BlockedPoolGrad))
        end = len(image.shape) - inner
        lead = end - pool.rank
        numbers = [Scalar("int64", math.prod(image.shape[:lead])), *([Scalar("int64", image.shape[-1])] if inner else [])]
        for size, count in zip(image.shape[lead:end], windows.shape[lead:end], strict=True):
            numbers += [Scalar("int32", size), Scalar("int32", count)]
        source = _source(name, pool, image.dtype, parts, inner)
        return CudaKernel(name + suffix, source, (count_blocks(elements), 1, 1), (THREADS, 1, 1), buffers, tuple(numbers))


class PoolWindows(_Pooling):
    """`Pool` and `BlockedPool`: a thread for each window."""

    name = "pool_windows"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        op = problem.op
        return op.pool if isinstance(op, BlockedPool) else cast(Pool, op), problem.inputs[0], problem.outputs[0]

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        elements = problem.outputs[0].size
        return _plan(problem, (self.launch(problem, "", ("reduce",), (0, 1), elements),))


class MaxPoolWinners(_Pooling):
    """`MaxPoolGrad`, `MaxPoolGather` and `BlockedPoolGrad`: first where the maxima lie, then what is there, or what goes there."""

    name = "max_pool_winners"

    def serves(self, op: Op) -> bool:
        """Gradients of the largest element."""
        return not isinstance(op, BlockedPoolGrad) or op.pool.mode == "max"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        op = cast(MaxPoolGrad | MaxPoolGather | BlockedPoolGrad, problem.op)
        return op.pool, problem.inputs[0], problem.outputs[0] if isinstance(op, MaxPoolGather) else problem.inputs[1]

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """Two launches; the winners lie in the workspace."""
        windows = self.parts(problem)[2].size
        parts = ("winners", "gather" if isinstance(problem.op, MaxPoolGather) else "spread")
        if windows == 0:
            return _zeros(problem)
        first = self.launch(problem, "_winners", parts, (WORKSPACE, 1), windows)
        second = self.launch(problem, "", parts, (0, 2, WORKSPACE), problem.outputs[0].size)
        return _plan(problem, (first, second), windows * _INDEX_BYTES)


class AveragePoolSpread(_Pooling):
    """`AveragePoolGrad` and `BlockedPoolGrad`: a thread for each image element."""

    name = "average_pool_spread"

    def serves(self, op: Op) -> bool:
        """Gradients of sums and averages."""
        return not isinstance(op, BlockedPoolGrad) or op.pool.mode != "max"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        return cast(AveragePoolGrad | BlockedPoolGrad, problem.op).pool, problem.outputs[0], problem.inputs[0]

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        return _plan(problem, (self.launch(problem, "", ("spread",), (0, 1), problem.outputs[0].size),))


def _plan(problem: Problem, launches: tuple[CudaKernel, ...], workspace_bytes: int = 0) -> LaunchPlan:
    if problem.outputs[0].size == 0:
        return LaunchPlan(())
    return LaunchPlan(launches, workspace_bytes, bytes=sum(each.nbytes for each in (*problem.inputs, *problem.outputs)))


def _zeros(problem: Problem) -> LaunchPlan:
    """A gradient that no window brings anything to."""
    result = problem.outputs[0]
    if result.size == 0:
        return LaunchPlan(())
    name = f"sc_zeros_{SUFFIXES[result.dtype]}"
    source = render_cuda("zeros.cu.j2", title=f"zeros of {result.dtype}", name=name, threads=THREADS,
                         type=storage_type(result.dtype))
    return LaunchPlan((element_kernel(name, source, result.size, (0,), (result.size,)),))


def _name(op: Op, pool: Pool, dtype: str) -> str:
    word = {Pool: "pool", MaxPoolGrad: "max_pool_grad", MaxPoolGather: "max_pool_gather", AveragePoolGrad: "pool_grad",
            BlockedPool: "blocked_pool", BlockedPoolGrad: "blocked_pool_grad"}[type(op)]
    numbers = "_".join("x".join(map(str, each)) for each in (pool.window, pool.stride, pool.pad_lo, pool.pad_hi))
    return f"sc_{word}_{pool.mode}_{numbers}_{SUFFIXES[dtype]}"


def _source(name: str, pool: Pool, dtype: str, parts: tuple[str, ...], inner: bool) -> str:
    rows = zip(pool.window, pool.stride, pool.pad_lo, pool.pad_hi, strict=True)
    axes: tuple[dict[str, Any], ...] = tuple({"number": number, "window": window, "stride": stride, "pad_lo": low, "pad_hi": high}
                                             for number, (window, stride, low, high) in enumerate(rows))
    load_open, load_close = load(dtype, "@").split("@")
    store_open, store_close = stored(dtype, "@").split("@")
    first = "start0"
    for axis in axes[1:]:
        first = f"({first}) * size{axis['number']} + start{axis['number']}"
    return render_cuda("pooling.cu.j2", title=f"{pool} of {dtype}: {' and '.join(parts)}", name=name, threads=THREADS,
                       rank=pool.rank, inner=inner, axes=axes, mode=pool.mode, parts=parts, type=storage_type(dtype),
                       compute=compute_type(dtype),
                       sum_type=compute_type(dtypes.accumulator(dtype)), is_float=dtypes.is_float(dtype), load_open=load_open,
                       load_close=load_close, store_open=store_open if store_open else f"({storage_type(dtype)})",
                       store_close=store_close, first_position=f"({first})")


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {
    Pool: (PoolWindows(),), MaxPoolGrad: (MaxPoolWinners(),), MaxPoolGather: (MaxPoolWinners(),),
    AveragePoolGrad: (AveragePoolSpread(),), BlockedPool: (PoolWindows(),),
    BlockedPoolGrad: (MaxPoolWinners(), AveragePoolSpread())}
