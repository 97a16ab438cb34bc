"""The small C functions that kernels call (`prelude.h.j2`), put in front of a kernel as far as it uses them.

A helper is named `sc_WHAT_TYPE`, as `sc_exp_f32`, with the types of `SUFFIXES`.  Whoever generates C just calls them:
`with_helpers` finds the names in the text and adds their definitions and what those use, in the prelude's order.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .. import dtypes
from .threads import pool_header

SUFFIXES = {"bool": "b8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16",
            "uint32": "u32", "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
INCLUDES = "#include <stdint.h>\n#include <math.h>\n"
_ROUND_PRODUCTS = """#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize ("fp-contract=off")
#endif"""
_THREADS = re.compile(r"#pragma omp parallel|\bomp_\w+\(")
_NAME = re.compile(r"\bsc_\w+")
_DEFINES = re.compile(r"^(?:static inline [^(]*?|#define )\b(sc_\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pieces:
    """A text of small functions, cut at empty lines: the pieces, which piece defines a name, and the names each piece uses."""

    texts: tuple[str, ...]
    defined: dict[str, int]
    uses: tuple[frozenset[str], ...]


def cut(text: str, without: frozenset[str] = frozenset()) -> Pieces:
    """The pieces of a text, but for those that define a name of `without`."""
    every = (piece.strip("\n") for piece in re.split(r"\n\s*\n", text) if piece.strip())
    texts = tuple(piece for piece in every if without.isdisjoint(_DEFINES.findall(piece)))
    defined = {name: number for number, piece in enumerate(texts) for name in _DEFINES.findall(piece)}
    return Pieces(texts, defined, tuple(frozenset(_NAME.findall(piece)) - frozenset(_DEFINES.findall(piece)) for piece in texts))


def prelude() -> str:
    """The text of all helpers."""
    from .templates import render

    return render("prelude.h.j2", **_context())


@lru_cache(maxsize=1)
def _prelude_pieces() -> Pieces:
    return cut(prelude())


def _context() -> dict[str, Any]:
    rows = [row for row in dtypes.DTYPES.values() if row.kind in "iu"]
    integers = [{"suffix": SUFFIXES[row.name], "type": row.c_name, "signed": row.kind == "i", "bits": 8 * row.itemsize,
                 "unsigned_type": f"uint{8 * row.itemsize}_t"} for row in rows]
    floats = [{"suffix": "f32", "type": "float", "f": "f"}, {"suffix": "f64", "type": "double", "f": ""}]
    return {"integers": integers, "floats": floats}


def helpers_for(text: str, pieces: Pieces | None = None) -> str:
    """The definitions of every helper that a C text uses, directly or through others, each before those that call it.

    `pieces` are those to choose from; the prelude's by default.
    """
    found = pieces or _prelude_pieces()
    order: dict[int, None] = {}

    def add(names: frozenset[str]) -> None:
        for number in sorted({found.defined[name] for name in names if name in found.defined} - order.keys()):
            if number not in order:
                add(found.uses[number])
                order[number] = None

    add(frozenset(_NAME.findall(text)))
    return "\n\n".join(found.texts[number] for number in order)


def with_helpers(text: str, rounds_products: bool = False) -> str:
    """A kernel's text with includes and helpers after its first comment.

    `rounds_products`: every product is rounded before it is added to something, as NumPy's is, so that `x*x - y*y` is 0 where x
    equals y (joined into one instruction it may be just below, and its square root NaN).
    """
    head, rest = "", text
    if text.startswith("/*"):
        end = text.index("*/") + 2
        head, rest = text[:end] + "\n", text[end:].lstrip("\n")
    elif text.startswith("//"):
        match = re.match(r"(//[^\n]*\n)+", text)
        head = match.group() if match else ""
        rest = text[len(head):]
    parts = (pool_header() if _THREADS.search(rest) else "", helpers_for(rest), _ROUND_PRODUCTS if rounds_products else "")
    helpers = "\n\n".join(filter(None, parts))
    return f"{head}{INCLUDES}\n{helpers}\n\n{rest}" if helpers else f"{head}{INCLUDES}\n{rest}"
