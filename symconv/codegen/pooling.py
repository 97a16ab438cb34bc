"""Pooling on the CPU: the ops of `ops/pooling.py`, and places of maxima, for every rank, stride, padding and border rule.

Batch and image sizes are run-time arguments; window, stride, padding and mode are in the source.  A row of outputs is worked
on at once, in vectors along it: windows that lie whole inside the image with the window written out, the others element by
element of the window, each for the range of outputs that it exists for.  Sums are taken in a fixed order, so that the bits
do not depend on the number of threads.
"""
from __future__ import annotations

import math
from itertools import product
from typing import Any, cast

from .. import dtypes
from ..errors import InternalError
from ..graph import Op
from ..ops.lowered.blocked_pooling import BlockedPool
from ..ops.lowered.pooled_convolution import PoolPlaces
from ..ops.pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from ..target import Target
from .boxes import scalar_type
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem
from .templates import render_kernel

_LARGEST_WRITTEN_OUT = 32  # elements of a window; beyond, writing it out costs registers and gains nothing
_PARALLEL_FROM = 1 << 15   # elements read; below, starting threads costs more than they gain
_PIECE = 1024  # elements of a row, or of several, that have their places found at once
_AXES = ("d", "h", "w")
_WITHOUT_KERNEL = ("float16", "bfloat16")


class _Pooling(Implementation):
    """What the kernels have in common: one template, in which `parts` are the pool, its image and its result."""

    template = ""

    def refuse(self, problem: Problem, target: Target) -> str | None:
        dtype = problem.outputs[0].dtype
        return f"pooling in C has no {dtype}" if dtype in _WITHOUT_KERNEL else None

    def build(self, problem: Problem, target: Target) -> Kernel:
        pool, x, y = self.parts(problem)
        name = f"sc_{_KERNEL_NAMES[type(problem.op)]}_{_configuration(pool, x.dtype)}"
        source = render_kernel(self.template, function=name, problem=f"{problem.op} of {x.dtype}, sizes at run time",
                               **_common(pool, x.dtype), **self.context(pool, x.dtype))
        return Kernel(name, source, _sizes(pool, x.shape, y.shape), flops=y.size * math.prod(pool.window),
                      bytes=sum(operand.nbytes for operand in (*problem.outputs, *problem.inputs)))

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        """The pool, and operands of the shapes of its image and of its result."""
        raise InternalError(f"{self.name} does not know its operands")

    def context(self, pool: Pool, dtype: str) -> dict[str, Any]:
        """What the template needs beyond `_common`."""
        return {}


class PoolRows(_Pooling):
    """`Pool`: the largest element, the sum or the average of every window."""

    name = "pool_rows"
    template = "pool.c.j2"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        return cast(Pool, problem.op), problem.inputs[0], problem.outputs[0]

    def context(self, pool: Pool, dtype: str) -> dict[str, Any]:
        is_max = pool.mode == "max"
        return {"accumulator": scalar_type(dtype) if is_max else _sum_type(dtype),
                "initial": _least(dtype) if is_max else "0", **_written_out(pool, True)}


class PoolBlocks(_Pooling):
    """`BlockedPool`: lanes are the channels of a block."""

    name = "pool_blocks"
    template = "pool_blocks.c.j2"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only float32 and float64."""
        dtype = problem.outputs[0].dtype
        return None if dtype in ("float32", "float64") else f"it pools float32 and float64, not {dtype}"

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; the lanes of a vector are those of a block."""
        pool, x, y = self.parts(problem)
        lanes = problem.inputs[0].shape[-1]
        name = f"sc_pool_blocks_of_{lanes}_{_configuration(pool, x.dtype)}"
        source = render_kernel(self.template, function=name, problem=f"{problem.op} of {x.dtype}, sizes at run time", lanes=lanes,
                               initial=_least(x.dtype) if pool.mode == "max" else "0", bits=f"int{8 * dtypes.itemsize(x.dtype)}_t",
                               elements=(), **_common(pool, x.dtype))
        return Kernel(name, source, _sizes(pool, x.shape, y.shape), flops=y.size * lanes * math.prod(pool.window),
                      bytes=sum(operand.nbytes for operand in (*problem.outputs, *problem.inputs)))

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        """Image and result without the axis of lanes."""
        x, y = (Operand.contiguous(each.dtype, each.shape[:-1]) for each in (problem.inputs[0], problem.outputs[0]))
        return cast(BlockedPool, problem.op).pool, x, y


