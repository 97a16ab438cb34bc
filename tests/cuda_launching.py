"""Runs the launches that an implementation for CUDA builds on the checked emulator."""
from __future__ import annotations

from typing import Any, cast

import numpy as np

from symconv import dtypes
from symconv.codegen.cuda.emulator import Buffer, launch
from symconv.codegen.cuda.kernel import ERROR_FLAG, WORKSPACE, CudnnLaunch, LaunchPlan, parts_of, workspace_part
from symconv.codegen.cudnn.execution import launch_tensors
from symconv.codegen.cudnn.plan_list import maker_for
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
    return run_plan(implementation.build(problem, TARGET), problem, prepared(implementation, problem, arrays, checked), checked)


def prepared(implementation: Any, problem: Problem, arrays: list[Array], checked: bool = True) -> list[Array]:
    """The inputs as an implementation wants them: those that it prepares by a kernel of their own in their new form."""
    made = list(arrays)
    for each in implementation.prepare(problem, TARGET):
        step = Problem(problem.op, (problem.inputs[each.position],), (each.result,))
        (made[each.position],) = run_plan(cast(Any, each.kernel), step, [arrays[each.position]], checked)
    return made


def run_plan(plan: LaunchPlan, problem: Problem, arrays: list[Array], checked: bool = True) -> list[Array]:
    """Run launches in order; fresh results are full of garbage that nobody may read."""
    results = [_aligned(operand.nbytes).view(dtypes.numpy_dtype(operand.dtype)).reshape(operand.shape)
               for operand in problem.outputs]
    workspace, flag = _aligned(plan.workspace_bytes), np.zeros(1, np.uint32)
    own = {WORKSPACE: workspace, ERROR_FLAG: flag}
    own |= {workspace_part(number): workspace[first:first + nbytes] for number, (first, nbytes) in enumerate(plan.parts)}
    written: set[int] = {ERROR_FLAG}
    for kernel in plan.launches:
        if isinstance(kernel, CudnnLaunch):
            _run_stand_in(kernel, [own.get(number) if number in own else [*results, *arrays][number] for number in kernel.buffers])
            written.update(parts_of(plan, kernel.buffers))
            continue
        buffers = []
        for number in kernel.buffers:
            array = own.get(number)
            if array is None:
                array = [*results, *arrays][number]
            if number in kernel.zeroed:
                array.reshape(-1).view(np.uint8)[:] = 0
            is_written = number in written or number in kernel.zeroed or number >= len(results)
            buffers.append(_buffer(array, str(number), is_written))
        launch(kernel, buffers, checked, threads=2)
        written.update(parts_of(plan, kernel.buffers))
        if flag[0]:
            raise UserError(int(flag[0]))
    return results


def _run_stand_in(kernel: CudnnLaunch, buffers: list[Any]) -> None:
    """A plan of cuDNN by the stand-in that is registered, on the tensors as they lie in the buffers."""
    tensors = []
    for buffer, told in zip(buffers, launch_tensors(kernel), strict=False):
        dtype = dtypes.numpy_dtype(told.dtype)
        flat = np.lib.stride_tricks.as_strided(buffer, buffer.shape, buffer.strides)
        if flat.dtype == np.uint8 and dtype != np.uint8:
            flat = flat.view(dtype)
        tensors.append(np.lib.stride_tricks.as_strided(flat, told.shape, [stride * dtype.itemsize for stride in told.strides]))
    cast(Any, maker_for("emulator")).execute(kernel, tuple(tensors))


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
