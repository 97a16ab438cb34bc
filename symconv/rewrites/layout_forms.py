"""What nodes are on tensors whose channels lie in blocks, or last: the same node of other operands, or none.

    conv(x, w)       = from_blocked(conv'(to_blocked(x), w))          conv' with a layout; x plain if its channels do not divide
    f(x, v, …)       = from_blocked(f(to_blocked(x), v', …))          elementwise; v' is v with its channel axis split
    pool(x)          = from_blocked(pool'(to_blocked(x)))             windows over all spatial axes
    reduce(x)        = reshape(reduce'(to_blocked(x)))                over all spatial axes, with or without batch and channels

With channels last (GPUs) the gradients have forms too:

    dgrad(y, w)      = from_blocked(dgrad'(to_blocked(y), w))         wgrad(x, y) = wgrad'(to_blocked(x), to_blocked(y))
    pool_grad(x, gy) = from_blocked(pool_grad'(to_blocked(x), to_blocked(gy)))
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..graph import Apply, TensorType, Variable, apply_op
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.epilogue import FULL
from ..ops.layout import CHANNELS_LAST, Layout, blocked_shape, to_blocked
from ..ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from ..ops.pooling import AveragePoolGrad, MaxPoolGrad, Pool
from ..ops.reductions import Reduce
from ..ops.shape import dimshuffle, reshape
from ..ops.spec import Kind

_RANKS = (3, 4, 5)


def divides(variable: Variable, block: int) -> bool:
    """Whether a variable is a tensor (N, C, *spatial) whose channels divide into blocks."""
    shape = variable.type.shape
    return len(shape) in _RANKS and variable.type.is_static and bool(shape[1]) and (shape[1] or 0) % block == 0


def blocked_type(variable: Variable, block: int) -> TensorType:
    """The type of a variable in blocks."""
    return variable.type.with_shape(blocked_shape(variable.type.shape, block))


@dataclass(frozen=True, slots=True)
class Form:
    """A node whose result can lie in blocks; `images` are the inputs that must lie in blocks then.

    `makes_plain`: only its images lie in blocks, the result never does (the gradient of filters).
    """

    node: Apply
    block: int
    images: tuple[Variable, ...]
    makes_plain: bool = False

    def build(self, blocked: Mapping[Variable, Variable]) -> Variable:
        """The node on its images in blocks; the result lies in blocks too."""
        op = self.node.op
        if isinstance(op, Conv):
            inputs = [blocked[each] if each in self.images else each for each in self.node.inputs]
            return apply_op(conv_in_blocks(op, self.block, self.node.inputs[0] in self.images), *inputs)
        if isinstance(op, Pool):
            return apply_op(BlockedPool(op), blocked[self.images[0]])
        if isinstance(op, (MaxPoolGrad, AveragePoolGrad)):
            return apply_op(BlockedPoolGrad(op.pool, self.node.outputs[0].type.static_shape[2:]),
                            *(blocked[each] for each in self.node.inputs[:1 if isinstance(op, AveragePoolGrad) else 2]))
        result = self.node.outputs[0]
        return apply_op(op, *(blocked[each] if each in self.images else operand_in_blocks(each, result, self.block)
                              for each in self.node.inputs))


def find_form(node: Apply, block: int) -> Form | None:
    """The form of a node in blocks, None where it has none."""
    if len(node.outputs) != 1 or not divides(node.outputs[0], block):
        return None
    if block == CHANNELS_LAST and (form := _gradient_form(node, block)) is not None:
        return form
    if isinstance(node.op, Elementwise):
        shape = node.outputs[0].type.shape
        return Form(node, block, tuple(dict.fromkeys(each for each in node.inputs if each.type.shape == shape)))
    if isinstance(node.op, Pool) and node.op.rank == node.inputs[0].ndim - 2:
        return Form(node, block, (node.inputs[0],))
    if isinstance(node.op, Conv) and node.op.kind is Kind.FPROP and node.op.layout is None:
        read = node.inputs[:1] if divides(node.inputs[0], block) else []
        return Form(node, block, tuple(dict.fromkeys((*read, *_full_operands(node, node.op)))))
    return None


def _gradient_form(node: Apply, block: int) -> Form | None:
    """Of the gradients that networks have."""
    op = node.op
    if isinstance(op, Conv) and op.layout is None and op.kind is Kind.WGRAD and op.epilogue is None:
        return Form(node, block, tuple(dict.fromkeys(node.inputs[:2])), makes_plain=True)
    if isinstance(op, Conv) and op.layout is None and op.kind is Kind.DGRAD:
        return Form(node, block, tuple(dict.fromkeys((node.inputs[0], *_full_operands(node, op)))))
    if isinstance(op, (MaxPoolGrad, AveragePoolGrad)) and op.pool.rank == node.outputs[0].ndim - 2:
        return Form(node, block, tuple(dict.fromkeys(node.inputs[:1 if isinstance(op, AveragePoolGrad) else 2])))
    return None


def _full_operands(node: Apply, op: Conv) -> list[Variable]:
    """What the epilogue reads of the result's shape."""
    operands = op.epilogue.operands if op.epilogue is not None else ()
    return [each for each, place in zip(node.inputs[op.n_core_inputs:], operands, strict=True) if place == FULL]


def conv_in_blocks(op: Conv, block: int, reads_blocks: bool) -> Conv:
    """A convolution with its result, and where told the image that it reads, in blocks; a gradient with both."""
    return replace(op, layout=Layout(block if reads_blocks or op.kind is not Kind.FPROP else 0, block))


def operand_in_blocks(operand: Variable, result: Variable, block: int) -> Variable:
    """A smaller operand of an elementwise node so that it broadcasts to the node's result in blocks."""
    if operand.ndim == 0:
        return operand
    full = dimshuffle(operand, (*["x"] * (result.ndim - operand.ndim), *range(operand.ndim)))
    if block != CHANNELS_LAST and full.type.shape[1] == 1:
        return dimshuffle(full, (*range(full.ndim), "x"))
    return to_blocked(full, block)


def is_exit(node: Apply, block: int) -> bool:
    """Whether a node makes something plain from an image that may lie in blocks: a reduction over all spatial axes."""
    if not isinstance(node.op, Reduce) or node.op.prologue is not None or not divides(node.inputs[0], block):
        return False
    return set(range(2, node.inputs[0].ndim)) <= set(node.op.axes)


def build_exit(node: Apply, blocked: Variable, block: int) -> Variable:
    """The result of such a node from its image in blocks."""
    op = node.op
    assert isinstance(op, Reduce)
    if block == CHANNELS_LAST:
        axes = tuple(sorted(0 if axis == 0 else blocked.ndim - 1 if axis == 1 else axis - 1 for axis in op.axes))
    else:
        axes = (*op.axes, blocked.ndim - 1) if 1 in op.axes else op.axes
    return reshape(apply_op(replace(op, axes=axes), blocked), node.outputs[0].type.static_shape)
