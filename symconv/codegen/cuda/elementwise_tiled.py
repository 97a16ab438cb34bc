"""Elementwise kernels that read inputs lying along another axis than the result (transposed ones) through tiles in shared memory.

A block makes a tile of 32 by 32 elements.  What lies along the tile's rows is read along the rows, so that neighbouring threads
read neighbouring elements, and then taken from the tile across; a row of the tile is one element longer than needed, so that
32 elements below each other lie in 32 banks.
"""
from __future__ import annotations

from collections.abc import Mapping

from ... import dtypes
from ...ops.scalar import ScalarProgram
from ..loops import LoopNest
from ..scalar_printer import storage_type
from .kernel import CudaKernel
from .looping import THREADS, Loops
from .printing import render_cuda

SIDE = 32
_MOST_TILE_BYTES = 40_000  # of the 48 KiB of shared memory that every kernel may have


def tiled_kernel(program: ScalarProgram, nest: LoopNest, tile_axis: int) -> CudaKernel:
    """The launch of a program on inputs of which some lie along the loop `tile_axis`."""
    order = [axis for axis in range(nest.rank - 1) if axis != tile_axis]
    return _Tiled(program, nest.reordered([*order, tile_axis, nest.rank - 1])).kernel()


class _Tiled(Loops):
    """One kernel in the making; the last two loops are the tile's rows and columns."""

    def __init__(self, program: ScalarProgram, nest: LoopNest) -> None:
        super().__init__(program, nest, inner=(-2, -1))
        self.transposed: list[int] = []
        room = _MOST_TILE_BYTES
        for array in self.reads:
            needed = SIDE * (SIDE + 1) * dtypes.itemsize(self.types[array])
            if 0 < abs(nest.strides[array][-2]) < abs(nest.strides[array][-1]) and needed <= room:
                self.transposed.append(array)
                room -= needed

    def kernel(self) -> CudaKernel:
        """The launch: a block for each tile."""
        sizes = self.nest.sizes
        across, down = -(-sizes[-1] // SIDE), -(-sizes[-2] // SIDE)
        name = self.name(f"tiled{len(self.transposed)}")
        source = render_cuda("elementwise_tiled.cu.j2", name=name, **self._context())
        blocks = across * down * (self.nest.total // (sizes[-1] * sizes[-2]))
        return CudaKernel(name, source, (blocks, 1, 1), (THREADS, 1, 1), tuple(range(len(self.types))), self.scalars(across, down))

    def _context(self) -> dict[str, object]:
        sizes, rank, printed = self.accesses.sizes, self.nest.rank, self.printed()
        outer = [{"index": f"i{axis}", "size": sizes[axis]} for axis in reversed(range(rank - 2))]
        tiles = [{"name": self.accesses.arrays[array], "type": storage_type(self.types[array]), "place": self._place(array)}
                 for array in self.transposed]
        stores = [f"({self._place(number)})[0] = {value};" for number, _, value in self.stores(printed)]
        return {"summary": self.summary({0: "repeated", 1: "contiguous"}), "parameters": self.parameters("across", "down"),
                "index": self.index, "unsigned": f"u{self.index}", "outer": outer, "rows": sizes[-2], "columns": sizes[-1],
                "threads": THREADS, "side": SIDE, "tiles": tiles,
                "body": [*(self.value(array, self._held(array)) for array in self.reads), *printed.lines, *stores]}

    def _indexes(self) -> Mapping[int, str]:
        rank = self.nest.rank
        return {axis: f"i{axis}" for axis in range(rank - 2)} | {rank - 2: "row", rank - 1: "column"}

    def _place(self, array: int) -> str:
        return self.accesses.place(array, self._indexes())

    def _held(self, array: int) -> str:
        return f"{self.accesses.arrays[array]}_tile[across_tile][k]" if array in self.transposed else f"({self._place(array)})[0]"