class PoolWithPlaces(_Pooling):
    """`PoolPlaces`: the largest element of every window, and which of its elements that is."""

    name = "pool_places"
    template = "pool_places.c.j2"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Windows that are too large to be written out, and what no pooling in C takes."""
        volume = math.prod(cast(PoolPlaces, problem.op).pool.window)
        if volume > _LARGEST_WRITTEN_OUT:
            return f"windows of {volume} elements are not written out"
        return super().refuse(problem, target)

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        """The image and the largest elements."""
        return cast(PoolPlaces, problem.op).pool, problem.inputs[0], problem.outputs[0]

    def context(self, pool: Pool, dtype: str) -> dict[str, Any]:
        """No window reaches over the image, so that none of the loops for those is needed."""
        return {"elements": (), "piece": _PIECE, "place_type": "int32_t" if dtypes.itemsize(dtype) <= 4 else "int64_t"}


class MaxPoolScatter(_Pooling):
    """`MaxPoolGrad`: every gradient goes to the first maximum of its window."""

    name = "max_pool_scatter"
    template = "pool_winners.c.j2"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        return cast(MaxPoolGrad, problem.op).pool, problem.inputs[0], problem.inputs[1]

    def context(self, pool: Pool, dtype: str) -> dict[str, Any]:
        scalar = scalar_type(dtype)
        return {"scatters": True, "other": "gx", "other_scalar": scalar, "row_arguments": "gx_image, gz_row",
                "row_parameters": f"{scalar} *gx_image, const {scalar} *gz_row", "initial": _least(dtype),
                **_written_out(pool, _are_apart(pool))}


class MaxPoolPick(_Pooling):
    """`MaxPoolGather`: the elements of v at the first maxima of the windows of x."""

    name = "max_pool_pick"
    template = "pool_winners.c.j2"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        return cast(MaxPoolGather, problem.op).pool, problem.inputs[0], problem.outputs[0]

    def context(self, pool: Pool, dtype: str) -> dict[str, Any]:
        scalar = scalar_type(dtype)
        return {"scatters": False, "other": "v", "other_scalar": f"const {scalar}", "row_arguments": "v_image, y_row",
                "row_parameters": f"const {scalar} *v_image, {scalar} *y_row", "initial": _least(dtype),
                **_written_out(pool, True)}


class AveragePoolSpread(_Pooling):
    """`AveragePoolGrad`: every gradient, divided by what its window was, added to the elements of the window."""

    name = "average_pool_spread"
    template = "pool_spread.c.j2"

    def parts(self, problem: Problem) -> tuple[Pool, Operand, Operand]:
        return cast(AveragePoolGrad, problem.op).pool, problem.outputs[0], problem.inputs[0]

    def context(self, pool: Pool, dtype: str) -> dict[str, Any]:
        return _written_out(pool, _are_apart(pool))


def _sum_type(dtype: str) -> str:
    """The C type sums are taken in; unsigned for integers, so that they wrap as NumPy's do."""
    return scalar_type(dtypes.accumulator(dtype)) if dtypes.is_float(dtype) else "uint64_t"


def _least(dtype: str) -> str:
    """The C constant that every value of the dtype is larger than or equal to."""
    kinds = {"f": f"-({scalar_type(dtype)})INFINITY", "u": "0", "i": f"INT{8 * dtypes.itemsize(dtype)}_MIN"}
    return kinds[dtypes.kind(dtype)]


