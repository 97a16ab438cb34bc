"""How each operation is written in mathematics, over terms for its inputs."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..graph import Apply, Constant
from ..ops.basic_indexing import IncSubtensor, Subtensor, pattern_text
from ..ops.convolution import Conv
from ..ops.elementwise import Elementwise
from ..ops.integer_indexing import Gather
from ..ops.joining import Concatenate
from ..ops.linalg import MatMul
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.lowered.reduce_many import ReduceMany
from ..ops.moments import Moments
from ..ops.padding import Pad
from ..ops.pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from ..ops.random import Random
from ..ops.reductions import ArgReduce, Reduce
from ..ops.shape import BroadcastTo, DimShuffle, MakeVector, Reshape, Shape
from ..ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from ..ops.spec import Kind
from ..ops.specify_shape import SpecifyShape
from .infix import ATOM, Term, binary, bracketed, call, joined, program_terms, scalar_term
from .names import escape

Share = Callable[[Term], Term]


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a phrase is made from: the node, a term for each input, and what gives long repeated parts a name."""

    node: Apply
    terms: Sequence[Term]
    share: Share

    @property
    def op(self) -> Any:
        """The node's op."""
        return self.node.op


def phrase(made: Phrase) -> list[Term]:
    """A term for every output of a node."""
    write = _PHRASES.get(type(made.op), _plain)
    found = write(made)
    if isinstance(found, list):
        return found
    count = len(made.node.outputs)
    return [found] if count == 1 else [joined([found, f"[{number}]"]) for number in range(count)]


def _plain(made: Phrase) -> Term:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", escape(made.op.name)).lower()
    return call(name, made.terms)


def _elementwise(made: Phrase) -> Term:
    if made.op.scalar == "cast" and isinstance(made.node.inputs[0], Constant):
        return made.terms[0]
    return scalar_term(made.op.scalar, made.terms, made.op.dtype)


def _fused(made: Phrase) -> list[Term]:
    return program_terms(made.op.program, made.terms, made.share)


def _reduce(made: Phrase) -> Term:
    op = made.op
    argument = made.terms[0] if op.prologue is None else program_terms(op.prologue, made.terms, made.share)[0]
    return _reduction(made, op, argument)


def _reduction(made: Phrase, op: Reduce, argument: Term) -> Term:
    ndim = max(variable.ndim for variable in made.node.inputs)
    options = [] if op.axes == tuple(range(ndim)) else [f"axis={op.axes[0] if len(op.axes) == 1 else op.axes}"]
    return call(op.kind, [argument, *options, *(["keepdims=True"] if op.keepdims else [])])


def _reduce_many(made: Phrase) -> list[Term]:
    arguments = program_terms(made.op.program, made.terms, made.share)
    return [_reduction(made, part, argument) for part, argument in zip(made.op.parts, arguments, strict=True)]


def _moments(made: Phrase) -> list[Term]:
    return [call(name, [*made.terms, f"axis={made.op.axes}", "keepdims=True"]) for name in ("mean", "var")]


def _along_axis(name: str) -> Callable[[Phrase], Term]:
    return lambda made: call(name, [*made.terms, f"axis={made.op.axis}"])


def _argreduce(made: Phrase) -> Term:
    return call(made.op.kind, [*made.terms, f"axis={made.op.axis}"])


def _matmul(made: Phrase) -> Term:
    return binary("@", *made.terms)


def _dimshuffle(made: Phrase) -> Term:
    axes = [axis for axis in made.op.pattern if axis is not None]
    if axes == sorted(axes):
        return made.terms[0]  # only axes of size 1 come or go: broadcasting
    if made.op.pattern == (1, 0):
        return joined([bracketed(made.terms[0], ATOM), ".T"])
    if len(axes) == len(made.op.pattern) == made.op.ndim:
        return call("transpose", [made.terms[0], str(tuple(axes))])
    pattern = ", ".join("'x'" if axis is None else str(axis) for axis in made.op.pattern)
    return call("dimshuffle", [made.terms[0], f"({pattern})"])


def _first(made: Phrase) -> Term:
    return made.terms[0]


def _reshape(made: Phrase) -> Term:
    sizes = made.node.inputs[1]
    if isinstance(sizes, Constant):
        return call("reshape", [made.terms[0], str(tuple(sizes.data.tolist()))])
    return call("reshape", made.terms)


def _make_vector(made: Phrase) -> Term:
    pieces = _listed(made.terms)
    return joined(["(", *pieces, ",)" if len(made.terms) == 1 else ")"])


def _listed(terms: Sequence[Term]) -> list[str | Term]:
    """Terms with commas between them."""
    pieces: list[str | Term] = []
    for number, term in enumerate(terms):
        pieces += [", ", term] if number else [term]
    return pieces


