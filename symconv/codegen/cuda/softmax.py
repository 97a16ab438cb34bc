"""Softmax, log-softmax and their gradients on CUDA: a block for each row, or a thread where the axis is not the innermost one."""
from __future__ import annotations

import math

from ...errors import InternalError
from ...graph import Op
from ...ops.softmax import LogSoftmax, LogSoftmaxGrad, Softmax, SoftmaxGrad
from ...target import Target
from ..helpers import SUFFIXES
from ..implementation import AnyImplementation
from ..kernel import Problem
from ..scalar_printer import compute_type, load, storage_type, stored
from .kernel import CudaImplementation, CudaKernel, LaunchPlan
from .looping import MOST_BLOCKS, int64_scalars
from .printing import render_cuda

_THREADS = 128
_SHORT = 32  # elements of a row below which a block for it would be idle
_WORK = {  # per op: what is summed, what is written; x or (gy, y) are the row's elements
    Softmax: ("exp(x - largest)", "exp(x - largest) / total"),
    LogSoftmax: ("exp(x - largest)", "x - largest - log(total)"),
    SoftmaxGrad: ("gy * y", "(gy - total) * y"),
    LogSoftmaxGrad: ("gy", "gy - exp(y) * total"),
}


class SoftmaxRows(CudaImplementation):
    """Two or three passes over each row."""

    name = "softmax_rows"

    def build(self, problem: Problem, target: Target) -> LaunchPlan:
        """One launch."""
        op, (out,) = problem.op, problem.outputs
        if not isinstance(op, (Softmax, LogSoftmax, SoftmaxGrad, LogSoftmaxGrad)):
            raise InternalError(f"{op} is no softmax")
        if out.size == 0:
            return LaunchPlan(())
        length, inner = out.shape[op.axis], math.prod(out.shape[op.axis + 1:])
        rows, by_block = out.size // length, inner == 1 and length > _SHORT
        name = f"sc_{_snake(op)}_{SUFFIXES[out.dtype]}_{'rows' if by_block else 'columns'}"
        blocks = min(rows if by_block else -(-rows // _THREADS), MOST_BLOCKS)
        kernel = CudaKernel(name, _source(name, op, out.dtype, by_block), (blocks, 1, 1), (_THREADS, 1, 1),
                            tuple(range(1 + len(problem.inputs))), int64_scalars((rows, length, inner)))
        return LaunchPlan((kernel,), flops=12 * out.size, bytes=sum(each.nbytes for each in (out, *problem.inputs)))


def _source(name: str, op: Op, dtype: str, by_block: bool) -> str:
    is_gradient = isinstance(op, (SoftmaxGrad, LogSoftmaxGrad))
    summed, written = _WORK[type(op)]
    compute = compute_type(dtype)
    if compute == "float":
        summed, written = (text.replace("exp(", "expf(").replace("log(", "logf(") for text in (summed, written))
    load_open, load_close = load(dtype, "@").split("@")
    store_open, store_close = stored(dtype, "@").split("@")
    return render_cuda("softmax.cu.j2", title=f"{type(op).__name__} of {dtype}", name=name, threads=_THREADS, by_block=by_block,
                       operands=("gy_of", "y_of") if is_gradient else ("x_of",), has_largest=not is_gradient,
                       is_log=isinstance(op, LogSoftmax), type=storage_type(dtype), compute=compute, summed=summed, written=written,
                       load_open=load_open, load_close=load_close, store_open=store_open, store_close=store_close)


def _snake(op: Op) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in type(op).__name__).lstrip("_")


_GENERATED: tuple[AnyImplementation, ...] = (SoftmaxRows(),)
IMPLEMENTATIONS: dict[type[Op], tuple[AnyImplementation, ...]] = dict.fromkeys(_WORK, _GENERATED)