def _configuration(pool: Pool, dtype: str) -> str:
    """The pool as part of a C name: max_w2x2_s2x2_p0_0x0_0_float32."""
    pads = "x".join(f"{low}_{high}" for low, high in zip(pool.pad_lo, pool.pad_hi, strict=True))
    border = "" if pool.ignore_border else "_keep_border"
    return f"{pool.mode}_w{_joined(pool.window)}_s{_joined(pool.stride)}_p{pads}{border}_{dtype}"


def _joined(numbers: tuple[int, ...]) -> str:
    return "x".join(map(str, numbers))


def _three(numbers: tuple[int, ...], fill: int) -> tuple[int, ...]:
    """Numbers of the pooled axes with those of the axes in front that a lower rank lacks."""
    return (fill,) * (3 - len(numbers)) + numbers


def _sizes(pool: Pool, x_shape: tuple[int, ...], y_shape: tuple[int, ...]) -> tuple[int, ...]:
    lead = len(x_shape) - pool.rank
    return (math.prod(x_shape[:lead]), *_three(x_shape[lead:], 1), *_three(y_shape[lead:], 1))


def _common(pool: Pool, dtype: str) -> dict[str, Any]:
    """What `pool_loops.c.j2` needs: the axes, and what is compared and divided."""
    return {**_axes(pool), "scalar": scalar_type(dtype), "suffix": SUFFIXES[dtype], "is_float": dtypes.is_float(dtype),
            "is_max": pool.mode == "max", "divides": pool.mode.startswith("average"), "volume": math.prod(pool.window),
            "parallel_from": _PARALLEL_FROM}


def _axes(pool: Pool) -> dict[str, dict[str, int | str]]:
    """Window, stride, padding and, for averages, how far beyond the image elements are counted, for each of d, h and w."""
    rows = zip(_AXES, *(_three(numbers, fill) for numbers, fill in (
        (pool.window, 1), (pool.stride, 1), (pool.pad_lo, 0), (pool.pad_hi, 0))), strict=True)
    padded = pool.mode == "average_inc_pad"
    return {axis: {"window": window, "stride": stride, "low": low, "shift": f" - {low}" if low else "",
                   "counted_from": -low if padded else 0, "counted_past": high if padded else 0}
            for axis, window, stride, low, high in rows}


def _are_apart(pool: Pool) -> bool:
    """Whether windows do not overlap: then gradients are stored, not added, and their windows can be written out."""
    return all(stride >= window for stride, window in zip(pool.stride, pool.window, strict=True))


def _written_out(pool: Pool, allowed: bool) -> dict[str, Any]:
    """The elements of a window and the rows they stand in, or none where whole windows get no code of their own."""
    depth, height, width = _three(pool.window, 1)
    if not allowed or math.prod(pool.window) > _LARGEST_WRITTEN_OUT:
        return {"elements": (), "rows": ()}
    rows = [{"name": f"row_{d}_{h}", "d": d, "h": h} for d, h in product(range(depth), range(height))]
    elements = [{"row": row["name"], "place": f"q * {pool.stride[-1]}" + (f" + {s}" if s else ""),
                 "name": f"value_{row['d']}_{row['h']}_{s}"}
                for row in rows for s in range(width)]
    return {"elements": elements, "rows": rows}


_KERNEL_NAMES: dict[type[Op], str] = {Pool: "pool", PoolPlaces: "pool_places", MaxPoolGrad: "pool_grad",
                                      MaxPoolGather: "pool_gather", AveragePoolGrad: "pool_grad"}
IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {
    Pool: (PoolRows(),),
    BlockedPool: (PoolBlocks(),),
    PoolPlaces: (PoolWithPlaces(),),
    MaxPoolGrad: (MaxPoolScatter(),),
    MaxPoolGather: (MaxPoolPick(),),
    AveragePoolGrad: (AveragePoolSpread(),),
}
