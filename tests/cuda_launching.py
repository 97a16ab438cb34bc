"""Runs the launches that an implementation for CUDA builds on the checked emulator."""
from __future__ import annotations

from typing import Any

import numpy as np

from symconv import dtypes
from symconv.codegen.cuda.emulator import Buffer, launch
from symconv.codegen.cuda.kernel import ERROR_FLAG, WORKSPACE, LaunchPlan
from symconv.codegen.kernel import Operand, Problem
from symconv.graph import Op
from symconv.graph.types import TensorType
from symconv.target import Target

Array = np.ndarray[Any, Any]
TARGET = Target("emulator", arch=90)


class UserError(Exception):
    """A kernel set its error flag; `code` is what it set."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(code)


def operand_of(array: Array) -> Operand:
    """The operand of an array, with its strides."""
    return Operand(array.dtype.name, array.shape, tuple(stride // array.itemsize for stride in array.strides))


def run(implementation: Any, op: Op, *inputs: Any, checked: bool = True) -> list[Array]:
    """The results of an op on arrays, by one implementation on the emulator; inputs it does not take strided are copied first."""
    arrays = [np.asarray(each) for each in inputs]
    values = {number: arrays[number] for number in op.value_inputs}
    types = [TensorType(array.dtype.name, array.shape) for array in arrays]
    outputs = tuple(Operand.contiguous(type.dtype, type.static_shape) for type in op.infer_bound(types, values))
    asked = Problem(op, tuple(map(operand_of, arrays)), outputs)
    arrays = [array if implementation.takes_strides(asked, number) else np.ascontiguousarray(array)
              for number, array in enumerate(arrays)]
    problem = Problem(op, tuple(map(operand_of, arrays)), outputs)
    assert implementation.serves(op)
    assert implementation.refuse(problem, TARGET) is None
    return run_plan(implementation.build(problem, TARGET), problem, arrays, checked)


def run_plan(plan: LaunchPlan, problem: Problem, arrays: list[Array], checked: bool = True) -> list[Array]:
    """Run launches in order; fresh results are full of garbage that nobody may read."""
    results = [_aligned(operand.nbytes).view(dtypes.numpy_dtype(operand.dtype)).reshape(operand.shape)
               for operand in problem.outputs]
    workspace, flag = _aligned(plan.workspace_bytes), np.zeros(1, np.uint32)
    written: set[int] = {ERROR_FLAG}
    for kernel in plan.launches:
        buffers = []
        for number in kernel.buffers:
            array = {WORKSPACE: workspace, ERROR_FLAG: flag}.get(number)
            if array is None:
                array = [*results, *arrays][number]
            if number in kernel.zeroed:
                array.reshape(-1).view(np.uint8)[:] = 0
            is_written = number in written or number in kernel.zeroed or number >= len(results)
            buffers.append(_buffer(array, str(number), is_written))
        launch(kernel, buffers, checked, threads=2)
        written.update(kernel.buffers)
        if flag[0]:
            raise UserError(int(flag[0]))
    return results


def _aligned(nbytes: int) -> Array:
    memory = np.full(nbytes + 256, 0xCD, np.uint8)
    start = -int(memory.ctypes.data) % 256
    return memory[start:start + nbytes]


def _buffer(array: Array, name: str, is_written: bool) -> Buffer:
    """The memory that an array's elements span, and where in it its first element lies."""
    low = sum(min(0, (size - 1) * stride) for size, stride in zip(array.shape, array.strides, strict=True))
    high = sum(max(0, (size - 1) * stride) for size, stride in zip(array.shape, array.strides, strict=True))
    nbytes = high - low + array.itemsize if array.size else 0
    element = 1 if name == str(WORKSPACE) else array.itemsize
    return Buffer(name, int(array.ctypes.data) + low, nbytes, -low, element, is_written)
