"""Matrix products on the CPU: a packed product for floats, matrix times vector, and plain loops for whole numbers.

All three take any strides (a transpose costs nothing or is folded into packing) and broadcast batch axes.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .. import dtypes
from ..ops.linalg import MatMul
from ..target import Target
from .gemm_tile import PARALLEL_FLOPS, START_SECONDS, compute_seconds, make_block, make_tile
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Operand, Problem
from .templates import render_kernel

_SLICE_ELEMENTS, _MOST_SLICES, _SLICED_ROWS = 1 << 15, 8, 8192
"""Matrix times vector, columns side by side: elements of the matrix that make a slice, how many slices there are at most, and up
to how many rows a slice's result stays in the first cache."""

Batch = tuple[tuple[int, int, int], ...]
"""For every batch axis: its size, the stride of a, the stride of b (0 where broadcast)."""


@dataclass(frozen=True, slots=True)
class ProductSizes:
    """c[batch, rows, columns] = a[batch, rows, depth] · b[batch, depth, columns], with strides in elements.

    `exchanged` says that the roles have been changed by transposing the product: then a is the op's second input.
    """

    rows: int
    columns: int
    depth: int
    a_row: int
    a_step: int
    b_step: int
    b_column: int
    c_row: int
    c_column: int
    batch: Batch
    exchanged: bool = False

    @property
    def products(self) -> int:
        """Number of matrix products."""
        return math.prod(size for size, _, _ in self.batch)

    @property
    def flops(self) -> int:
        """Multiplications and additions of all."""
        return 2 * self.products * self.rows * self.columns * self.depth

    def transposed(self) -> ProductSizes:
        """The same product as cᵀ = bᵀ · aᵀ."""
        return ProductSizes(self.columns, self.rows, self.depth, self.b_column, self.b_step, self.a_step, self.a_row,
                            self.c_column, self.c_row, tuple((size, b, a) for size, a, b in self.batch), not self.exchanged)

    @property
    def batch_numbers(self) -> tuple[int, ...]:
        """The batch axes as the kernels take them."""
        return tuple(number for axis in self.batch for number in axis)


def product_sizes(problem: Problem) -> ProductSizes:
    """The sizes of a MatMul problem, with batch axes joined where they lie in order, and folded into the rows where b allows."""
    a, b = problem.inputs
    (c,) = problem.outputs
    sizes = ProductSizes(a.shape[-2], b.shape[-1], a.shape[-1], a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1],
                         b.shape[-1], 1, _batch_axes(a, b, c))
    if sizes.batch:
        size, a_stride, b_stride = sizes.batch[-1]
        if b_stride == 0 and a_stride == sizes.rows * sizes.a_row:
            return replace(sizes, rows=sizes.rows * size, batch=sizes.batch[:-1])
    return sizes


def _batch_axes(a: Operand, b: Operand, c: Operand) -> Batch:
    shape = c.shape[:-2]
    joined: list[tuple[int, int, int]] = []
    for size, a_stride, b_stride in zip(shape, _batch_strides(a, shape), _batch_strides(b, shape), strict=True):
        if size == 1:
            continue
        if joined and joined[-1][1] == size * a_stride and joined[-1][2] == size * b_stride:
            joined[-1] = (joined[-1][0] * size, a_stride, b_stride)
        else:
            joined.append((size, a_stride, b_stride))
    return tuple(joined)


def _batch_strides(operand: Operand, shape: tuple[int, ...]) -> list[int]:
    """Strides of the operand's batch axes against those of the result: 0 where the operand is broadcast."""
    own = list(zip(operand.shape[:-2], operand.strides[:-2], strict=True))
    missing = len(shape) - len(own)
    return [0] * missing + [0 if size == 1 else stride for size, stride in own]


def _float_refusal(problem: Problem) -> str | None:
    found = {operand.dtype for operand in problem.inputs + problem.outputs}
    if found in ({"float32"}, {"float64"}):
        return None
    return f"it multiplies float32 or float64, not {' and '.join(sorted(found))}"


class _Product(Implementation):
    """What the three have in common."""

    def takes_strides(self, problem: Problem, position: int) -> bool:
        """Any strides, also negative and broadcast ones."""
        return True

    def _kernel(self, problem: Problem, name: str, template: str, sizes: tuple[int, ...], context: dict[str, object],
                workspace_bytes: int = 0) -> Kernel:
        source = render_kernel(template, function=name, parallel_flops=PARALLEL_FLOPS, **context)
        nbytes = sum(operand.nbytes for operand in problem.inputs + problem.outputs)
        return Kernel(name, source, sizes, workspace_bytes, flops=product_sizes(problem).flops, bytes=nbytes)


