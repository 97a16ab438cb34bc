"""The convolution op. There is one, for every kind, rank, stride, dilation, padding, group count and fused epilogue.

`Conv(FPROP, spec)(x, w)` makes y, `Conv(DGRAD, spec)(y, w, shape of x)` makes x, `Conv(WGRAD, spec)(x, y, shape of w)`
makes w.  Each is linear in both of its tensors, and all three come from one trilinear form, so the gradient of any kind with
respect to its input of role r is the kind that produces r, fed the cotangent in place of the old result; in any order.
Transposed convolution is DGRAD.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import dtypes
from ..errors import GraphTypeError, InternalError, ShapeError, explain_error
from ..graph import Apply, Op, TensorType, Variable, apply_op
from ..graph.node import Array
from . import conv_reference
from .conv_problem import ConvProblem
from .epilogue import CHANNEL, Epilogue
from .layout import Layout, array_from_blocked, array_to_blocked, blocked_shape, plain_shape
from .shape import shape as shape_of
from .shape_rules import shape_text
from .spec import ConvSpec, Kind, Role, Sizes, check_output, filters_shape, image_shape, output_shape


@dataclass(frozen=True, slots=True)
class Conv(Op):
    """A convolution of one kind; inputs: its two tensors, for DGRAD and WGRAD the int64 shape of the result, then the
    epilogue's operands.

    Both tensors have one float dtype, which the result has too unless the epilogue gives another.  Sums run in
    `spec.accumulator(dtype)`.  `known` are the sizes of the result that the builder of a DGRAD or WGRAD knew.
    Empty batches, channels and filters are legal: the result is zeros where the sum is empty.  `layout`, set by rewrites only, says
    which of image and response lie in blocks of channels (`ops/layout.py`); their shapes are then those in memory.
    """

    kind: Kind
    spec: ConvSpec
    epilogue: Epilogue | None = None
    known: Sizes | None = None
    layout: Layout | None = None

    @property
    def value_inputs(self) -> tuple[int, ...]:
        """The position of the shape input."""
        return () if self.kind is Kind.FPROP else (2,)

    @property
    def n_core_inputs(self) -> int:
        """How many inputs come before the epilogue's operands."""
        return 2 if self.kind is Kind.FPROP else 3

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return (self._result(types, self.known),)

    def infer_bound(self, types: Sequence[TensorType], values: Mapping[int, Array]) -> tuple[TensorType, ...]:
        if self.kind is Kind.FPROP:
            return self.infer(*types)
        sizes = tuple(int(size) for size in values[2])
        if self.known is not None:
            meet_sizes(self.known, sizes, self)
        return (self._result(types, sizes),)

    def _result(self, types: Sequence[TensorType], known: Sizes | None) -> TensorType:
        if len(types) != self.n_core_inputs + len(self.epilogue.operands if self.epilogue else ()):
            raise InternalError(f"{self} with {len(types)} inputs")
        dtype = _checked_dtype(self, types)
        shapes = {role: plain_shape(type.shape, self.block(role)) for role, type in zip(self.kind.reads, types, strict=False)}
        result = self._result_shape(shapes, known)
        if self.kind is not Kind.FPROP and (types[2].dtype != "int64" or types[2].shape not in ((None,), (len(result),))):
            raise GraphTypeError(explain_error(f"{self} takes the shape of its result as an int64 vector [{len(result)}]",
                                               str(types[2])))
        if self.epilogue is not None:
            self._check_operands(result, types[self.n_core_inputs:])
            dtype = self.epilogue.dtype
        return TensorType(dtype, blocked_shape(result, self.block(self.kind.produces)))

    def block(self, role: Role) -> int:
        """The size of the channel blocks that the tensor of a role lies in, 0 where it is plain."""
        return 0 if self.layout is None else self.layout.block(role)

    def _result_shape(self, shapes: Mapping[Role, Sizes], known: Sizes | None) -> Sizes:
        """The shape of the result from those of the inputs and what else is known of it."""
        if self.kind is Kind.FPROP:
            return output_shape(shapes["x"], shapes["w"], self.spec)
        told = (image_shape(shapes["y"], shapes["w"], self.spec) if self.kind is Kind.DGRAD
                else filters_shape(shapes["x"], shapes["y"], self.spec))
        result = told if known is None else meet_sizes(told, known, self)
        every = {**shapes, self.kind.produces: result}
        check_output(every["x"], every["w"], every["y"], self.spec)
        return result

    def _check_operands(self, result: Sizes, types: Sequence[TensorType]) -> None:
        assert self.epilogue is not None
        for place, type, dtype in zip(self.epilogue.operands, types, self.epilogue.program.inputs[1:], strict=True):
            full = blocked_shape(result, self.block(self.kind.produces))
            wanted = TensorType(dtype, (result[1],) if place == CHANNEL else full)
            if not wanted.accepts(type):
                raise InternalError(f"{self}: an epilogue operand is {type}, not {wanted}")

    def grad(self, apply: Apply, cotangents: Sequence[Variable | None]) -> Sequence[Variable | None]:
        if self.epilogue is not None or self.layout is not None:
            raise InternalError(f"the gradient of {self}: epilogues are fused after gradients are taken, layouts chosen too")
        (cotangent,) = cotangents
        if cotangent is None:
            return (None,) * len(apply.inputs)
        tensors = dict(zip(self.kind.reads, apply.inputs, strict=False))
        values = {**tensors, self.kind.produces: cotangent}
        gradients = [_apply(Kind.producing(role), self.spec, values, like) for role, like in tensors.items()]
        return (*gradients, *(None for _ in self.value_inputs))

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        blocks = [self.block(role) for role in self.kind.reads]
        first, second = (array_from_blocked(array, block) for array, block in zip(inputs[:2], blocks, strict=True))
        rest = list(inputs[2:])
        if self.kind is Kind.FPROP:
            result = conv_reference.fprop(first, second, self.spec)
        else:
            types = [TensorType(array.dtype.name, array.shape) for array in inputs]
            shape = self.infer_bound(types, {2: rest.pop(0)})[0].static_shape
            shape = tuple(size or 0 for size in plain_shape(shape, self.block(self.kind.produces)))
            run = conv_reference.dgrad if self.kind is Kind.DGRAD else conv_reference.wgrad
            result = run(first, second, shape, self.spec)
        block = self.block(self.kind.produces)
        if self.epilogue is not None:
            operands = [_along_channels(array, result.ndim) if place == CHANNEL else array_from_blocked(array, block)
                        for place, array in zip(self.epilogue.operands, rest, strict=True)]
            (result,) = self.epilogue.program.evaluate(result, *operands)
        return (array_to_blocked(result, block),)

    def problem(self, inputs: Sequence[TensorType | Any], output: TensorType | Any) -> ConvProblem:
        """The concrete problem, for inputs and an output with static `shape` and `dtype` (types, or a kernel's operands)."""
        roles = zip((*self.kind.reads, self.kind.produces), (*inputs[:2], output), strict=True)
        shapes = {role: tuple(size or 0 for size in plain_shape(each.shape, self.block(role))) for role, each in roles}
        return ConvProblem(self.kind, self.spec.resolved(shapes["x"][2:], shapes["w"][2:]), shapes["x"], shapes["w"],
                           inputs[0].dtype, output.dtype, "" if self.epilogue is None else str(self.epilogue), self.layout)

    def __str__(self) -> str:
        fused = f", {self.epilogue}" if self.epilogue is not None else ""
        layout = "" if self.layout is None else f", {self.layout.text(*self.kind.ends, self.spec.ndim)}"
        return f"Conv{{{self.kind.value}, {self.spec}{layout}{fused}}}"


