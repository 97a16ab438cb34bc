"""Sizes as users write them: ints, symbolic scalars, vectors; and what is known of symbolic ones without running.

A size is a Python int where it is known, else an int64 scalar variable.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import GraphTypeError, ShapeError, explain_error
from ..graph import Apply, Constant, Variable, apply_op
from .constants import constant
from .shape import DimShuffle, MakeVector, Shape, Size, shape_sizes
from .shape_rules import StaticShape, known_product

_LARGEST_WALK = 64  # nodes, and elements of each


def size_vector(sizes: Sequence[Size]) -> Variable:
    """An int64 vector of sizes: a constant where all are known."""
    if all(isinstance(size, int) for size in sizes):
        return constant(np.array(sizes, dtype=np.int64))
    whole = _whole_shape(sizes)
    if whole is not None:
        return whole
    return apply_op(MakeVector(), *(constant(size, "int64") if isinstance(size, int) else size for size in sizes))


def _whole_shape(sizes: Sequence[Size]) -> Variable | None:
    """The node `x.shape` where the sizes are those of one x, all in order."""
    source = next(filter(None, (shape_source(size) for size in sizes if not isinstance(size, int))), None)
    if source is None or len(sizes) != source[0].ndim:
        return None
    x = source[0]
    for axis, size in enumerate(sizes):
        own = size == x.type.shape[axis] if isinstance(size, int) else shape_source(size) == (x, axis)
        if not own:
            return None
    return apply_op(Shape(), x)


def as_sizes(shape: Any, what: str) -> tuple[Size, ...]:
    """What a user gives as a shape as a tuple of sizes; a GraphTypeError for anything that is no shape."""
    if isinstance(shape, Variable) and shape.ndim == 1:
        return _vector_sizes(shape, what)
    if isinstance(shape, np.ndarray):
        shape = shape.tolist()
    entries = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(as_size(entry, what) for entry in entries)


def as_size(entry: Any, what: str) -> Size:
    """One size: an int, or an integer scalar variable (an int where its value is known)."""
    if isinstance(entry, Variable):
        if entry.ndim != 0 or not dtypes.is_integer(entry.dtype):
            raise GraphTypeError(explain_error(f"{what} takes integer scalars as sizes", f"{entry.label}: {entry.type}"))
        value = known_scalar(entry)
        return entry.astype("int64") if value is None else value
    if isinstance(entry, (bool, np.bool_)) or not hasattr(entry, "__index__"):
        raise GraphTypeError(explain_error(f"{what} takes sizes that are ints or symbolic integer scalars", repr(entry)))
    return int(entry)


def _vector_sizes(vector: Variable, what: str) -> tuple[Size, ...]:
    length = vector.type.shape[0]
    if not dtypes.is_integer(vector.dtype):
        raise GraphTypeError(explain_error(f"{what} takes an integer vector as the new shape", str(vector.type)))
    if length is None:
        raise ShapeError(explain_error(f"the rank of {what} must be known when it is built",
                                       f"a shape {vector!r} of unknown length", "give a vector with a static length"))
    sizes = vector_sizes(vector)
    return tuple([as_size(vector[axis], what) for axis in range(length)] if sizes is None else sizes)


def known_sizes(sizes: Sequence[Size]) -> list[int | None]:
    """The ints among sizes, None for the others."""
    return [size if isinstance(size, int) else None for size in sizes]


def joined_size(sizes: Sequence[Size]) -> Size:
    """The product of sizes."""
    known = math.prod(size for size in sizes if isinstance(size, int))
    result: Size = known
    for size in sizes:
        if not isinstance(size, int):
            result = size if isinstance(result, int) and result == 1 else result * size
    return 0 if known == 0 else result


def vector_sizes(vector: Variable, depth: int = 8) -> list[Size] | None:
    """The elements of an integer vector as sizes: of a shape, of a part of one, of sizes joined; else None."""
    node = vector.apply
    if node is not None and depth:
        if isinstance(node.op, Shape):
            return list(shape_sizes(node.inputs[0]))
        if isinstance(node.op, MakeVector):
            return [as_size(scalar, "a shape") for scalar in node.inputs]
        joined = _composed_sizes(node, depth - 1)
        if joined is not None:
            return joined
    value = known_value(vector)
    return None if value is None else [int(size) for size in value]


def _composed_sizes(node: Apply, depth: int) -> list[Size] | None:
    """Sizes of `vector[a:b]`, of vectors joined, and of a scalar made a vector."""
    from .basic_indexing import Slice, Subtensor
    from .joining import Concatenate

    first = node.inputs[0]
    match node.op:
        case Subtensor((Slice() as part,)) if len(node.inputs) == 1:
            sizes = vector_sizes(first, depth)
            return None if sizes is None else sizes[part.fixed]
        case Concatenate():
            parts = [vector_sizes(each, depth) for each in node.inputs]
            return [size for part in parts for size in part or ()] if None not in parts else None
        case DimShuffle((None,), 0) if dtypes.is_integer(first.dtype):
            return [as_size(first, "a shape")]
    return None


def known_scalar(scalar: Variable) -> int | None:
    """The value of an integer scalar where it needs no run: constants, static sizes, arithmetic of these."""
    source = shape_source(scalar)
    if source is not None:
        return source[0].type.shape[source[1]]
    value = known_value(scalar)
    return None if value is None else int(value)


def shape_source(scalar: Variable) -> tuple[Variable, int] | None:
    """(x, axis) where the scalar is `x.shape[axis]`, else None."""
    from .basic_indexing import Subtensor

    node = scalar.apply
    if node is None or not isinstance(node.op, Subtensor) or len(node.inputs) != 1:
        return None
    vector, pattern = node.inputs[0].apply, node.op.pattern
    if vector is None or not isinstance(vector.op, Shape) or not isinstance(pattern[0], int):
        return None
    x = vector.inputs[0]
    return x, pattern[0] % x.ndim


def known_value(variable: Variable) -> np.ndarray[Any, Any] | None:
    """The value of an integer scalar or small vector that depends on constants and static sizes only, else None."""
    if isinstance(variable, Constant):
        return variable.data
    nodes = _small_nodes(variable)
    if nodes is None:
        return None
    values: dict[Variable, np.ndarray[Any, Any]] = {}
    for node in nodes:
        if isinstance(node.op, Shape):
            results: Sequence[Any] = (np.array(node.inputs[0].type.static_shape, dtype=np.int64),)
        else:
            results = node.op.reference(*(each.data if isinstance(each, Constant) else values[each] for each in node.inputs))
        values.update(zip(node.outputs, map(np.asarray, results), strict=True))
    return values[variable]


def _small_nodes(variable: Variable) -> list[Apply] | None:
    """The nodes that compute a small integer from constants and static shapes, inputs first; None where it needs more."""
    order: dict[Apply, None] = {}
    stack = [(variable, False)]
    while stack:
        each, expanded = stack.pop()
        node = each.apply
        if isinstance(each, Constant) or node in order:
            continue
        if node is None or len(stack) > _LARGEST_WALK or len(order) > _LARGEST_WALK or not _is_small(node):
            return None
        if expanded or isinstance(node.op, Shape):
            order[node] = None
        else:
            stack.append((each, True))
            stack.extend((below, False) for below in node.inputs)
    return list(order)


def _is_small(node: Apply) -> bool:
    """Whether a node makes a few integers and can be computed while building."""
    if isinstance(node.op, Shape):
        return node.inputs[0].type.is_static
    types = [each.type for each in (*node.inputs, *node.outputs)]
    return all(type.is_static and math.prod(type.static_shape) <= _LARGEST_WALK and not dtypes.is_float(type.dtype)
               for type in types)


def rest_of(x: Variable, sizes: Sequence[Size], known: StaticShape) -> StaticShape:
    """The size of -1 in a reshape of x where the unknown sizes of x stand in the new shape too, as `x.shape[axis]`."""
    if -1 not in sizes:
        return known
    old = list(x.type.shape)
    rest = list(sizes)
    rest.remove(-1)
    for size in sizes:
        source = None if isinstance(size, int) else shape_source(size)
        if source is not None and source[0] is x and old[source[1]] is None:
            old[source[1]] = 1
            rest.remove(size)
    total, given = known_product(old), known_product(known_sizes(rest))
    if total is None or not given or total % given:
        return known
    place = list(sizes).index(-1)
    return (*known[:place], total // given, *known[place + 1:])
