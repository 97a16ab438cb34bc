"""Zero padding and flipped filters become parameters of the convolution that they feed, also in its gradients.

    conv(pad(x), w) = conv with more padding (x, w)            and the same for the weight gradient of a padded image
    crop(image gradient of the padded image) = image gradient with more padding, where only the crop reads it
    conv(x, w[:, :, ::-1, ::-1]) = conv of the other mode (x, w)       (convolution ↔ cross-correlation)
    flip(weight gradient) = weight gradient of the other mode, where only the flip reads it
    a padding rule (`half`, `same`) whose sizes are known = its numbers

Conditions: the padding is by the constant 0, of spatial axes only; the convolution's own padding is known in numbers.  The
flip is of all spatial axes and of no other.

Floats: a padded zero times an infinite or NaN weight is NaN, while kernels leave padding out of the sum, as the meaning of
`padding` has it; no other value changes.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..graph import Apply, Variable, apply_op
from ..ops.basic_indexing import Slice, Subtensor
from ..ops.conv_builders import conv_dgrad
from ..ops.convolution import Conv
from ..ops.padding import Pad
from ..ops.spec import ConvSpec, Kind
from .context import Context
from .movement import BACKWARDS
from .rule import Answer, Rule, rule
from .values import uniform_value


@rule(Conv)
def fold_padding(node: Apply, context: Context) -> Answer:
    """conv(pad(x), w) = conv with more padding (x, w)"""
    op: Conv = node.op  # type: ignore[assignment]
    padded = node.inputs[0].apply
    if op.kind is Kind.DGRAD or padded is None or not isinstance(padded.op, Pad) or uniform_value(padded.inputs[1]) != 0:
        return None
    spec = _more_padding(op.spec, padded.op.before, padded.op.after)
    return None if spec is None else apply_op(replace(op, spec=spec), padded.inputs[0], *node.inputs[1:])


def _more_padding(spec: ConvSpec, before: Sequence[int], after: Sequence[int]) -> ConvSpec | None:
    if not spec.is_resolved or any((*before[:2], *after[:2])):
        return None
    return replace(spec, pad_lo=tuple(map(sum, zip(spec.pad_lo, before[2:], strict=True))),
                   pad_hi=tuple(map(sum, zip(spec.pad_hi, after[2:], strict=True))))


@rule(Subtensor)
def fold_cropping(node: Apply, context: Context) -> Answer:
    """crop(image gradient) = image gradient with more padding"""
    op: Subtensor = node.op  # type: ignore[assignment]
    made = node.inputs[0].apply
    if made is None or not isinstance(made.op, Conv) or made.op.kind is not Kind.DGRAD or made.op.epilogue is not None:
        return None
    borders = [_border(entry) for entry in op.pattern]
    if not any(border and any(border) for border in borders) or not context.has_one_reader(node.inputs[0]):
        return None
    found = [border for border in borders if border is not None]
    if len(found) < len(borders):
        return None
    spec = _more_padding(made.op.spec, [low for low, _ in found], [high for _, high in found])
    if spec is None:
        return None
    sizes = [size if size is not None else made.inputs[2][axis] - sum(found[axis])
             for axis, size in enumerate(node.outputs[0].type.shape)]
    return conv_dgrad(made.inputs[0], made.inputs[1], sizes, spec)


def _border(entry: object) -> tuple[int, int] | None:
    """How much a slice leaves out on both sides; None where it is no plain crop."""
    if not isinstance(entry, Slice) or entry.step not in (None, 1):
        return None
    low, high = entry.start or 0, -(entry.stop or 0) if isinstance(entry.stop, (int, type(None))) else -1
    return (low, high) if isinstance(low, int) and low >= 0 and high >= 0 else None


def _is_flip(node: Apply | None, ndim: int) -> bool:
    """Whether a node reverses the last `ndim` axes of its input and leaves the first two."""
    if node is None or not isinstance(node.op, Subtensor) or len(node.op.pattern) != ndim + 2:
        return False
    first, spatial = node.op.pattern[:2], node.op.pattern[2:]
    return all(isinstance(entry, Slice) and entry.is_full for entry in first) and all(
        entry in BACKWARDS for entry in spatial)


@rule(Conv)
def fold_flip(node: Apply, context: Context) -> Answer:
    """conv(x, flip(w)) = conv of the other mode (x, w)"""
    op: Conv = node.op  # type: ignore[assignment]
    w = node.inputs[1].apply
    if op.kind is Kind.WGRAD or w is None or not _is_flip(w, op.spec.ndim):
        return None
    return apply_op(_other_mode(op), node.inputs[0], w.inputs[0], *node.inputs[2:])


@rule(Subtensor)
def fold_gradient_flip(node: Apply, context: Context) -> Answer:
    """flip(weight gradient) = weight gradient of the other mode"""
    made = node.inputs[0].apply
    if made is None or not isinstance(made.op, Conv) or made.op.kind is not Kind.WGRAD or made.op.epilogue is not None:
        return None
    if not _is_flip(node, made.op.spec.ndim) or not context.has_one_reader(node.inputs[0]):
        return None
    return apply_op(_other_mode(made.op), *made.inputs)


def _other_mode(op: Conv) -> Conv:
    return replace(op, spec=replace(op.spec, flip=not op.spec.flip))


@rule(Conv)
def resolve_padding(node: Apply, context: Context) -> Answer:
    """A padding rule whose sizes are known is its numbers."""
    op: Conv = node.op  # type: ignore[assignment]
    if op.spec.is_resolved:
        return None
    shapes = {**dict(zip(op.kind.reads, (each.type.shape for each in node.inputs), strict=False)),
              op.kind.produces: node.outputs[0].type.shape}
    spec = op.spec.resolved(shapes["x"][2:], shapes["w"][2:])
    return None if spec == op.spec else apply_op(replace(op, spec=spec), *node.inputs)


def conv_of(variable: Variable) -> Apply | None:
    """The node of a variable if it is a convolution."""
    node = variable.apply
    return node if node is not None and isinstance(node.op, Conv) else None


RULES: tuple[Rule, ...] = (resolve_padding, fold_padding, fold_cropping, fold_flip, fold_gradient_flip)
