"""What kernels that move elements share: C types, ranks from 1, when to use threads."""
from __future__ import annotations

from .. import dtypes

PARALLEL_ELEMENTS = 1 << 15  # elements moved; below, starting threads costs more than they gain
WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


def word_type(dtype: str) -> str:
    """The C type as which an element is moved: only its size counts.

    >>> word_type("bfloat16"), word_type("float64")
    ('uint16_t', 'uint64_t')
    """
    return WORDS[dtypes.itemsize(dtype)]


def scalar_type(dtype: str) -> str:
    """The C type in which an element is computed with."""
    return dtypes.DTYPES[dtype].c_name


def from_rank_one(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes or strides, of a scalar as those of a vector of one element."""
    return numbers or (1,)


def sum_statement(dtype: str) -> str | None:
    """The C assignment that adds to an element: `|=` for bools, whose sum is true or false; None for half floats.

    >>> sum_statement("int8"), sum_statement("bool"), sum_statement("float16")
    ('+=', '|=', None)
    """
    if dtype in ("float16", "bfloat16"):
        return None
    return "|=" if dtype == "bool" else "+="
