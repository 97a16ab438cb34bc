"""Run one implementation on NumPy arrays: build the problem, the kernel, call it, and watch what it writes."""
from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from symconv import dtypes
from symconv.codegen.implementation import Implementation
from symconv.codegen.kernel import Kernel, Operand, Problem
from symconv.codegen.toolchain import BuiltKernel, build
from symconv.errors import IndexRangeError
from symconv.graph import Op, TensorType
from symconv.target import Target

Array = np.ndarray[Any, Any]
GUARD = 64  # bytes on either side of what a kernel may write


def make_problem(op: Op, *arrays: Array) -> Problem:
    """The problem of `op` on these arrays, as they lie in memory."""
    types = [TensorType(dtypes.canonical(array.dtype), array.shape) for array in arrays]
    outputs = op.infer_bound(types, {position: arrays[position] for position in op.value_inputs})
    return Problem(op, tuple(operand_of(array) for array in arrays),
                   tuple(Operand.contiguous(type.dtype, type.static_shape) for type in outputs))


def operand_of(array: Array) -> Operand:
    """An array's dtype, shape and strides in elements."""
    return Operand(dtypes.canonical(array.dtype), array.shape, tuple(stride // array.itemsize for stride in array.strides))


def run_kernel(implementation: Implementation, op: Op, *arrays: Any, threads: int | None = None,
               target: Target | None = None) -> list[Array]:
    """Outputs of `op` on arrays (strided ones are copied first where the implementation does not take strides)."""
    target = target or Target(threads=threads or 2)
    prepared = [np.asarray(array) for array in arrays]
    problem = make_problem(op, *prepared)
    for position, array in enumerate(prepared):
        if not implementation.takes_strides(problem, position):
            prepared[position] = np.ascontiguousarray(array).reshape(array.shape)
    problem = make_problem(op, *prepared)
    reason = implementation.refuse(problem, target)
    assert reason is None, reason
    for preparation in implementation.prepare(problem, target):
        (made,) = call_kernel(preparation.kernel, [prepared[preparation.position]], (preparation.result,), threads)
        prepared[preparation.position] = made
    return call_kernel(implementation.build(problem, target), prepared, problem.outputs, threads)


def call_kernel(kernel: Kernel, arrays: list[Array], outputs: tuple[Operand, ...],
                threads: int | None = None) -> list[Array]:
    """Build and call a kernel; its outputs start as rubbish and are guarded on both sides."""
    (built,) = build([kernel])
    guarded = [_guarded(operand.nbytes) for operand in outputs]
    workspace = _guarded(kernel.workspace_bytes)
    addresses = [_address(buffer) for buffer in guarded]
    addresses += [array.ctypes.data for array in arrays] + [_address(workspace)]
    code = _call(built, addresses, kernel.sizes, threads)
    for buffer in [*guarded, workspace]:
        margin = bytes([0xA5]) * GUARD
        assert buffer[:GUARD].tobytes() == margin, "the kernel wrote before a buffer"
        assert buffer[-GUARD:].tobytes() == margin, "the kernel wrote behind a buffer"
    if code:
        raise IndexRangeError(kernel.errors[code - 1])
    return [buffer[GUARD:-GUARD].view(dtypes.numpy_dtype(operand.dtype)).reshape(operand.shape).copy()
            for buffer, operand in zip(guarded, outputs, strict=True)]


def _guarded(nbytes: int) -> Array:
    raw = np.full(nbytes + 2 * GUARD + 64, 0xA5, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start:start + nbytes + 2 * GUARD]


def _address(guarded: Array) -> int:
    return int(guarded.ctypes.data) + GUARD


def _call(built: BuiltKernel, addresses: list[int], sizes: tuple[int, ...], threads: int | None) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(built.address)
    buffers = (ctypes.c_void_p * len(addresses))(*addresses)
    numbers = (ctypes.c_int64 * max(len(sizes), 1))(*sizes)
    set_threads = getattr(built.library, "omp_set_num_threads", None) if threads else None
    if set_threads is not None:
        before = built.library.omp_get_max_threads()
        set_threads(threads)
    try:
        return function(ctypes.addressof(buffers), ctypes.addressof(numbers))
    finally:
        if set_threads is not None:
            set_threads(before)
