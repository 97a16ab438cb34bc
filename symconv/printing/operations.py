"""What one node does, in a line: the op's own text, with the programs of fused ops written as mathematics."""
from __future__ import annotations

from collections.abc import Sequence

from ..graph import Apply, Op
from ..ops.basic_indexing import IncSubtensor, Subtensor
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from ..ops.joining import Concatenate
from ..ops.linalg import MatMul
from ..ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from ..ops.lowered.conv_chain import ConvChain
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.lowered.pooled_convolution import PooledConv, PoolPlaces
from ..ops.lowered.reduce_many import ReduceMany
from ..ops.moments import Moments
from ..ops.pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from ..ops.random import Random
from ..ops.reductions import ArgReduce, Reduce
from ..ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from ..ops.unbroadcast import SumTo
from .infix import program_texts
from .names import escape

CATEGORIES: tuple[tuple[str, tuple[type[Op], ...]], ...] = (
    ("convolution", (Conv, ConvChain, PooledConv)),
    ("pooling", (Pool, MaxPoolGrad, MaxPoolGather, AveragePoolGrad, BlockedPool, BlockedPoolGrad, PoolPlaces)),
    ("matrix product", (MatMul,)),
    ("elementwise", (Elementwise, FusedElementwise)),
    ("reduction", (Reduce, ReduceMany, ArgReduce, Moments, SumTo)),
    ("softmax", (Softmax, LogSoftmax, SoftmaxGrad, LogSoftmaxGrad)),
    ("indexing", (Gather, IncSubtensor, ScatterAdd, ScatterSet, Subtensor, Concatenate)),
    ("random", (Random,)),
)


def category(op: Op) -> str:
    """The family of an op, for colours and columns; "other" where it has none of its own."""
    return next((name for name, classes in CATEGORIES if isinstance(op, classes)), "shape and other")


def operation_text(node: Apply) -> str:
    """What a node does: `fused{relu(i0 + i1)}`, where i0, i1, … are its inputs in order."""
    op = node.op
    if isinstance(op, FusedElementwise):
        return f"fused{{{'; '.join(program_texts(op.program, input_names(len(node.inputs))))}}}"
    if isinstance(op, Reduce) and op.prologue is not None:
        options = f"axes={op.axes}{', keepdims' if op.keepdims else ''}"
        return f"{op.kind}{{{options}}} of {{{'; '.join(program_texts(op.prologue, input_names(len(node.inputs))))}}}"
    if isinstance(op, ReduceMany):
        options = f"axes={op.axes}{', keepdims' if op.keepdims else ''}"
        return f"{op.name}{{{options}}} of {{{'; '.join(program_texts(op.program, input_names(len(node.inputs))))}}}"
    if isinstance(op, Conv) and op.epilogue is not None:
        return f"Conv{{{op.kind.value}, {op.spec}}} then {{{epilogue_text(op)}}}"
    return escape(str(op))


def epilogue_text(op: Conv, names: Sequence[str] | None = None) -> str:
    """What is fused behind a convolution, over `conv` and its later inputs (by default i2, i3, …)."""
    if op.epilogue is None:
        return ""
    every = names or input_names(op.n_core_inputs + len(op.epilogue.operands))
    return "; ".join(program_texts(op.epilogue.program, ["conv", *every[op.n_core_inputs:]]))


def input_names(count: int) -> list[str]:
    """i0, i1, …"""
    return [f"i{number}" for number in range(count)]
