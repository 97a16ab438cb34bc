"""Operations that only rename elements: dimshuffle, reshape, broadcast, full slices. Exact for every dtype.

    dimshuffle(dimshuffle(x)) = dimshuffle(x)           the pattern that changes nothing = x
    reshape(reshape(x), s) = reshape(x, s)              reshape to x's own shape = x
    reshape that only adds or drops axes of size 1 = dimshuffle
    broadcast(broadcast(x), s) = broadcast(x, s)        broadcast to x's own shape = x
    x[:, :] = x                                         stop_gradient(x) = x (gradients have been taken)
    0 with flip(0) += y is flip(y)                      shape(f(x)) = shape(x) for elementwise f, softmax
    transpose(A · B) = transpose(B) · transpose(A)      where only the transpose reads the product

Reshapes and broadcasts check sizes; one is dropped only where its own sizes are static, so no error is lost.
"""
from __future__ import annotations

from ..graph import Apply, Variable, apply_op
from ..ops.basic_indexing import IncSubtensor, Slice, Subtensor
from ..ops.linalg import MatMul
from ..ops.shape import BroadcastTo, DimShuffle, Reshape, Shape, dimshuffle
from ..ops.stop_gradient import StopGradient
from .context import Context
from .rule import Answer, Rule, rule
from .values import shape_root, uniform_value

BACKWARDS = (Slice(None, None, -1), Slice(-1, None, -1))
"""Slices that reverse a whole axis."""


def _made_by(variable: Variable, op_class: type) -> Apply | None:
    """The node of a variable if its op is of this class."""
    node = variable.apply
    return node if node is not None and isinstance(node.op, op_class) else None


@rule(DimShuffle)
def merge_dimshuffles(node: Apply, context: Context) -> Answer:
    """dimshuffle(dimshuffle(x)) = dimshuffle(x); x where nothing changes."""
    outer: DimShuffle = node.op  # type: ignore[assignment]
    (x,) = node.inputs
    if _keeps_every_axis(outer, x):
        return x
    below = _made_by(x, DimShuffle)
    if below is None:
        return None
    inner: DimShuffle = below.op  # type: ignore[assignment]
    pattern = tuple(None if axis is None else inner.pattern[axis] for axis in outer.pattern)
    return dimshuffle(below.inputs[0], ["x" if axis is None else axis for axis in pattern])


def _keeps_every_axis(op: DimShuffle, x: Variable) -> bool:
    """Whether each axis stays in its place; one of size 1 may be dropped and put back."""
    places = zip(op.pattern, range(op.ndim), x.type.shape, strict=False)
    return len(op.pattern) == op.ndim and all(found == axis or (found is None and size == 1) for found, axis, size in places)


@rule(Reshape, reads=Reshape)
def merge_reshapes(node: Apply, context: Context) -> Answer:
    """reshape(reshape(x), s) = reshape(x, s)"""
    x, shape = node.inputs
    below = _made_by(x, Reshape)
    if below is None or not x.type.is_static or not below.inputs[0].type.is_static:
        return None
    return apply_op(node.op, below.inputs[0], shape)


@rule(Reshape)
def drop_reshape(node: Apply, context: Context) -> Answer:
    """reshape(x, shape of x) = x"""
    (x, _), (result,) = node.inputs, node.outputs
    return x if x.type.is_static and x.type == result.type else None


@rule(Reshape)
def reshape_as_dimshuffle(node: Apply, context: Context) -> Answer:
    """A reshape that only adds or drops axes of size 1 is a dimshuffle."""
    (x, _), (result,) = node.inputs, node.outputs
    if not (x.type.is_static and result.type.is_static):
        return None
    axes = [axis for axis, size in enumerate(x.type.static_shape) if size != 1]
    if [x.type.shape[axis] for axis in axes] != [size for size in result.type.static_shape if size != 1]:
        return None
    rest = iter(axes)
    return dimshuffle(x, ["x" if size == 1 else next(rest) for size in result.type.static_shape])


@rule(BroadcastTo)
def drop_broadcast(node: Apply, context: Context) -> Answer:
    """broadcast(x, shape of x) = x"""
    (x, _), (result,) = node.inputs, node.outputs
    return x if x.type.is_static and x.type == result.type else None


@rule(BroadcastTo, reads=BroadcastTo)
def merge_broadcasts(node: Apply, context: Context) -> Answer:
    """broadcast(broadcast(x), s) = broadcast(x, s)"""
    x, shape = node.inputs
    below = _made_by(x, BroadcastTo)
    return None if below is None or not x.type.is_static else apply_op(node.op, below.inputs[0], shape)


@rule(Subtensor)
def drop_full_slice(node: Apply, context: Context) -> Answer:
    """x[:, :] = x"""
    op: Subtensor = node.op  # type: ignore[assignment]
    full = all(isinstance(entry, Slice) and entry.is_full for entry in op.pattern)
    return node.inputs[0] if full else None


@rule(IncSubtensor)
def write_everything(node: Apply, context: Context) -> Answer:
    """0 with flip(0) += y is flip(y): the gradient of a flip; set everywhere, whatever was there before"""
    op: IncSubtensor = node.op  # type: ignore[assignment]
    x, y = node.inputs[:2]
    if not all(isinstance(entry, Slice) and (entry.is_full or entry in BACKWARDS) for entry in op.pattern):
        return None
    if y.type != x.type or not y.type.is_static or (op.mode == "add" and uniform_value(x) != 0):
        return None
    return apply_op(Subtensor(op.pattern), y)


@rule(Shape)
def shape_of_elementwise(node: Apply, context: Context) -> Answer:
    """shape(f(x)) = shape(x), so that a shape keeps no value alive"""
    root = shape_root(node.inputs[0])
    return None if root is node.inputs[0] else apply_op(Shape(), root)


@rule(StopGradient)
def drop_stop_gradient(node: Apply, context: Context) -> Answer:
    """stop_gradient(x) = x once gradients have been taken"""
    return node.inputs[0]


@rule(DimShuffle, reads=MatMul)
def transpose_product(node: Apply, context: Context) -> Answer:
    """transpose(A · B) = transpose(B) · transpose(A)"""
    op: DimShuffle = node.op  # type: ignore[assignment]
    product = _made_by(node.inputs[0], MatMul)
    if product is None or op.pattern != (1, 0) or op.ndim != 2 or not context.has_one_reader(node.inputs[0]):
        return None
    a, b = product.inputs
    return apply_op(product.op, dimshuffle(b, (1, 0)), dimshuffle(a, (1, 0))) if a.ndim == b.ndim == 2 else None


RULES: tuple[Rule, ...] = (
    merge_dimshuffles, merge_reshapes, drop_reshape, reshape_as_dimshuffle, drop_broadcast, merge_broadcasts,
    drop_full_slice, write_everything, shape_of_elementwise, drop_stop_gradient, transpose_product)