class PackedMatMul(_Product):
    """Floats in register tiles from packed panels."""

    name = "matmul_packed"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only float32 and float64."""
        return _float_refusal(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """A share of the peak, and the packing."""
        sizes = product_sizes(problem)
        dtype = problem.outputs[0].dtype
        tile = make_tile(dtype, target)
        padded = sizes.products * sizes.rows * -(-sizes.columns // tile.columns) * tile.columns * sizes.depth
        packed = 2 * sizes.products * sizes.depth * sizes.columns * tile.itemsize
        return START_SECONDS + compute_seconds(2 * padded, dtype, target, 0.8) + target.copy_seconds(packed, 1)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel; the panels of packed columns and rows are its workspace."""
        dtype = problem.outputs[0].dtype
        tile = make_tile(dtype, target)
        block = make_block(tile)
        sizes = product_sizes(problem)
        if _transpose_pays(sizes):
            sizes = sizes.transposed()
        panel_columns = min(block.columns, -(-sizes.columns // tile.columns) * tile.columns)
        each = (panel_columns + (sizes.rows if sizes.a_step != 1 else 0)) * block.depth
        each = -(-each // 16) * 16
        teams = target.threads if sizes.batch else 1
        name = f"sc_matmul_{tile.suffix}_b{len(sizes.batch)}"
        numbers = (sizes.rows, sizes.columns, sizes.depth, sizes.a_row, sizes.a_step, sizes.b_step, sizes.b_column,
                   sizes.c_row, sizes.c_column, int(sizes.exchanged), each, target.threads, *sizes.batch_numbers)
        context = {"tile": tile, "block": block, "batch_rank": len(sizes.batch)}
        return self._kernel(problem, name, "matmul.c.j2", numbers, context, each * tile.itemsize * teams)


def _transpose_pays(sizes: ProductSizes) -> bool:
    """Whether b, whose columns would have to be transposed while they are packed, should be the matrix that is read in place."""
    return sizes.b_column != 1 and sizes.b_step == 1 and sizes.a_step == 1 and 2 * sizes.rows < sizes.columns


class MatVec(_Product):
    """Floats, one of the operands a vector: bound by memory."""

    name = "matvec"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only where the result has one row or one column."""
        sizes = product_sizes(problem)
        if 1 not in (sizes.rows, sizes.columns):
            return f"neither matrix is a vector: {sizes.rows} rows, {sizes.columns} columns"
        return _float_refusal(problem)

    def estimate(self, problem: Problem, target: Target) -> float:
        """The bytes of the matrix."""
        sizes = product_sizes(problem)
        return START_SECONDS / 2 + target.copy_seconds(sizes.flops / 4 * dtypes.itemsize(problem.outputs[0].dtype), 1)

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel, with the matrix as its first operand."""
        tile = make_tile(problem.outputs[0].dtype, target)
        sizes = product_sizes(problem)
        if sizes.columns != 1:
            sizes = sizes.transposed()
        name = f"sc_matvec_{tile.suffix}_b{len(sizes.batch)}"
        slices = 0
        if sizes.a_row == 1 and not sizes.batch and sizes.rows <= _SLICED_ROWS:
            slices = min(sizes.rows * sizes.depth // _SLICE_ELEMENTS, _MOST_SLICES)
        numbers = (sizes.rows, sizes.depth, sizes.a_row, sizes.a_step, sizes.b_step, int(sizes.exchanged), target.threads,
                   slices, *sizes.batch_numbers)
        context: dict[str, object] = {"tile": tile, "batch_rank": len(sizes.batch)}
        return self._kernel(problem, name, "matvec.c.j2", numbers, context, slices * sizes.rows * tile.itemsize)


class PlainMatMul(_Product):
    """Whole numbers and bool by plain loops."""

    name = "matmul_plain"

    def refuse(self, problem: Problem, target: Target) -> str | None:
        """Only whole numbers and bool, all of one dtype."""
        found = {operand.dtype for operand in problem.inputs + problem.outputs}
        if len(found) == 1 and dtypes.kind(next(iter(found))) in "biu":
            return None
        return f"it multiplies whole numbers of one dtype, not {' and '.join(sorted(found))}"

    def estimate(self, problem: Problem, target: Target) -> float:
        """About one multiplication a nanosecond."""
        return START_SECONDS + product_sizes(problem).flops / 2e9

    def build(self, problem: Problem, target: Target) -> Kernel:
        """The kernel."""
        dtype = problem.outputs[0].dtype
        sizes = product_sizes(problem)
        name = f"sc_matmul_plain_{SUFFIXES[dtype]}_b{len(sizes.batch)}"
        numbers = (sizes.rows, sizes.columns, sizes.depth, sizes.a_row, sizes.a_step, sizes.b_step, sizes.b_column,
                   *sizes.batch_numbers)
        context = {"c_type": dtypes.DTYPES[dtype].c_name, "is_bool": dtype == "bool", "batch_rank": len(sizes.batch)}
        return self._kernel(problem, name, "matmul_plain.c.j2", numbers, context)


MATMUL_IMPLEMENTATIONS = (PackedMatMul(), MatVec(), PlainMatMul())
IMPLEMENTATIONS = {MatMul: MATMUL_IMPLEMENTATIONS}
