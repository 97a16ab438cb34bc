"""symconv's contenders on a device: arguments and results are arrays that lie there."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from comparison.contender import SYMCONV, Array, Contender
from comparison.rows_networks import LEARNING_RATE, MOMENTUM
from comparison.symconv_side import convolution_steps
from networks import in_symconv
from networks.parameters import make_batch, make_parameters

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind
from symconv.tensor import nnet


def on_device(device: str, array: Array, dtype: str | None = None) -> Any:
    """An array on the device, in another dtype if that is named."""
    x = T.tensor("x", array.dtype.name, array.shape)
    return sc.compile([x], sc.Out(x.astype(dtype or array.dtype.name), on_device=True), device=device)(array)


def read(result: Any) -> list[Array]:
    """What a function returned as float32 arrays on the host."""
    arrays = result if isinstance(result, list) else [result]
    return [np.asarray(each.get() if hasattr(each, "get") else each).astype(np.float32) for each in arrays]


def layer(device: str, problem: ConvProblem, arrays: Sequence[Array], implementation: str = "", name: str = SYMCONV) -> Contender:
    """A single convolution; both of its tensors are arguments. `implementation` forces one."""
    spec = problem.spec
    words: dict[str, Any] = {"pre_padding": spec.pad_lo, "post_padding": spec.pad_hi, "stride": spec.stride,
                             "dilation": spec.dilation, "groups": spec.groups}
    first, second = (T.tensor(text, problem.dtype, array.shape) for text, array in zip(("first", "second"), arrays, strict=True))
    if problem.kind is Kind.WGRAD:
        result = nnet.conv_wgrad(first, second, weight_shape=problem.w_shape, **words)
    elif problem.kind is Kind.DGRAD:
        result = nnet.conv_dgrad(first, second, image_shape=problem.x_shape, **words)
    else:
        result = nnet.conv_fprop(first, second, **words)
    with config.change(conv__implementation=implementation):
        function = sc.compile([first, second], sc.Out(result, on_device=True), device=device)
    arguments = [on_device(device, array, problem.dtype) for array in arrays]
    return Contender(name, lambda: function(*arguments), read, convolution_steps(function))


def elementwise(device: str, chain: Callable[..., Any], arrays: Sequence[Array]) -> Contender:
    """A chain of elementwise operations."""
    inputs = [T.tensor(f"x{number}", array.dtype, array.shape) for number, array in enumerate(arrays)]
    function = sc.compile(inputs, sc.Out(chain(T, *inputs), on_device=True), device=device)
    arguments = [on_device(device, array) for array in arrays]
    return Contender(SYMCONV, lambda: function(*arguments), read)


def network(device: str, name: str, work: str, batch: int, compute: str) -> Contender:
    """A network's inference or training step."""
    images, labels = make_batch(name, batch)
    here = on_device(device, images, compute)
    if work == "inference":
        function = in_symconv.inference(name, make_parameters(name), batch, device=device, compute=compute)
        return Contender(SYMCONV, lambda: function(here), read, _launching(function))
    function = in_symconv.training_step(name, make_parameters(name), batch, LEARNING_RATE, MOMENTUM[name], device=device,
                                        compute=compute)
    answers = on_device(device, labels.astype(np.int64))
    return Contender(SYMCONV, lambda: function(here, answers), read, _launching(function))


def _launching(function: sc.Function) -> str:
    """How many steps there are, and how many of them run their reference."""
    steps = function.programs[-1].steps
    references = sum(step.kernel is None for step in steps)
    return f"{len(steps)} steps" + (f", {references} by reference" if references else "")
