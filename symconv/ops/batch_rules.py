"""How each op but the convolution is applied to a batch (`batching.py`): mostly the same op, one axis further back."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph import Variable, apply_op
from ..graph.node import make_apply
from .basic_indexing import IncSubtensor, Slice, Subtensor
from .batching import BatchedNode, batch_rule
from .creation import arange
from .cumulative import Cumulative
from .elementwise import Elementwise
from .gradient_control import GradientControl
from .integer_indexing import Gather, ScatterAdd, ScatterSet
from .joining import Concatenate, concatenate
from .linalg import MatMul
from .moments import Moments
from .padding import Pad
from .pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from .reductions import ArgReduce, Reduce
from .shape import BroadcastTo, DimShuffle, Reshape, broadcast_to, dimshuffle, reshape
from .sizes import size_vector
from .softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from .sorting import ArgSort
from .specify_shape import SpecifyShape
from .stop_gradient import StopGradient
from .tensordot import MatchSizes
from .unbroadcast import SumTo


@batch_rule(GradientControl, StopGradient, Pool)
def _same_op(work: BatchedNode) -> Variable:
    """Ops that take any number of axes in front."""
    return apply_op(work.op, work.inputs[0])


@batch_rule(MaxPoolGrad, MaxPoolGather, SumTo)
def _same_op_of_whole_inputs(work: BatchedNode) -> Variable:
    """Ops of two inputs that take any number of axes in front and do not broadcast them."""
    return apply_op(work.op, *work.all_spread())


@batch_rule(Elementwise)
def _elementwise(work: BatchedNode) -> Variable:
    ndim = work.node.outputs[0].ndim
    return apply_op(work.op, *(work.in_front(place, ndim) if has else each
                               for place, (each, has) in enumerate(zip(work.inputs, work.batched, strict=True))))


@batch_rule(MatMul)
def _matmul(work: BatchedNode) -> Variable:
    return apply_op(work.op, work.in_front(0), work.in_front(1))


@batch_rule(Reduce)
def _reduce(work: BatchedNode) -> Variable | None:
    if work.op.prologue is not None:
        return None
    return apply_op(replace(work.op, axes=tuple(axis + 1 for axis in work.op.axes)), work.inputs[0])


@batch_rule(Moments)
def _moments(work: BatchedNode) -> Sequence[Variable]:
    return make_apply(Moments(tuple(axis + 1 for axis in work.op.axes)), work.inputs).outputs


@batch_rule(ArgReduce, ArgSort, Cumulative, Softmax, LogSoftmax, SoftmaxGrad, LogSoftmaxGrad, Concatenate)
def _along_an_axis(work: BatchedNode) -> Variable:
    return apply_op(replace(work.op, axis=work.op.axis + 1), *work.all_spread())


@batch_rule(DimShuffle)
def _dimshuffle(work: BatchedNode) -> Variable:
    return dimshuffle(work.inputs[0], [0, *(None if axis is None else axis + 1 for axis in work.op.pattern)])


@batch_rule(Reshape)
def _reshape(work: BatchedNode) -> Variable | None:
    if not work.batched[0] or work.batched[1]:
        return None
    return reshape(work.inputs[0], _with_batch(work, 1), ndim=work.op.ndim + 1)


@batch_rule(BroadcastTo)
def _broadcast_to(work: BatchedNode) -> Variable | None:
    if not work.batched[0] or work.batched[1]:
        return None
    return broadcast_to(work.in_front(0, work.op.ndim), _with_batch(work, 1))


def _with_batch(work: BatchedNode, place: int) -> Variable:
    """The sizes of the node's result with the batch's in front; input `place` has those that are not known."""
    known = work.node.outputs[0].type
    if known.is_static:
        return size_vector((work.size, *known.static_shape))
    return concatenate([size_vector((work.size,)), work.inputs[place]])


@batch_rule(MatchSizes)
def _match_sizes(work: BatchedNode) -> Variable:
    further = int(work.batched[1])
    return apply_op(MatchSizes(tuple((own + 1, other + further) for own, other in work.op.pairs)), work.spread(0), work.inputs[1])


@batch_rule(SpecifyShape)
def _specify_shape(work: BatchedNode) -> Variable:
    return apply_op(SpecifyShape((None, *work.op.known)), work.inputs[0])


@batch_rule(AveragePoolGrad)
def _average_pool_grad(work: BatchedNode) -> Variable | None:
    if work.batched[1]:
        return None
    size = work.size if isinstance(work.size, int) else None
    return apply_op(AveragePoolGrad(work.op.pool, (size, *work.op.known)), work.inputs[0], _with_batch(work, 1))


@batch_rule(Pad)
def _pad(work: BatchedNode) -> Variable | None:
    if work.batched[1]:
        return None
    return apply_op(Pad((0, *work.op.before), (0, *work.op.after)), *work.inputs)


@batch_rule(Subtensor)
def _subtensor(work: BatchedNode) -> Variable | None:
    if any(work.batched[1:]):
        return None
    return apply_op(Subtensor((Slice(), *work.op.pattern)), *work.inputs)


@batch_rule(IncSubtensor)
def _inc_subtensor(work: BatchedNode) -> Variable | None:
    if any(work.batched[2:]):
        return None
    whole = IncSubtensor((Slice(), *work.op.pattern), work.op.mode)
    return apply_op(whole, work.spread(0), work.in_front(1), *work.inputs[2:])


@batch_rule(Gather)
def _gather(work: BatchedNode) -> Variable | None:
    n, (x, *indices) = work.op.n_index_axes, work.inputs
    if any(work.batched[1:]):
        return apply_op(Gather(n + 1), work.spread(0), *_indices_of_each(work, 1))
    return _to_front(apply_op(Gather(n), _from_front(x, n), *indices), indices[0].ndim)


@batch_rule(ScatterAdd, ScatterSet)
def _scatter(work: BatchedNode) -> Variable | None:
    """The batch's axis stands behind the indexed ones in the meantime."""
    if any(work.batched[2:]):
        return apply_op(replace(work.op, n_index_axes=work.op.n_index_axes + 1), work.spread(0), work.in_front(1),
                        *_indices_of_each(work, 2))
    n, indices = work.op.n_index_axes, work.inputs[2:]
    written = apply_op(work.op, _from_front(work.spread(0), n), _from_front(work.in_front(1), indices[0].ndim), *indices)
    return _to_front(written, n)


def _indices_of_each(work: BatchedNode, first: int) -> list[Variable]:
    """Which of the batch, and where in it: the inputs from `first` on, of which some are others for each of the batch."""
    indices = [work.in_front(place) for place in range(first, len(work.inputs))]
    return [dimshuffle(arange(work.size), [0] + ["x"] * (indices[0].ndim - 1)), *indices]


def _from_front(x: Variable, place: int) -> Variable:
    """x with its first axis behind the next `place`."""
    return dimshuffle(x, [*range(1, place + 1), 0, *range(place + 1, x.ndim)])


def _to_front(x: Variable, place: int) -> Variable:
    """x with the axis `place` first."""
    return dimshuffle(x, [place, *range(place), *range(place + 1, x.ndim)])
