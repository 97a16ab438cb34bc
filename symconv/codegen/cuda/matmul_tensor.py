"""Matrix products on tensor cores: float16 and bfloat16, and float32 as tf32 where that was asked for; sums in float32.

Either operand may be transposed; the elements that lie together are copied 16 bytes at a time to shared memory, several steps
ahead (`sc_cp_async_16`), read from there as fragments (`sc_ldmatrix_x4`, transposed on the way where needed), and multiplied by
`mma.sync`.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from ... import dtypes
from ...config import config
from ...target import Target
from ..helpers import SUFFIXES
from ..kernel import Operand, Problem
from ..scalar_printer import storage_type, stored
from .kernel import CudaImplementation, CudaKernel, LaunchPlan, Scalar
from .printing import render_cuda

CORE_FLOPS, TENSOR_FLOPS = 20e12, 200e12  # a second, to compare kernels with: what CUDA cores and tensor cores do
_MOST_GRID = 65535  # of y and z: blocks go on with the tiles and pairs that are beyond
_LEAST_ARCH = {"float16": 75, "bfloat16": 80, "float32": 80}
_MMA = {"float16": "sc_mma_m16n8k16_f16", "bfloat16": "sc_mma_m16n8k16_bf16", "float32": "sc_mma_m16n8k8_tf32"}


@dataclass(frozen=True, slots=True)
class TensorTile:
    """What a block computes in steps of `depth`, what each of its warps, and how many steps have room in shared memory."""

    rows: int
    columns: int
    depth: int
    warp_rows: int
    warp_columns: int
    stages: int

    @property
    def warps_across(self) -> int:
        """Warps beside each other along the columns."""
        return self.columns // self.warp_columns

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps_across * (self.rows // self.warp_rows)


_LARGE = {2: TensorTile(128, 128, 32, 64, 32, 3), 4: TensorTile(128, 128, 16, 64, 32, 3)}
_SMALL = {2: TensorTile(64, 64, 32, 32, 32, 3), 4: TensorTile(64, 64, 16, 32, 32, 3)}
_BLOCKS_WANTED = 132  # below this many large tiles, small ones keep more multiprocessors busy


class MatMulTensor(CudaImplementation):
    """Pipelined tiles on tensor cores."""

    name = "matmul_tensor"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Operands whose rows or columns lie together, in steps that 16-byte accesses can follow; others are copied first."""
        return _lead(problem.inputs[position]) is not None

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Dtypes and architectures without such units, matrices whose rows are no multiple of 16 bytes."""
        a, b = problem.inputs
        least = _LEAST_ARCH.get(a.dtype)
        if least is None:
            return f"tensor cores have no {a.dtype} with float32 sums"
        if target.arch < least:
            return f"{a.dtype} on tensor cores needs sm_{least}"
        if a.dtype == "float32" and config.precision != "tf32":
            return 'float32 means float32 (config.precision = "tf32" allows tensor cores)'
        for name, operand in (("first", a), ("second", b)):
            if _lead(operand) is None:
                return f"the {name} factor has no rows or columns that lie together in multiples of 16 bytes"
        return None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic at the target's copy rate, and the products at what tensor cores of a large GPU do."""
        result = problem.outputs[0]
        moved = sum(operand.nbytes for operand in (*problem.inputs, result))
        return target.copy_seconds(moved) + 2 * result.size * problem.inputs[0].shape[-1] / TENSOR_FLOPS

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; none for an empty result."""
        (a, b), result = problem.inputs, problem.outputs[0]
        if result.size == 0:
            return LaunchPlan(())
        moved = sum(operand.nbytes for operand in (*problem.inputs, result))
        return LaunchPlan((_kernel(a, b, result),), flops=2 * result.size * a.shape[-1], bytes=moved)


def _lead(operand: Operand) -> tuple[bool, int] | None:
    """Whether the last axis lies together (else the one before), and the other's stride; None if 16-byte accesses fit neither."""
    vector = 16 // dtypes.itemsize(operand.dtype)
    batch_fits = all(stride % vector == 0 or size == 1
                     for stride, size in zip(operand.strides[:-2], operand.shape[:-2], strict=True))
    for is_last, together, other in ((True, -1, -2), (False, -2, -1)):
        stride = operand.strides[other] if operand.shape[other] > 1 else 0
        if operand.strides[together] == 1 and stride % vector == 0 and stride >= 0 and batch_fits:
            return is_last, stride
    return None


