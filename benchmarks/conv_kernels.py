"""Time the convolution and matrix-product kernels by themselves: GFLOP/s of every implementation that takes a problem.

    python benchmarks/conv_kernels.py [--threads 2] [--seconds 0.3] [--problems FILE] [--torch]

A file of problems (`tests/problems/*.txt`, which drive the tests too) has one line each, as `n8 c64 h56 w56 k64 r3 s3 p1 f32` (all
three kinds are timed) or with a kind in front.
Medians and best times; `*` marks what symconv would choose.  `--torch` times PyTorch beside it, if it is installed.
"""
from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from symconv.codegen.convolution import CONV_IMPLEMENTATIONS
from symconv.codegen.implementation import Implementation
from symconv.codegen.kernel import Kernel, Operand, Problem
from symconv.codegen.matmul import MATMUL_IMPLEMENTATIONS
from symconv.codegen.toolchain import build
from symconv.ops.conv_problem import ConvProblem, parse_problems
from symconv.ops.convolution import Conv
from symconv.ops.linalg import MatMul
from symconv.ops.spec import Kind
from symconv.target import Target

PROBLEMS = """n500 c1 h28 w28 k20 r5 s5 f32
n500 c20 h12 w12 k50 r5 s5 f32
n1 c64 h56 w56 k64 r3 s3 p1 f32
n8 c64 h56 w56 k64 r3 s3 p1 f32
n8 c256 h14 w14 k256 r3 s3 p1 f32
n1 c512 h7 w7 k512 r3 s3 p1 f32
n8 c128 h56 w56 k128 r3 s3 u2 p1 f32
n1 c64 h56 w56 k256 r1 s1 f32
n1 c3 h224 w224 k64 r7 s7 u2 p3 f32
n8 c32 h112 w112 k32 r3 s3 p1 g32 f32
n8 c96 h112 w112 k96 r3 s3 u2 p1 g96 f32"""
PRODUCTS = [*((size,) * 3 for size in (256, 512, 1024, 2048)), (128, 500, 800), (500, 10, 500), (1, 1000, 2048)]


