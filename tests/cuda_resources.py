"""Default configurations of every CUDA template: the ops and operands whose kernels are compiled for every architecture.

Whoever adds a template adds a case here; `tests/codegen/cuda/test_resources.py` fails for a template without one.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from symconv.codegen.cuda.kernel import CudaKernel
from symconv.codegen.cuda.lists import cuda_table
from symconv.codegen.kernel import Operand, Problem
from symconv.config import config
from symconv.graph import Op, TensorType
from symconv.ops.basic_indexing import INPUT, IncSubtensor, Slice, Subtensor
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.creation import ARange, Eye
from symconv.ops.effects import Assert
from symconv.ops.elementwise import Elementwise
from symconv.ops.epilogue import Epilogue
from symconv.ops.integer_indexing import Gather, ScatterAdd, ScatterSet
from symconv.ops.joining import Concatenate
from symconv.ops.layout import blocked_shape
from symconv.ops.linalg import MatMul
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.lowered.reduce_many import ReduceMany
from symconv.ops.padding import Pad
from symconv.ops.pooling import AveragePoolGrad, MaxPoolGather, MaxPoolGrad, Pool
from symconv.ops.random import Random
from symconv.ops.reductions import ArgReduce, Reduce
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from symconv.ops.spec import Kind
from symconv.target import Target

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """An op on operands: arrays (whose values count where the op looks at them) of which only shapes and dtypes are used."""

    op: Op
    inputs: tuple[Array, ...]
    precision: str = "float32"

    @property
    def problem(self) -> Problem:
        """The op on operands as the arrays lie; those of one repeated number count as contiguous."""
        types = [TensorType(array.dtype.name, array.shape) for array in self.inputs]
        outputs = self.op.infer_bound(types, {position: self.inputs[position] for position in self.op.value_inputs})
        return Problem(self.op, tuple(_operand(array) for array in self.inputs),
                       tuple(Operand.contiguous(type.dtype, type.static_shape) for type in outputs))


def launches(arch: int) -> Iterator[CudaKernel]:
    """Every launch of every case, by every implementation that takes it on the architecture."""
    target = Target(device="cuda", arch=arch)
    for case in CASES:
        for implementation in cuda_table()[type(case.op)]:
            with config.change(precision=case.precision):
                if not implementation.serves(case.op) or implementation.refuse(case.problem, target) is not None:
                    continue
                plans = [each.kernel for each in implementation.prepare(case.problem, target)]
                plans.append(implementation.build(case.problem, target))
            for plan in plans:
                yield from getattr(plan, "launches", ())


def _operand(array: Array) -> Operand:
    if not any(array.strides):
        return Operand.contiguous(array.dtype.name, array.shape)
    return Operand(array.dtype.name, array.shape, tuple(stride // array.itemsize for stride in array.strides))


def _zeros(*shape: int, dtype: str = "float32") -> Array:
    return np.broadcast_to(np.zeros((), dtype), shape)


def _program(dtype: str, *names: str) -> ScalarProgram:
    """Each operation on the last value and the next input."""
    body, last, inputs = [], 0, 1
    n_inputs = 1 + sum(name in ("add", "mul") for name in names)
    for number, name in enumerate(names):
        arguments = (last, inputs) if name in ("add", "mul") else (last,)
        inputs += len(arguments) - 1
        body.append(Instruction(name, arguments, dtype))
        last = n_inputs + number
    return ScalarProgram((dtype,) * n_inputs, tuple(body), (last,))


def _elementwise() -> Iterator[Case]:
    for dtype in ("float32", "float16", "float64"):
        shapes = ((64, 32, 8, 8), (32, 1, 1), (1,))
        yield Case(FusedElementwise(_program(dtype, "mul", "add", "relu")), tuple(_zeros(*shape, dtype=dtype) for shape in shapes))
        yield Case(Elementwise("exp", dtype), (_zeros(4096, dtype=dtype),))
    yield Case(FusedElementwise(_program("float32", "sigmoid", "mul", "tanh", "softplus", "log1p")), (_zeros(4096), _zeros(4096)))
    yield Case(Elementwise("add", "float32"), (np.zeros((64, 32), np.float32).T, _zeros(32, 64)))
    yield Case(Elementwise("add", "float64"), (np.zeros((9, 64, 32)).transpose(0, 2, 1), np.zeros((64, 32)).T))
    yield Case(Elementwise("pow", "float32"), (_zeros(64, 49), _zeros(64, 1)))
    yield Case(Elementwise("sin", "float64"), (_zeros(4096, dtype="float64"),))


def _reductions() -> Iterator[Case]:
    for shape, axes in (((64, 100), (1,)), ((64, 5000), (1,)), ((5000, 64), (0,)), ((100, 64), (0,)), ((64, 32, 7, 7), (0, 2, 3)),
                        ((100_000,), (0,)), ((512, 512, 64), (1,))):
        yield Case(Reduce("sum", axes, False, "float32"), (_zeros(*shape),))
    yield Case(Reduce("max", (1,), False, "float16"), (_zeros(64, 5000, dtype="float16"),))
    yield Case(Reduce("sum", (0,), False, "float64", _program("float64", "square")), (_zeros(100_000, dtype="float64"),))
    for shape, axis in (((64, 100), 1), ((64, 5000), 1), ((5000, 64), 0)):
        yield Case(ArgReduce("argmax", axis), (_zeros(*shape),))
    parts = tuple(Reduce("sum", (0, 2), False, "float32") for _ in range(2))
    program = ScalarProgram(("float32",), (Instruction("square", (0,), "float32"),), (0, 1))
    yield Case(ReduceMany(parts, program), (_zeros(64, 32, 49),))


def _convolutions() -> Iterator[Case]:
    for text in ("n16 c64 h28 w28 k64 r3 s3 p1", "n16 c64 h28 w28 k64 r3 s3 p1 g64", "n2 c16 d8 h8 w8 k16 t3 r3 s3 p1"):
        for dtype in ("f32", "f16", "f64"):
            for kind in ("fprop", "dgrad", "wgrad"):
                yield _convolution(ConvProblem.parse(f"{kind} {text} {dtype}"))
    relu = Epilogue(_program("float32", "add", "relu"), ("channel",))
    yield _convolution(ConvProblem.parse("fprop n16 c64 h28 w28 k64 r3 s3 p1 f32"), relu)


def _direct_convolutions() -> Iterator[Case]:
    """Taps written out: as many as are taken, strides, few channels, channels last."""
    for text in ("fprop n16 c64 h28 w28 k64 r7 s7 p3 g64 f32", "wgrad n16 c64 h28 w28 k64 r7 s7 p3 g64 f32",
                 "dgrad n16 c64 h56 w56 k64 r5 s5 u2 p2 g64 f16", "fprop n16 c64 h28 w28 k64 r7 s7 p3 g64 f32 nhwc",
                 *(f"{kind} n16 c64 h28 w28 k64 r3 s3 p1 g64 f16 nhwc" for kind in ("fprop", "dgrad", "wgrad")),
                 *(f"{kind} n32 c3 h224 w224 k64 r7 s7 u2 p3 f32" for kind in ("fprop", "wgrad"))):
        yield _convolution(ConvProblem.parse(text))


def _tensor_cores() -> Iterator[Case]:
    """What the tiles of tensor cores' convolutions need: of large problems, with channels last, as tf32."""
    for kind in ("fprop", "dgrad", "wgrad"):
        yield _convolution(ConvProblem.parse(f"{kind} n64 c256 h56 w56 k256 r3 s3 p1 f16 nhwc"))
        yield replace(_convolution(ConvProblem.parse(f"{kind} n64 c128 h28 w28 k128 r3 s3 u2 p1 f32 nhwc")), precision="tf32")
    yield _convolution(ConvProblem.parse("fprop n64 c64 h56 w56 k32 r3 s3 p1 f16 nhwc"))
    yield _convolution(ConvProblem.parse("dgrad n1 c512 h7 w7 k512 r3 s3 p1 f16"))
    plain = _convolution(ConvProblem.parse("fprop n64 c64 h56 w56 k64 r3 s3 p1 f16 nhwc"))
    residual = Epilogue(_program("float16", "add", "add", "relu"), ("channel", "full"))
    operands = (_zeros(64, dtype="float16"), _zeros(64, 56, 56, 64, dtype="float16"))
    yield Case(replace(plain.op, epilogue=residual), (*plain.inputs, *operands))


