"""How a kernel with nested loops names its arrays, sizes and strides, and addresses elements.

Sizes and strides are run-time numbers with names (`n0`, `in1_s0`); what the source itself knows is which strides are 0, and
which are 1 in the loops that are said to be `inner`.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from .loops import LoopNest
from .scalar_printer import compute_type, load, storage_type


class Accesses:
    """Arrays read and written by one loop nest, with the run-time numbers of the kernel."""

    def __init__(self, nest: LoopNest, arrays: Sequence[str], dtypes: Sequence[str], n_outputs: int,
                 inner: Sequence[int] = ()) -> None:
        self.nest = nest
        self.arrays = list(arrays)
        self.dtypes = list(dtypes)
        self.n_outputs = n_outputs
        self.names: list[str] = []
        self.values: list[int] = []
        self.inner = {axis % nest.rank for axis in inner}
        self.sizes = [self.number(f"n{axis}", size) for axis, size in enumerate(nest.sizes)]
        self.steps = [[self._step(array, axis) for axis in range(nest.rank)] for array in range(len(self.arrays))]

    def number(self, name: str, value: int) -> str:
        """Add a run-time number; its name."""
        self.names.append(name)
        self.values.append(value)
        return name

    def _step(self, array: int, axis: int) -> str:
        stride = self.nest.strides[array][axis]
        if stride == 0:
            return ""
        if stride == 1 and axis in self.inner:
            return "1"
        return self.number(f"{self.arrays[array]}_s{axis}", stride)

    def declarations(self) -> list[str]:
        """The typed pointers, without their values."""
        return [f"{self._const(number)}{storage_type(dtype)} *const {name}"
                for number, (name, dtype) in enumerate(zip(self.arrays, self.dtypes, strict=True))]

    def _const(self, array: int) -> str:
        return "" if array < self.n_outputs else "const "

    def place(self, array: int, indexes: Mapping[int, str]) -> str:
        """The C expression of an address: the array and what the given loops (axis to index) add."""
        return " + ".join([self.arrays[array], *self._terms(array, indexes)])

    def offset(self, array: int, indexes: Mapping[int, str]) -> str:
        """The same as a number of elements from the array's start."""
        return " + ".join(self._terms(array, indexes)) or "0"

    def _terms(self, array: int, indexes: Mapping[int, str]) -> list[str]:
        return [text for axis, index in indexes.items() if (text := product(index, self.steps[array][axis]))]

    def row(self, array: int, indexes: Mapping[int, str]) -> str:
        """The line that declares the pointer to a row."""
        c_type = self._const(array) + storage_type(self.dtypes[array])
        return f"{c_type} *const {self.arrays[array]}_row = {self.place(array, indexes)};"

    def reading(self, array: int, index: str, axis: int = -1) -> str:
        """The line that reads `x<number of the input>` from its row."""
        place = f"{self.arrays[array]}_row[{product(index, self.steps[array][axis]) or '0'}]"
        dtype = self.dtypes[array]
        return f"const {compute_type(dtype)} x{array - self.n_outputs} = {load(dtype, place)};"

    def is_repeated(self, array: int, axis: int = -1) -> bool:
        """Whether an array stays at one element along a loop."""
        return not self.steps[array][axis]


def product(index: str, step: str) -> str:
    """`index * step` with what is known of the step: "" (0) or "1"."""
    if not step:
        return ""
    if step == "1":
        return index
    return f"({index}) * {step}" if " " in index else f"{index} * {step}"