def _shape(made: Phrase) -> Term:
    return joined([bracketed(made.terms[0], ATOM), ".shape"])


def _indexed(made: Phrase, scalars: Sequence[Term]) -> Term:
    """x[pattern] with the scalars in the places that the pattern leaves open."""
    pieces: list[str | Term] = [bracketed(made.terms[0], ATOM), "["]
    waiting = iter(scalars)
    pattern = pattern_text(made.op.pattern)
    while pattern.endswith(", :"):
        pattern = pattern.removesuffix(", :")
    for number, text in enumerate(pattern.split("?")):
        pieces += [next(waiting), text] if number else [text]
    return joined([*pieces, "]"])


def _subtensor(made: Phrase) -> Term:
    return _indexed(made, made.terms[1:])


def _inc_subtensor(made: Phrase) -> Term:
    return call(f"{made.op.mode if made.op.mode == 'set' else 'inc'}_subtensor",
                [_indexed(made, made.terms[2:]), made.terms[1]])


def _gather(made: Phrase) -> Term:
    return joined([bracketed(made.terms[0], ATOM), "[", *_listed(made.terms[1:]), "]"])


def _concatenate(made: Phrase) -> Term:
    return call("concatenate", [joined(["[", *_listed(made.terms), "]"]), f"axis={made.op.axis}"])


def _conv(made: Phrase) -> list[Term]:
    op: Conv = made.op
    name = f"conv{op.spec.ndim}d" + ("" if op.kind is Kind.FPROP else f"_{op.kind.value}")
    term = call(name, [*made.terms[:2], *_conv_options(op)])
    if op.epilogue is None:
        return [term]
    return program_terms(op.epilogue.program, [term, *made.terms[op.n_core_inputs:]], made.share)


def _conv_options(op: Conv) -> list[str]:
    spec, options = op.spec, []
    if any(pad != (0, 0) for pad in spec.padding):
        options.append("border_mode=" + _one_or_all([pad if isinstance(pad, str) else _pair(pad) for pad in spec.padding]))
    for name, values in (("stride", spec.stride), ("dilation", spec.dilation)):
        if set(values) != {1}:
            options.append(f"{name}={_one_or_all([str(value) for value in values])}")
    if spec.groups != 1:
        options.append(f"groups={spec.groups}")
    return options if spec.flip else [*options, "flip=False"]


def _pair(pad: tuple[int, int]) -> str:
    return str(pad[0]) if pad[0] == pad[1] else str(pad)


def _one_or_all(texts: list[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else f"({', '.join(texts)})"


def _pool_options(pool: Pool) -> list[str]:
    options = [_sizes(pool.window)]
    if pool.stride != pool.window:
        options.append(f"stride={_sizes(pool.stride)}")
    if set(pool.pad_lo + pool.pad_hi) != {0}:
        pads = [_pair(pair) for pair in zip(pool.pad_lo, pool.pad_hi, strict=True)]
        options.append(f"pad={_one_or_all(pads)}")
    return options


def _sizes(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _pool(made: Phrase) -> Term:
    return call(f"{made.op.mode}_pool", [*made.terms, *_pool_options(made.op)])


def _pool_gradient(name: str) -> Callable[[Phrase], Term]:
    return lambda made: call(name, [*made.terms, *_pool_options(made.op.pool)])


def _pad(made: Phrase) -> Term:
    return call("pad", [*made.terms, _one_or_all([_pair(pair) for pair in zip(made.op.before, made.op.after, strict=True)])])


def _random(made: Phrase) -> Term:
    return call(made.op.distribution, made.terms)


_PHRASES: dict[type, Callable[[Phrase], Term | list[Term]]] = {
    Elementwise: _elementwise, FusedElementwise: _fused, Reduce: _reduce, ArgReduce: _argreduce, MatMul: _matmul,
    ReduceMany: _reduce_many, Moments: _moments,
    DimShuffle: _dimshuffle, BroadcastTo: _first, SpecifyShape: _first, Reshape: _reshape, MakeVector: _make_vector,
    Shape: _shape, Subtensor: _subtensor, IncSubtensor: _inc_subtensor, Gather: _gather, Concatenate: _concatenate,
    Conv: _conv, Pool: _pool, MaxPoolGrad: _pool_gradient("max_pool_grad"),
    MaxPoolGather: _pool_gradient("max_pool_gather"), AveragePoolGrad: _pool_gradient("average_pool_grad"),
    Softmax: _along_axis("softmax"), LogSoftmax: _along_axis("log_softmax"), SoftmaxGrad: _along_axis("softmax_grad"),
    LogSoftmaxGrad: _along_axis("log_softmax_grad"), Pad: _pad, Random: _random,
}