def _convolution(conv: ConvProblem, epilogue: Epilogue | None = None) -> Case:
    roles = {"x": conv.x_shape, "w": conv.w_shape, "y": conv.y_shape}
    x, w, y = (_zeros(*blocked_shape(shape, conv.layout.block(role) if conv.layout else 0), dtype=conv.dtype)
               for role, shape in roles.items())
    inputs = {Kind.FPROP: (x, w), Kind.DGRAD: (y, w, np.array(conv.x_shape)), Kind.WGRAD: (x, y, np.array(conv.w_shape))}[conv.kind]
    op = Conv(conv.kind, conv.spec, layout=conv.layout)
    return Case(op, inputs) if epilogue is None else Case(replace(op, epilogue=epilogue), (*inputs, _zeros(64)))


def _pooling() -> Iterator[Case]:
    window = ((2, 2), (2, 2), (0, 0), (0, 0), True)
    x, y = _zeros(16, 32, 28, 28), _zeros(16, 32, 14, 14)
    largest, average = Pool("max", *window), Pool("average_exc_pad", *window)
    yield from (Case(largest, (x,)), Case(average, (x,)), Case(MaxPoolGrad(largest), (x, y)), Case(MaxPoolGather(largest), (x, x)),
                Case(AveragePoolGrad(average, x.shape), (y, np.array(x.shape))))
    empty = _zeros(2, 3, 1, 1)
    yield Case(MaxPoolGrad(Pool("max", (2, 2), (3, 3), (0, 0), (0, 0), True)), (empty, _zeros(2, 3, 0, 0)))


