"""PyTorch's contenders: eager on NCHW tensors, eager on channels_last ones, and torch.compile."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind

from .contender import Array, Contender

NAMES = ("torch", "torch channels_last", "torch.compile")
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def prepare(threads: int) -> None:
    """Settings for the whole process."""
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", module="torch")


def read(result: Any) -> list[Array]:
    """Arrays of a tensor or of several."""
    return [each.detach().contiguous().numpy() for each in (result if isinstance(result, (list, tuple)) else [result])]


def without_gradient(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call in inference mode."""
    def run(*arguments: Any) -> Any:
        with torch.inference_mode():
            return call(*arguments)

    return run


def layer(name: str, problem: ConvProblem, arrays: Sequence[Array]) -> Contender:
    """A single convolution; for gradients there is one operation of ATen, which compiling does not change."""
    tensors = [torch.from_numpy(array) for array in arrays]
    if name == "torch channels_last":
        if problem.spec.ndim == 1:
            raise NotImplementedError("PyTorch has no channels_last layout for 1-D convolutions")
        tensors = [tensor.contiguous(memory_format=_FORMATS[tensor.ndim]) for tensor in tensors]
    if problem.kind is Kind.FPROP:
        call = _compiled_forward(problem, tensors) if name == "torch.compile" else _forward(problem, *tensors)
    else:
        call = _gradient(problem, *tensors)
    return Contender(name, call, read)


def _forward(problem: ConvProblem, image: Any, filters: Any) -> Callable[[], Any]:
    spec = problem.spec
    convolve = getattr(torch.nn.functional, f"conv{spec.ndim}d")
    run = without_gradient(convolve)
    return lambda: run(image, filters, None, spec.stride, spec.pad_lo, spec.dilation, spec.groups)


def _compiled_forward(problem: ConvProblem, tensors: list[Any]) -> Callable[[], Any]:
    """A module whose filters are parameters, frozen: Inductor may pack them once, as symconv does with shared variables."""
    spec, (image, filters) = problem.spec, tensors
    make = getattr(torch.nn, f"Conv{spec.ndim}d")
    module = make(image.shape[1], filters.shape[0], filters.shape[2:], spec.stride, spec.pad_lo, spec.dilation, spec.groups,
                  bias=False)
    module.weight.data.copy_(filters)
    run = compiled_inference(module)
    return lambda: run(image)


def compiled_inference(module: Any) -> Callable[[Any], Any]:
    """torch.compile of a module in evaluation mode, with its parameters frozen."""
    torch._dynamo.reset()
    compiled = torch.compile(module.eval(), options={"freezing": True})

    def run(image: Any) -> Any:
        with torch.no_grad():
            return compiled(image)

    return run


def _gradient(problem: ConvProblem, first: Any, second: Any) -> Callable[[], Any]:
    """DGRAD of (loss, filters) or WGRAD of (image, loss)."""
    spec, zeros = problem.spec, [0] * problem.spec.ndim
    if problem.kind is Kind.DGRAD:
        loss, filters, mask, which = first, second, [True, False, False], 0
        image = torch.empty(problem.x_shape)
        if loss.ndim in _FORMATS and loss.is_contiguous(memory_format=_FORMATS[loss.ndim]):
            image = image.contiguous(memory_format=_FORMATS[loss.ndim])
    else:
        image, loss, mask, which = first, second, [False, True, False], 1
        filters = torch.empty(problem.w_shape)
        if image.ndim in _FORMATS and image.is_contiguous(memory_format=_FORMATS[image.ndim]):
            filters = filters.contiguous(memory_format=_FORMATS[image.ndim])
    backward = without_gradient(torch.ops.aten.convolution_backward)
    return lambda: backward(loss, image, filters, None, spec.stride, spec.pad_lo, spec.dilation, False, zeros, spec.groups,
                            mask)[which]


def elementwise(name: str, chain: Callable[..., Any], arrays: Sequence[Array]) -> Contender:
    """A chain of elementwise operations."""
    tensors = [torch.from_numpy(array) for array in arrays]
    run: Callable[..., Any] = lambda *inputs: chain(torch, *inputs)  # noqa: E731
    if name == "torch.compile":
        torch._dynamo.reset()
        run = torch.compile(run)
    call = without_gradient(run)
    return Contender(name, lambda: call(*tensors), read)


def _module(name: str, network: str, batch: int) -> tuple[Any, Any, Any]:
    """A network with its images and labels, in the layout that a contender's name says."""
    from networks.in_torch import TorchWords
    from networks.parameters import make_batch, make_parameters

    module = TorchWords(network, make_parameters(network))
    images, labels = (torch.from_numpy(array) for array in make_batch(network, batch))
    if name == "torch channels_last":
        module, images = module.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    return module, images, labels


def network_inference(name: str, network: str, batch: int) -> Contender:
    """Scores of a batch of images."""
    module, images, _ = _module(name, network, batch)
    run = compiled_inference(module) if name == "torch.compile" else without_gradient(module.eval())
    return Contender(name, lambda: run(images), read)


def network_step(name: str, network: str, batch: int) -> Contender:
    """A training step."""
    from networks.in_torch import training_step

    from .rows_networks import LEARNING_RATE, MOMENTUM

    module, images, labels = _module(name, network, batch)
    torch._dynamo.reset()
    return Contender(name, training_step(module, images, labels, LEARNING_RATE, MOMENTUM[network], name == "torch.compile"), read)