def _checked_dtype(op: Conv, types: Sequence[TensorType]) -> str:
    first, second = (type.dtype for type in types[:2])
    if first != second or not dtypes.is_float(first):
        raise GraphTypeError(explain_error("a convolution takes two tensors of one float dtype",
                                           f"{types[0]} and {types[1]}", "cast them, for example x.astype('float32')"))
    compute = op.spec.compute_dtype
    if compute is not None and dtypes.itemsize(compute) < dtypes.itemsize(first):
        raise GraphTypeError(explain_error(f"products of {first} cannot be summed in {compute}",
                                           f"{types[0]} and {types[1]}", f"leave the compute dtype out, or give {first}"))
    return first


def meet_sizes(told: Sizes, known: Sizes, op: Conv) -> Sizes:
    """What is known of the result of `op` from its inputs and from its builder together."""
    if len(told) != len(known) or any(None not in (a, b) and a != b for a, b in zip(told, known, strict=True)):
        raise ShapeError(explain_error(f"the result of {op} was asked for in a shape that its inputs do not give",
                                       f"asked for {shape_text(known)}, inputs give {shape_text(told)}"))
    return tuple(a if b is None else b for a, b in zip(told, known, strict=True))


def _along_channels(vector: Array, ndim: int) -> Array:
    return vector.reshape(1, -1, *(1,) * (ndim - 2))


def _apply(kind: Kind, spec: ConvSpec, values: Mapping[Role, Variable], like: Variable) -> Variable:
    """The convolution of this kind that reads `values`; `like` has the shape of its result (and is not read otherwise)."""
    tensors = [values[role] for role in kind.reads]
    if kind is Kind.FPROP:
        return apply_op(Conv(kind, spec), *tensors)
    return apply_op(Conv(kind, spec, None, like.type.shape), *tensors, shape_of(like))