def _movement() -> Iterator[Case]:
    x, index = _zeros(100, 64), _zeros(64, dtype="int64")
    yield Case(Gather(1), (x, index))
    yield Case(ScatterAdd(1), (x, _zeros(64, 64), index))
    yield Case(ScatterSet(1), (x, _zeros(64, 64), index))
    pattern, bounds = (Slice(INPUT, INPUT), Slice(None, None)), (np.array(3), np.array(40))
    yield Case(Subtensor(pattern), (x, *bounds))
    yield Case(IncSubtensor(pattern, "add"), (x, _zeros(37, 64), *bounds))
    yield Case(Concatenate(1), (x, x, x))
    yield Case(Pad((1, 0), (2, 3)), (x, _zeros()))
    yield Case(Assert("m"), (_zeros(8), np.ones(8, bool), np.array(True)))
    yield Case(ARange("float32"), (np.array(0.0), np.array(100.0), np.array(1.0)))
    yield Case(Eye("float32"), (np.array(50), np.array(50), np.array(0)))
    for distribution, dtype in (("uniform", "float32"), ("normal", "float32"), ("normal", "float64"), ("bits", "uint64")):
        yield Case(Random(distribution, dtype, (None,)), (np.array([1, 2], np.uint64), np.array([4096])))


def _products() -> Iterator[Case]:
    for dtype in ("float32", "float16", "float64", "int32"):
        yield Case(MatMul(), (_zeros(256, 128, dtype=dtype), _zeros(128, 512, dtype=dtype)))
    for dtype in ("float16", "float32"):
        yield Case(MatMul(), (_zeros(4096, 1024, dtype=dtype), _zeros(1024, 4096, dtype=dtype)))
        yield Case(MatMul(), (np.zeros((128, 256), dtype).T, np.zeros((512, 128), dtype).T))


def _softmax() -> Iterator[Case]:
    for columns in (10, 1000):
        x = _zeros(256, columns)
        yield from (Case(Softmax(1), (x,)), Case(LogSoftmax(1), (x,)))
        yield from (Case(SoftmaxGrad(1), (x, x)), Case(LogSoftmaxGrad(1), (x, x)))
    yield Case(Softmax(1), (_zeros(256, 1000, dtype="float16"),))


CASES = [*_elementwise(), *_reductions(), *_convolutions(), *_direct_convolutions(), *_tensor_cores(), *_pooling(), *_movement(),
         *_products(), *_softmax()]
