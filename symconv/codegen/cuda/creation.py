"""`ARange`, `Eye` and random numbers on CUDA: each element from its number alone."""
from __future__ import annotations

from typing import cast

from ... import dtypes
from ...graph import Op
from ...ops.creation import ARange, Eye
from ...ops.philox import KEY_STEPS, MULTIPLIERS, ROUNDS
from ...ops.random import PRECISION, Random
from ...target import Target
from ..boxes import word_type
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..scalar_printer import storage_type, stored
from .kernel import CudaImplementation, LaunchPlan
from .looping import THREADS, element_kernel
from .printing import render_cuda

_ONES = {"float16": "0x3c00", "bfloat16": "0x3f80", "float32": "0x3f800000", "float64": "0x3ff0000000000000"}
_PI = "3.14159265358979323846"


class ARangeElements(CudaImplementation):
    """Element i is start + i·step in the wide type, rounded once."""

    name = "arange_elements"

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        op, (z,) = cast(ARange, problem.op), problem.outputs
        wide = dtypes.DTYPES[op.wide].c_name
        value = f"start + ({wide})i * step"
        if op.dtype == "bool":
            value = f"({value}) != 0"
        elif op.dtype in ("float16", "bfloat16"):
            value = stored(op.dtype, f"(float)({value})")
        else:
            value = f"({dtypes.DTYPES[op.dtype].c_name})({value})"
        name = f"sc_arange_{SUFFIXES[op.dtype]}"
        source = render_cuda("arange.cu.j2", title=f"start, start + step, … in {op.dtype}", name=name, threads=THREADS,
                             type=storage_type(op.dtype), wide=wide, value=value)
        return _plan(name, source, (0, 1, 3), z.size, z.nbytes, z.size)


class EyeElements(CudaImplementation):
    """Ones on a diagonal, else zeros."""

    name = "eye_elements"

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        (z,) = problem.outputs
        name = f"sc_eye_{SUFFIXES[z.dtype]}"
        source = render_cuda("eye.cu.j2", title=f"ones of {z.dtype} on a diagonal", name=name, threads=THREADS,
                             word=word_type(z.dtype), one=_ONES.get(z.dtype, "1"))
        return _plan(name, source, (0, len(problem.inputs)), z.size, z.nbytes, *z.shape)


class PhiloxElements(CudaImplementation):
    """A thread for each Philox block; "bits" and "uniform" are equal to the reference to the last bit."""

    name = "philox_elements"

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        op, (z,) = cast(Random, problem.op), problem.outputs
        name = f"sc_random_{op.distribution}_{SUFFIXES[op.dtype]}"
        body, values = _elements(op)
        source = render_cuda("philox.cu.j2", title=f"random {op.distribution} numbers of {op.dtype}", name=name, threads=THREADS,
                             per_block=op.per_block, storage=storage_type(op.dtype), rounds=ROUNDS, body=body, values=values,
                             multipliers=tuple(f"{number:#x}u" for number in MULTIPLIERS),
                             key_steps=tuple(f"{number:#x}u" for number in KEY_STEPS))
        return _plan(name, source, (0, 1), -(-z.size // op.per_block), z.nbytes, z.size)


def _elements(op: Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Statements after the rounds, and the expression of each element of the block."""
    wide = op.per_block == 2
    words = ("((uint64_t)c1 << 32 | c0)", "((uint64_t)c3 << 32 | c2)") if wide else ("c0", "c1", "c2", "c3")
    if op.distribution == "bits":
        return (), words
    if op.distribution == "normal":
        return _normals(op, words, wide)
    precision, bits, real = PRECISION[op.dtype], 64 if wide else 32, "double" if wide else "float"
    suffix = "" if wide else "f"
    return (), tuple(stored(op.dtype, f"({real})({word} >> {bits - precision}) * 0x1p-{precision}{suffix}") for word in words)


def _normals(op: Random, words: tuple[str, ...], wide: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Box and Muller's pairs, computed in double, rounded once."""
    lines, values = [], []
    scale = "0x1p-53" if wide else "0x1p-32"
    for pair in range(0, len(words), 2):
        one, other = (f"({word} >> 11)" if wide else word for word in words[pair:pair + 2])
        lines += [f"const double radius{pair} = sqrt(-2.0 * log(((double){one} + 0.5) * {scale}));",
                  f"const double angle{pair} = 2 * {_PI} * ((double){other} * {scale});"]
        for function in ("cos", "sin"):
            value = f"radius{pair} * {function}(angle{pair})"
            values.append(value if wide else stored(op.dtype, f"(float)({value})"))
    return tuple(lines), tuple(values)


def _plan(name: str, source: str, buffers: tuple[int, ...], threads: int, nbytes: int, *numbers: int) -> LaunchPlan:
    if nbytes == 0:
        return LaunchPlan(())
    return LaunchPlan((element_kernel(name, source, threads, buffers, numbers),), bytes=nbytes)


IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = {
    ARange: (ARangeElements(),), Eye: (EyeElements(),), Random: (PhiloxElements(),)}
