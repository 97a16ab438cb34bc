"""Winograd's minimal filtering: the exact Cook-Toom matrices of F(m, r), and straight-line C for products with them.

F(m, r) makes m neighbouring results of a correlation with r taps from n = m + r - 1 inputs by n products instead of m * r:

    result = A [(G taps) * (B data)]              along one axis
    result = A [(G taps G') * (B data B')] A'     along two, F(m x m, r x r)

(Winograd, Arithmetic Complexity of Computations, 1980; Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016.)
The matrices follow from n - 1 points at which polynomials are evaluated; the n-th point is infinity.  All are exact fractions.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ..errors import InternalError

Matrix = tuple[tuple[Fraction, ...], ...]

POINTS = {2: ("0", "1", "-1"), 4: ("0", "5/8", "-5/8", "3/2", "-3/2")}
"""The finite points for 2 and 4 results of 3 taps: in pairs p, -p, which share the even and the odd part of what they sum.

Their powers are exact floats, and errors of rounding are small: 1.7 to 2 times those of a direct sum over 32 channels and more,
where the usual points 1, -1, 2, -2 have 4 times as much.  With 6 results and the best such points it is 7 to 8 times.
"""

WGRAD_POINTS = {2: POINTS[2], 4: ("0", "11/16", "-11/16", "3/2", "-3/2")}
"""The finite points for 3 results of 2 and 4 taps. Errors of rounding are 1.0 to 1.5 times those of direct sums in the form of a
matrix product with 2 taps, 2.7 to 3.4 times with 4; these points have the smallest largest error.
"""


@dataclass(frozen=True, slots=True)
class Transforms:
    """The matrices of F(m, r): `result` (m, n), `taps` (n, r) and `data` (n, n)."""

    result: Matrix
    taps: Matrix
    data: Matrix

    @property
    def size(self) -> int:
        """n: inputs of a tile along an axis, and products."""
        return len(self.data)


@lru_cache(maxsize=16)
def cook_toom(results: int, taps: int, points: tuple[str, ...]) -> Transforms:
    """The matrices of F(results, taps) for finite points given as fractions ("1/2").

    >>> [str(each) for each in cook_toom(2, 3, ("0", "1", "-1")).data[0]]
    ['-1', '0', '1', '0']
    """
    at = [Fraction(point) for point in points]
    if len(set(at)) != results + taps - 2:
        raise InternalError(f"F({results}, {taps}) needs {results + taps - 2} different points, not {points}")
    infinity = len(at)
    result = tuple((*(p ** power for p in at), Fraction(power == results - 1)) for power in range(results))
    others = [[q for q in at if q != p] for p in at]
    kernel = [tuple(p ** power / _product([p - q for q in rest]) for power in range(taps))
              for p, rest in zip(at, others, strict=True)]
    data = [_polynomial(rest, infinity + 1) for rest in others]
    kernel.append(tuple(Fraction(power == taps - 1) for power in range(taps)))
    data.append(_polynomial(at, infinity + 1))
    return Transforms(result, tuple(kernel), tuple(data))


def _product(factors: Sequence[Fraction]) -> Fraction:
    product = Fraction(1)
    for factor in factors:
        product *= factor
    return product


def _polynomial(roots: Sequence[Fraction], length: int) -> tuple[Fraction, ...]:
    """Coefficients, lowest power first, of the polynomial with these roots and leading coefficient 1."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *coefficients], [*(root * each for each in coefficients), Fraction(0)]
        coefficients = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return tuple(coefficients) + (Fraction(0),) * (length - len(coefficients))


@lru_cache(maxsize=256)
def straight_line(matrix: Matrix, source: str, target: str, c_type: str = "vec") -> tuple[str, ...]:
    """C statements for target = matrix * source; both are templates of names (`"x{}"`).

    What two columns or two rows have in common is worked out once: columns of equal magnitudes become a sum and a difference;
    rows that differ in the signs of their odd columns share the even and the odd part.

    >>> for line in straight_line(((Fraction(1), Fraction(2)), (Fraction(1), Fraction(-2))), "x{}", "y{}"):
    ...     print(line)
    const vec even0 = x0, odd0 = 2.0f * x1;
    const vec y0 = even0 + odd0, y1 = even0 - odd0;
    """
    names = [source.format(column) for column in range(len(matrix[0]))]
    rows, names, lines = _pair_columns([list(row) for row in matrix], names, c_type)
    done: set[int] = set()
    for index, row in enumerate(rows):
        if index in done:
            continue
        partner = next((other for other in range(index + 1, len(rows)) if other not in done and _mirrored(row, rows[other])), None)
        if partner is None:
            lines.append(f"const {c_type} {target.format(index)} = {_sum(row, names)};")
            continue
        done.add(partner)
        even, odd = ([each if column % 2 == side else Fraction(0) for column, each in enumerate(row)] for side in (0, 1))
        lines.append(f"const {c_type} even{index} = {_sum(even, names)}, odd{index} = {_sum(odd, names)};")
        lines.append(f"const {c_type} {target.format(index)} = even{index} + odd{index}, "
                     f"{target.format(partner)} = even{index} - odd{index};")
    return tuple(lines)


def _pair_columns(rows: list[list[Fraction]], names: list[str], c_type: str) -> tuple[list[list[Fraction]], list[str], list[str]]:
    """Columns j, j + 1 of equal magnitudes in every row (not all of them equal) are replaced by their sum and difference."""
    lines: list[str] = []
    for j in range(1, len(names) - 1, 2):
        pairs = [(row[j], row[j + 1]) for row in rows]
        if all(abs(a) == abs(b) for a, b in pairs) and len({a == b for a, b in pairs if a}) == 2:
            lines.append(f"const {c_type} sum{j} = {names[j]} + {names[j + 1]}, difference{j} = {names[j]} - {names[j + 1]};")
            for row, (a, b) in zip(rows, pairs, strict=True):
                row[j], row[j + 1] = (a, Fraction(0)) if a == b else (Fraction(0), a)
            names = [*names[:j], f"sum{j}", f"difference{j}", *names[j + 2:]]
    return rows, names, lines


def _mirrored(row: Sequence[Fraction], other: Sequence[Fraction]) -> bool:
    """Whether the rows differ, and only in the signs of the odd columns."""
    return (any(row[::2]) and any(row[1::2]) and tuple(row[::2]) == tuple(other[::2])
            and all(a == -b for a, b in zip(row[1::2], other[1::2], strict=True)))


def _sum(row: Sequence[Fraction], names: Sequence[str]) -> str:
    """The C expression of a row's sum; terms of coefficient one come first, so that the others are multiply-adds."""
    text = ""
    terms = [(value, name) for value, name in zip(row, names, strict=True) if value]
    for value, name in sorted(terms, key=lambda term: (abs(term[0]) != 1, term[0] < 0)):
        term = name if abs(value) == 1 else f"{float(abs(value))!r}f * {name}"
        sign = "-" if value < 0 else "+"
        text += f" {sign} {term}" if text else (f"-{term}" if value < 0 else term)
    return text