def repeat(call: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Median and best time of a call."""
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), min(times)


def kernel_call(implementation: Implementation, problem: Problem, arrays: list[Any], target: Target, *,
                still: bool = False) -> Callable[[], Any]:
    """A call that runs one implementation's kernel, after those that bring its inputs into other forms.

    `still`: these have run before, once, as for weights that do not change.
    """
    preparations = implementation.prepare(problem, target)
    kernels = [each.kernel for each in preparations] + [implementation.build(problem, target)]
    inputs, calls = list(arrays), []
    for number, (kernel, built) in enumerate(zip(kernels, build(kernels), strict=True)):
        main = number == len(preparations)
        results = problem.outputs if main else (preparations[number].result,)
        outputs = [np.zeros(operand.shape, operand.dtype) for operand in results]
        read = inputs if main else [arrays[preparations[number].position]]
        calls.append(_bound_call(kernel, built.address, [*outputs, *read]))
        if not main:
            inputs[preparations[number].position] = outputs[0]
    if still:
        for call in calls[:-1]:
            call()
        return calls[-1]
    return calls[0] if len(calls) == 1 else lambda: [call() for call in calls]


def _bound_call(kernel: Kernel, address: int, arrays: list[Any]) -> Callable[[], Any]:
    workspace = np.zeros(kernel.workspace_bytes + 64, np.uint8)
    addresses = [array.ctypes.data for array in arrays] + [workspace.ctypes.data + -workspace.ctypes.data % 64]
    buffers = (ctypes.c_void_p * len(addresses))(*addresses)
    sizes = (ctypes.c_int64 * max(1, len(kernel.sizes)))(*kernel.sizes)
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
    return lambda kept=(arrays, workspace): function(ctypes.addressof(buffers), ctypes.addressof(sizes))


def report(title: str, flops: int, implementations: tuple[Implementation, ...], problem: Problem, arrays: list[Any],
           options: argparse.Namespace, peer: Callable[[], Any] | None) -> None:
    """Print one line: each implementation that takes the problem, then the peer."""
    target = Target(threads=options.threads)
    taken = [each for each in implementations if each.refuse(problem, target) is None]
    chosen = min(taken, key=lambda each: each.estimate(problem, target))
    cells = []
    for each in taken:
        middle, best = repeat(kernel_call(each, problem, arrays, target), options.seconds)
        mark = "*" if each is chosen else " "
        cells.append(f"{mark}{each.name} {flops / middle / 1e9:6.1f} (best {flops / best / 1e9:6.1f}) {middle * 1e3:8.3f} ms")
    if peer is not None:
        middle, best = repeat(peer, options.seconds)
        cells.append(f"torch {flops / middle / 1e9:6.1f} (best {flops / best / 1e9:6.1f}) {middle * 1e3:8.3f} ms")
    print(f"{title:46}", "  ".join(cells), flush=True)


def conv_arrays(conv: ConvProblem) -> tuple[Conv, list[Any]]:
    """The op of a problem and random inputs."""
    rng = np.random.default_rng(0)
    x, w, y = (rng.standard_normal(shape).astype(conv.dtype) for shape in (conv.x_shape, conv.w_shape, conv.y_shape))
    inputs = {Kind.FPROP: [x, w], Kind.DGRAD: [y, w, np.array(conv.x_shape)], Kind.WGRAD: [x, y, np.array(conv.w_shape)]}
    return Conv(conv.kind, conv.spec), inputs[conv.kind]


def kernel_problem(conv: ConvProblem) -> tuple[Problem, list[Any]]:
    """The problem as the implementations take it, and random inputs."""
    op, arrays = conv_arrays(conv)
    inputs = tuple(Operand.contiguous(array.dtype.name, array.shape) for array in arrays)
    return Problem(op, inputs, (Operand.contiguous(conv.dtype, conv.result_shape),)), arrays


def torch_conv(conv: ConvProblem, arrays: list[Any]) -> Callable[[], Any] | None:
    """The same convolution in PyTorch, where it has it: no flip, the same padding on both sides."""
    spec = conv.spec
    if spec.flip or spec.pad_lo != spec.pad_hi:
        return None
    import torch

    first, second = (torch.from_numpy(array) for array in arrays[:2])
    name = f"conv{spec.ndim}d"
    keywords = {"stride": spec.stride, "padding": spec.pad_lo, "dilation": spec.dilation, "groups": spec.groups}
    if conv.kind is Kind.FPROP:
        forward = getattr(torch.nn.functional, name)
        return lambda: forward(first, second, **keywords)
    backward = getattr(torch.nn.grad, f"{name}_input" if conv.kind is Kind.DGRAD else f"{name}_weight")
    if conv.kind is Kind.DGRAD:
        return lambda: backward(conv.x_shape, second, first, **keywords)
    return lambda: backward(first, conv.w_shape, second, **keywords)


def time_convolutions(problems: list[ConvProblem], options: argparse.Namespace) -> None:
    """Every problem."""
    for conv in problems:
        problem, arrays = kernel_problem(conv)
        report(str(conv), conv.flops, CONV_IMPLEMENTATIONS, problem, arrays, options,
               torch_conv(conv, arrays) if options.torch else None)


def time_products(options: argparse.Namespace) -> None:
    """Square and odd matrix products."""
    rng = np.random.default_rng(0)
    for rows, columns, depth in PRODUCTS:
        a, b = rng.standard_normal((rows, depth)).astype(np.float32), rng.standard_normal((depth, columns)).astype(np.float32)
        problem = Problem(MatMul(), (Operand.contiguous("float32", a.shape), Operand.contiguous("float32", b.shape)),
                          (Operand.contiguous("float32", (rows, columns)),))
        peer = None
        if options.torch:
            import torch

            first, second = torch.from_numpy(a), torch.from_numpy(b)
            peer = lambda first=first, second=second: first @ second  # noqa: E731
        report(f"matmul {rows}x{depth} {depth}x{columns} f32", 2 * rows * columns * depth, MATMUL_IMPLEMENTATIONS, problem, [a, b],
               options, peer)


def main() -> None:
    """Read the command line, time, print."""
    parser = argparse.ArgumentParser(description="Time the convolution and matrix-product kernels.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long each is repeated")
    parser.add_argument("--problems", type=Path, help="a file of problem lines instead of the built-in ones")
    parser.add_argument("--torch", action="store_true", help="time PyTorch beside it")
    options = parser.parse_args()
    if options.torch:
        import torch

        torch.set_num_threads(options.threads)
    text = options.problems.read_text() if options.problems else PROBLEMS
    time_products(options)
    time_convolutions(parse_problems(text), options)


if __name__ == "__main__":
    main()
