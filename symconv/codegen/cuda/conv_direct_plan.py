"""How direct convolution kernels for CUDA are cut into blocks and threads, and which element of an image meets which tap.

Everything here is decided before the source is written: the taps of a thread are written out one by one.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...ops.spec import Kind
from ..conv_common import Geometry
from ..conv_depthwise import axis_taps


@dataclass(frozen=True, slots=True)
class Cut:
    """A block: threads along the width, the height and over planes; each makes `rows` x `columns` results of `filters` filters."""

    across: int
    down: int
    planes: int
    rows: int
    columns: int
    filters: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.across * self.down * self.planes


@dataclass(frozen=True, slots=True)
class AxisPlan:
    """Along one axis: which of a thread's results meets which tap at each element of the image.

    Results are counted in units of `spread`; what unit u reads begins at u * `step` + `first` of the image.  `uses` has for each
    distance behind that the pairs (result, tap) that meet there.  `extent` is how much of the image a block spans.
    """

    step: int
    spread: int
    first: int
    extent: int
    uses: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


@dataclass(frozen=True, slots=True)
class TapProducts:
    """At one distance along the width: what meets there, as (row distance, number of the sum, number of the tap)."""

    offset: int
    lines: tuple[int, ...]
    products: tuple[tuple[int, int, int], ...]


def plan_axis(geometry: Geometry, kind: Kind, axis: int, results: int, threads: int) -> AxisPlan:
    """The plan of `threads` threads beside each other that make `results` results each."""
    forward = kind is not Kind.DGRAD
    step, spread = (geometry.stride[axis], 1) if forward else (1, geometry.stride[axis])
    phases = axis_taps(geometry, kind, axis)
    offsets = [offset for taps in phases for _, offset in taps]
    first, units = min(offsets), results // spread
    uses: dict[int, list[tuple[int, int]]] = {}
    for phase, taps in enumerate(phases):
        for unit in range(units):
            for tap, offset in taps:
                uses.setdefault(unit * step + offset - first, []).append((unit * spread + phase, tap))
    extent = (threads * units - 1) * step + max(offsets) - first + 1
    return AxisPlan(step, spread, first, extent, tuple((offset, tuple(uses[offset])) for offset in sorted(uses)))


def products_of(rows: AxisPlan, columns: AxisPlan, cut: Cut, kernel_width: int) -> tuple[TapProducts, ...]:
    """What a thread multiplies, column after column of the image; a sum's number is row * columns + column of its result."""
    found = []
    for offset, column_uses in columns.uses:
        products = [(line, row * cut.columns + column, tap_row * kernel_width + tap)
                    for column, tap in column_uses for line, row_uses in rows.uses for row, tap_row in row_uses]
        found.append(TapProducts(offset, tuple(line for line, _ in rows.uses), tuple(sorted(products, key=lambda each: each[2]))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Tile:
    """The image in shared memory: rows of `width` elements, those of each phase of the stride side by side in `part` each."""

    height: int
    width: int
    step: int

    @property
    def part(self) -> int:
        """Elements of a row that belong to one phase."""
        return -(-self.width // self.step)

    @property
    def pitch(self) -> int:
        """Elements of a row."""
        return self.part * self.step

    @property
    def elements(self) -> int:
        """Elements of a plane."""
        return self.height * self.pitch

    def place(self, offset: int) -> int:
        """Where in a row the element at a distance lies from the first of its thread."""
        return offset % self.step * self.part + offset // self.step


def power_of_two(number: int) -> int:
    """The least power of two that is not smaller.

    >>> [power_of_two(number) for number in (0, 1, 3, 4, 5)]
    [1, 1, 4, 4, 8]
    """
    return 1 << max(0, number - 1).bit_length()


def taps_text(geometry: Geometry) -> str:
    """What a kernel's name says of the taps that are written out."""
    axes = {"r": geometry.kernel, "u": geometry.stride, "l": geometry.dilation, "p": geometry.pad}
    words = [f"{letter}{numbers[1]}x{numbers[2]}" for letter, numbers in axes.items()]
    return "_".join([*words, *(["flip"] if geometry.flip else [])])
