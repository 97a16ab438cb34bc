"""Random numbers on the CPU: Philox blocks in vectors, each a function of the state and its number, so made by any thread.

"bits" and "uniform" are equal to the reference to the last bit.  Normals of up to 32 bits are computed in double with series
that err by less than 1e-11, and rounded once; float64 normals call the C library.
"""
from __future__ import annotations

from typing import cast

from ..graph import Op
from ..ops.philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from ..ops.random import PRECISION, Random
from ..target import Target
from .helpers import SUFFIXES
from .implementation import Implementation
from .kernel import Kernel, Problem
from .scalar_printer import storage_type, stored
from .templates import render_kernel

_PARALLEL_FROM = 1 << 13  # elements; an element costs some ten times what a copied one does


class PhiloxBlocks(Implementation):
    """64 blocks at a time: their words, then their elements."""

    name = "philox_blocks"

    def build(self, problem: Problem, target: Target) -> Kernel:
        op, (z,) = cast(Random, problem.op), problem.outputs
        bits = 128 // op.per_block
        value = "double" if op.dtype == "float64" else "float"
        name = f"sc_random_{op.distribution}_{SUFFIXES[op.dtype]}"
        source = render_kernel(
            "philox.c.j2", function=name, problem=f"random {op.distribution} numbers of {op.dtype}",
            distribution=op.distribution, per_block=op.per_block, bits=bits, word=f"uint{bits}_t", value=value,
            storage=storage_type(op.dtype), body=_body(op, bits), rounds=ROUNDS, parallel_from=_PARALLEL_FROM,
            multipliers=[f"{number:#x}u" for number in MULTIPLIERS], key_steps=[f"{number:#x}u" for number in KEY_STEPS])
        return Kernel(name, source, (z.size,), flops=z.size * 4 * ROUNDS, bytes=z.nbytes)


def _body(op: Random, bits: int) -> list[str]:
    """C statements that make the elements of block b."""
    words = ([f"words[{number}][b]" for number in range(4)] if bits == 32 else
             [f"((uint64_t)words[{number + 1}][b] << 32 | words[{number}][b])" for number in (0, 2)])
    if op.distribution == "normal":
        return [line for number in range(0, len(words), 2) for line in _pair(op, words[number:number + 2], number)]
    return [f"z[b * PER_BLOCK + {number}] = {_element(op, word, bits)};" for number, word in enumerate(words)]


def _element(op: Random, word: str, bits: int) -> str:
    if op.distribution == "bits":
        return word
    precision = PRECISION[op.dtype]
    # the upper bits fit a signed integer, from which vectors convert faster
    value = f"({'double' if bits == 64 else 'float'})(int{bits}_t)({word} >> {bits - precision}) * 0x1p-{precision}"
    return stored(op.dtype, value if bits == 64 else value + "f")


def _pair(op: Random, words: list[str], number: int) -> list[str]:
    value = "double" if op.dtype == "float64" else "float"
    names = [f"value{number}", f"value{number + 1}"]
    return [f"{value} {', '.join(names)};", f"normal_pair({', '.join(words)}, &{names[0]}, &{names[1]});",
            *(f"z[b * PER_BLOCK + {number + place}] = {stored(op.dtype, each)};" for place, each in enumerate(names))]


IMPLEMENTATIONS: dict[type[Op], tuple[Implementation, ...]] = {Random: (PhiloxBlocks(),)}