def _kernel(a: Operand, b: Operand, result: Operand) -> CudaKernel:
    *batch_shape, rows, columns = result.shape
    batch, itemsize = math.prod(batch_shape), dtypes.itemsize(a.dtype)
    tile = _LARGE[itemsize]
    if -(-rows // tile.rows) * -(-columns // tile.columns) * batch < _BLOCKS_WANTED:
        tile = _SMALL[itemsize]
    (a_along_depth, a_stride), (b_along_columns, b_stride) = _required(a), _required(b)
    numbers = [rows, columns, a.shape[-1], a_stride, b_stride, batch]
    for axis, size in enumerate(batch_shape):
        numbers += [size, *(each.strides[axis] if each.shape[axis] != 1 else 0 for each in (a, b))]
    layout = f"{'n' if a_along_depth else 't'}{'n' if b_along_columns else 't'}"
    name = (f"sc_matmul_tensor_{SUFFIXES[a.dtype]}_{layout}_{tile.rows}x{tile.columns}x{tile.depth}_{len(batch_shape)}b"
            f"{'' if columns % 2 == 0 else '_odd'}")
    sizes = _shared(tile, itemsize, a_along_depth, not b_along_columns)
    source = _source(name, a.dtype, tile, sizes, (a_along_depth, not b_along_columns), len(batch_shape), columns % 2 == 0)
    grid = (-(-columns // tile.columns), min(-(-rows // tile.rows), _MOST_GRID), min(batch, _MOST_GRID))
    return CudaKernel(name, source, grid, (tile.threads, 1, 1), (0, 1, 2), tuple(Scalar("int64", number) for number in numbers),
                      tile.stages * (sizes["a_size"] + sizes["b_size"]) * itemsize)


def _required(operand: Operand) -> tuple[bool, int]:
    lead = _lead(operand)
    assert lead is not None, "refuse() has let a layout through"
    return lead


def _shared(tile: TensorTile, itemsize: int, a_along_depth: bool, b_along_depth: bool) -> dict[str, int]:
    """Elements of a row and of all of a tile in shared memory, padded so that a fragment is read from different banks."""
    along, across = (8, 8) if itemsize == 2 else (4, 8)
    a_stride = tile.depth + along if a_along_depth else tile.rows + across
    b_stride = tile.depth + along if b_along_depth else tile.columns + across
    return {"a_stride": a_stride, "b_stride": b_stride, "a_size": a_stride * (tile.rows if a_along_depth else tile.depth),
            "b_size": b_stride * (tile.columns if b_along_depth else tile.depth)}


def _source(name: str, dtype: str, tile: TensorTile, sizes: dict[str, int], along_depth: tuple[bool, bool], n_batch_axes: int,
            in_pairs: bool) -> str:
    is_half = dtype != "float32"
    store_open, store_close = stored(dtype, "@").split("@")
    return render_cuda("matmul_tensor.cu.j2", name=name, tile=tile, threads=tile.threads, type=storage_type(dtype),
                       title=f"matrix product of {dtype if is_half else 'tf32'} on tensor cores, {n_batch_axes} batch axes",
                       result_type=storage_type(dtype), a_along_depth=along_depth[0], b_along_depth=along_depth[1], is_half=is_half,
                       k_step=16 if is_half else 8, mma=_MMA[dtype], batch_axes=tuple(range(n_batch_axes)), in_pairs=in_pairs,
                       store_open=store_open, store_close=store_close, **sizes)
