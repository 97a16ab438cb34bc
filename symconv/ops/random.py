"""Random numbers as functions of a state: the same state gives the same numbers, on every device and in any order.

A state is a uint64 vector (key, counter).  Block number b of a draw is Philox4x32-10 (`ops/philox.py`) of the 128-bit
counter (counter + b, 0) and the key: words w0 … w3.  With dtypes of up to 32 bits a block gives four elements, with 64 bits
two, whose words are w1·2³² + w0 and w3·2³² + w2.  From words of B bits elements are made so:

- "bits"     the words themselves (uint32 or uint64);
- "uniform"  in [0, 1): the upper p bits of a word times 2^-p, p the dtype's precision (8, 11, 24, 53 bits), which is exact;
- "normal"   mean 0, deviation 1, Box and Muller's pairs: from words v, w: u = (v + ½)·2^-B, t = 2π·w·2^-B, elements
             √(-2 log u)·cos t and √(-2 log u)·sin t, equal on all devices but for rounding.
             (float64: v and w are cut to their upper 53 bits first, and B is 53.)

A draw of n elements uses ⌈n / elements in a block⌉ counters; `advanced` is the state after it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from .array_module import array_module
from .constants import constant
from .elementwise import cast
from .philox import philox_words
from .shape import Size
from .sizes import as_sizes, joined_size, known_sizes, size_vector

Array = np.ndarray[Any, Any]
DISTRIBUTIONS = ("bits", "uniform", "normal")
PRECISION = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
STATE_TYPE = TensorType("uint64", (2,))


@dataclass(frozen=True, slots=True)
class Random(Op):
    """(state, shape) → random numbers of one of `DISTRIBUTIONS` in `dtype`.

    `shape` is an int64 vector; `known` are its sizes that were known when the node was built.
    """

    distribution: str
    dtype: str
    known: tuple[int | None, ...]
    value_inputs: ClassVar[tuple[int, ...]] = (1,)

    @property
    def per_block(self) -> int:
        """Elements that one Philox block gives."""
        return per_block(self.dtype)

    def infer(self, state: TensorType, shape: TensorType) -> tuple[TensorType, ...]:
        if not STATE_TYPE.accepts(state):
            raise GraphTypeError(explain_error("the state of a random stream is a uint64 vector (key, counter)", str(state)))
        if not TensorType("int64", (len(self.known),)).accepts(shape):
            raise GraphTypeError(explain_error("the shape of a random tensor is an int64 vector of its rank", str(shape)))
        return (TensorType(self.dtype, self.known),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        (known,) = self.infer(*types)
        sizes = tuple(int(size) for size in values[1])
        if any(size < 0 for size in sizes):
            raise ShapeError(explain_error("a random tensor has sizes from 0", str(sizes)))
        if not known.accepts(known.with_shape(sizes)):
            raise ShapeError(explain_error(f"a random tensor was built for {known}", f"sizes {sizes}"))
        return (known.with_shape(sizes),)

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        return (None, None)

    def reference(self, state: Array, shape: Array) -> tuple[Array, ...]:
        sizes = tuple(int(size) for size in shape)
        count = int(np.prod(sizes, dtype=np.int64))
        words = philox_words(int(state[0]), int(state[1]), -(-count // self.per_block), array_module(state))
        if self.per_block == 2:
            wide = words.astype(np.uint64)
            words = wide[:, 0::2] | (wide[:, 1::2] << np.uint64(32))
        return (_MAKERS[self.distribution](words, self.dtype).reshape(-1)[:count].reshape(sizes),)

    def __str__(self) -> str:
        return f"Random{{{self.distribution} {self.dtype}}}"


def per_block(dtype: str) -> int:
    """Elements of a dtype that one Philox block gives: 4, or 2 of 64 bits."""
    return 2 if dtypes.itemsize(dtype) == 8 else 4


def _bits(words: Array, dtype: str) -> Array:
    return words


def _uniform(words: Array, dtype: str) -> Array:
    precision = PRECISION[dtype]
    upper = words >> words.dtype.type(8 * words.itemsize - precision)
    return (upper.astype(np.float64) * 2.0 ** -precision).astype(dtypes.numpy_dtype(dtype))


def _normal(words: Array, dtype: str) -> Array:
    bits = 8 * words.itemsize
    if bits == 64:
        words, bits = words >> np.uint64(11), 53
    radius = np.sqrt(-2 * np.log((words[:, 0::2].astype(np.float64) + 0.5) * 2.0 ** -bits))
    angle = 2 * np.pi * (words[:, 1::2].astype(np.float64) * 2.0 ** -bits)
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    return pairs.astype(dtypes.numpy_dtype(dtype))


_MAKERS = {"bits": _bits, "uniform": _uniform, "normal": _normal}


def random(distribution: str, state: Variable, size: Any, dtype: str) -> Variable:
    """Random numbers that depend on the state alone; `size` is an int, a tuple of ints and symbolic scalars, or a vector.

    Raises ArgumentError for an unknown distribution and GraphTypeError for a dtype that it does not have.
    """
    if distribution not in DISTRIBUTIONS:
        raise ArgumentError(explain_error("there is no such random distribution", repr(distribution),
                                          f"use one of {', '.join(DISTRIBUTIONS)}"))
    name = dtypes.canonical(dtype)
    allowed = ("uint32", "uint64") if distribution == "bits" else tuple(PRECISION)
    if name not in allowed:
        raise GraphTypeError(explain_error(f"random {distribution} numbers have no dtype {name}",
                                           do=f"use one of {', '.join(allowed)}"))
    sizes = random_sizes(size)
    return apply_op(Random(distribution, name, tuple(known_sizes(sizes))), state, size_vector(sizes))


def random_sizes(size: Any) -> tuple[Size, ...]:
    """The sizes that a user gives for a random tensor; a ShapeError for negative ones."""
    sizes = as_sizes(size, "a random tensor")
    if any(isinstance(each, int) and each < 0 for each in sizes):
        raise ShapeError(explain_error("a random tensor has sizes from 0", repr(size)))
    return sizes


def advanced(state: Variable, size: Any, dtype: str) -> Variable:
    """The state after a draw of this size and dtype."""
    count = joined_size(random_sizes(size))
    step = per_block(dtypes.canonical(dtype))
    blocks = (count + (step - 1)) // step
    moved = constant(blocks, "uint64") if isinstance(blocks, int) else cast(blocks, "uint64")
    return state + moved * constant([0, 1], "uint64")
