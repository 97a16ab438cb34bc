"""Matrix products on CUDA cores: any dtype, any strides (transposed and broadcast operands are read where they are)."""
from __future__ import annotations

import math

from ... import dtypes
from ...graph import Op
from ...ops.linalg import MatMul
from ...target import Target
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Operand, Problem
from ..scalar_printer import compute_type, load, storage_type, stored
from .kernel import CudaImplementation, CudaKernel, LaunchPlan
from .looping import int64_scalars
from .matmul_tensor import CORE_FLOPS, MatMulTensor
from .printing import render_cuda
from .tiles import TILE

_MOST_GRID = 65535  # of y and z: blocks go on with the tiles and pairs that are beyond
_UNSIGNED = {"int8": "uint32_t", "int16": "uint32_t", "int32": "uint32_t", "int64": "uint64_t"}  # sums wrap without being undefined


class MatMulTiles(CudaImplementation):
    """Tiles in shared memory, sums in registers."""

    name = "matmul_tiles"

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Both operands."""
        return True

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only bool."""
        return "it has no bool" if problem.outputs[0].dtype == "bool" else None

    def estimate(self, problem: Problem, target: Target) -> float:
        """Memory traffic at the target's copy rate, and the products at what CUDA cores of a large GPU do."""
        result = problem.outputs[0]
        moved = sum(operand.nbytes for operand in (*problem.inputs, result))
        return target.copy_seconds(moved) + 2 * result.size * problem.inputs[0].shape[-1] / CORE_FLOPS

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch; none for an empty result."""
        (a, b), result = problem.inputs, problem.outputs[0]
        if result.size == 0:
            return LaunchPlan(())
        *batch_shape, rows, columns = result.shape
        depth, batch = a.shape[-1], math.prod(batch_shape)
        numbers = [rows, columns, depth, a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1], batch]
        for axis, size in enumerate(batch_shape):
            numbers += [size, _step(a, axis), _step(b, axis)]
        along = (abs(a.strides[-1]) <= abs(a.strides[-2]), abs(b.strides[-2]) < abs(b.strides[-1]))
        name = f"sc_matmul_{SUFFIXES[a.dtype]}_{''.join('nt'[not first] for first in (along[0], not along[1]))}_{len(batch_shape)}b"
        grid = (-(-columns // TILE.columns), min(-(-rows // TILE.rows), _MOST_GRID), min(batch, _MOST_GRID))
        kernel = CudaKernel(name, _source(name, a.dtype, along, len(batch_shape)), grid, (TILE.threads, 1, 1), (0, 1, 2),
                            int64_scalars(numbers))
        moved = sum(operand.nbytes for operand in (*problem.inputs, result))
        return LaunchPlan((kernel,), flops=2 * result.size * depth, bytes=moved)


def _step(operand: Operand, axis: int) -> int:
    """The stride of a batch axis, 0 where it is broadcast."""
    return operand.strides[axis] if operand.shape[axis] != 1 else 0


def _source(name: str, dtype: str, along: tuple[bool, bool], n_batch_axes: int) -> str:
    sums = _UNSIGNED.get(dtype, compute_type(dtypes.accumulator(dtype) if dtypes.is_float(dtype) else dtype))
    load_open, load_close = load(dtype, "@").split("@")
    store_open, store_close = stored(dtype, "@").split("@")
    if not dtypes.is_float(dtype):
        load_open, load_close = f"({sums})", ""
        store_open = f"({storage_type(dtype)})"
    accumulate = "= sc_fma(x[i], y[j], sum[i][j])" if dtypes.is_float(dtype) else "+= x[i] * y[j]"
    return render_cuda("matmul.cu.j2", title=f"matrix product of {dtype}, {n_batch_axes} batch axes", name=name, tile=TILE,
                       type=storage_type(dtype), sum_type=sums, batch_axes=tuple(range(n_batch_axes)), a_along_depth=along[0],
                       b_along_depth=along[1], load_open=load_open, load_close=load_close, store_open=store_open,
                       store_close=store_close, accumulate=accumulate)


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {MatMul: (MatMulTensor(), MatMulTiles())}
