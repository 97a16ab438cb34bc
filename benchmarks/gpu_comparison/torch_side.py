"""PyTorch's contenders on a GPU (for a trial of the program, on the CPU): cuDNN in benchmark mode, channels_last, torch.compile."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from comparison.contender import Array, Contender
from comparison.rows_networks import LEARNING_RATE, MOMENTUM
from comparison.torch_peer import _FORMATS, without_gradient
from networks.in_torch import TorchWords
from networks.parameters import make_batch, make_parameters
from torch.nn import functional

from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind

NAMES = ("torch", "torch channels_last")
COMPILED = ("torch.compile", "torch.compile max-autotune")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def prepare() -> None:
    """Settings for the whole process: float32 is float32, cuDNN tries its algorithms."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    warnings.filterwarnings("ignore", module="torch")


def read(result: Any) -> list[Array]:
    """Float32 arrays of a tensor or of several, on the host."""
    each = result if isinstance(result, (list, tuple)) else [result]
    return [tensor.detach().float().cpu().contiguous().numpy() for tensor in each]


def _tensors(device: str, name: str, arrays: Sequence[Array], dtype: str) -> list[Any]:
    tensors = [torch.from_numpy(array).to(device, _DTYPES[dtype]) for array in arrays]
    if name != "torch channels_last":
        return tensors
    if tensors[0].ndim not in _FORMATS:
        raise NotImplementedError("PyTorch has no channels_last layout for 1-D convolutions")
    return [tensor.contiguous(memory_format=_FORMATS[tensor.ndim]) for tensor in tensors]


def layer(device: str, name: str, problem: ConvProblem, arrays: Sequence[Array]) -> Contender:
    """A single convolution, as one operation of ATen."""
    spec, zeros = problem.spec, [0] * problem.spec.ndim
    first, second = _tensors(device, name, arrays, problem.dtype)
    if problem.kind is Kind.FPROP:
        forward = without_gradient(torch.ops.aten.convolution)
        return Contender(name, lambda: forward(first, second, None, spec.stride, spec.pad_lo, spec.dilation, False, zeros,
                                               spec.groups), read)
    backward = without_gradient(torch.ops.aten.convolution_backward)
    is_dgrad = problem.kind is Kind.DGRAD
    other = _like(first if is_dgrad else second, problem.x_shape if is_dgrad else problem.w_shape, name)
    loss, image, filters = (first, other, second) if is_dgrad else (second, first, other)
    mask, which = ([True, False, False], 0) if is_dgrad else ([False, True, False], 1)
    return Contender(name, lambda: backward(loss, image, filters, None, spec.stride, spec.pad_lo, spec.dilation, False, zeros,
                                            spec.groups, mask)[which], read)


def _like(tensor: Any, shape: Sequence[int], name: str) -> Any:
    made = torch.empty(tuple(shape), dtype=tensor.dtype, device=tensor.device)
    return made.contiguous(memory_format=_FORMATS[made.ndim]) if name == "torch channels_last" else made


def elementwise(device: str, name: str, chain: Callable[..., Any], arrays: Sequence[Array]) -> Contender:
    """A chain of elementwise operations, eager or compiled."""
    tensors = [torch.from_numpy(array).to(device) for array in arrays]
    run: Callable[..., Any] = lambda *inputs: chain(torch, *inputs)  # noqa: E731
    call = without_gradient(_compiled(run, name))
    return Contender(name, lambda: call(*tensors), read)


def _compiled(run: Any, name: str) -> Any:
    if name not in COMPILED:
        return run
    torch._dynamo.reset()
    return torch.compile(run, mode="max-autotune" if name.endswith("max-autotune") else None)


def network(device: str, name: str, network_name: str, work: str, batch: int, compute: str) -> Contender:
    """A network's inference or training step; in bfloat16 by autocast, on channels-last memory but for plain "torch"."""
    module = TorchWords(network_name, make_parameters(network_name)).to(device)
    images, labels = (torch.from_numpy(array).to(device) for array in make_batch(network_name, batch))
    if name != "torch" and network_name != "lenet":
        module, images = module.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    kind = torch.device(device).type

    def scores(x: Any) -> Any:
        with torch.autocast(kind, torch.bfloat16, enabled=compute == "bfloat16"):
            return module(x)

    if work == "inference":
        run = without_gradient(_compiled(scores, name))
        module.eval()
        return Contender(name, lambda: run(images), read)
    return Contender(name, _step(module, _compiled(scores, name), images, labels, network_name), read)


def _step(module: Any, scores: Any, images: Any, labels: Any, name: str) -> Callable[[], Any]:
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM[name], fused=True)

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(scores(images).float(), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def synchronize(device: str) -> None:
    """Wait for all that the process has issued on the device."""
    if device != "cpu":
        torch.cuda.synchronize()


def matmul_rate(device: str, dtype: str, size: int) -> float:
    """FLOP/s of a square matrix product, the best of several runs."""
    import time

    a, b = (torch.randn(size, size, device=device).to(_DTYPES[dtype]) for _ in range(2))
    best = 0.0
    for _ in range(6):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(4):
            a @ b
        synchronize(device)
        best = max(best, 4 * 2 * size**3 / (time.perf_counter() - start))
    return best


def copy_bandwidth(device: str, nbytes: int) -> float:
    """Bytes read and written in a second by a copy on the device, the best of several runs."""
    import time

    source = torch.zeros(nbytes, dtype=torch.uint8, device=device)
    target, best = torch.empty_like(source), 0.0
    for _ in range(6):
        synchronize(device)
        start = time.perf_counter()
        for _ in range(4):
            target.copy_(source)
        synchronize(device)
        best = max(best, 4 * 2 * nbytes / (time.perf_counter() - start))
    return best
