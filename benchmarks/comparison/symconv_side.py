"""symconv's contenders: compiled functions of NumPy arrays, weights in shared variables."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind
from symconv.tensor import nnet

from .contender import SYMCONV, Array, Contender


def read(result: Any) -> list[Array]:
    """What a compiled function returned, as a list of arrays."""
    return [np.asarray(each) for each in (result if isinstance(result, list) else [result])]


def compiled_layer(problem: ConvProblem, arrays: Sequence[Array], implementation: str = "", profile: bool = False) -> sc.Function:
    """The compiled function of one convolution.

    FPROP and DGRAD keep the filters in a shared variable and take the other tensor; WGRAD takes both.
    `implementation` forces one by name.
    """
    spec = problem.spec
    words: dict[str, Any] = {"pre_padding": spec.pad_lo, "post_padding": spec.pad_hi, "stride": spec.stride,
                             "dilation": spec.dilation, "groups": spec.groups}
    first = T.tensor("loss" if problem.kind is Kind.DGRAD else "image", problem.dtype, arrays[0].shape)
    with config.change(conv__implementation=implementation):
        if problem.kind is Kind.WGRAD:
            loss = T.tensor("loss", problem.dtype, arrays[1].shape)
            result = nnet.conv_wgrad(first, loss, weight_shape=problem.w_shape, **words)
            return sc.compile([first, loss], result, name="layer", profile=profile)
        filters = sc.shared(arrays[1], "filters", shape=arrays[1].shape)
        if problem.kind is Kind.FPROP:
            result = nnet.conv_fprop(first, filters, **words)
        else:
            result = nnet.conv_dgrad(first, filters, image_shape=problem.x_shape, **words)
        return sc.compile([first], result, name="layer", profile=profile)


def layer(problem: ConvProblem, arrays: Sequence[Array], implementation: str = "") -> Contender:
    """A single convolution."""
    function = compiled_layer(problem, arrays, implementation)
    arguments = arrays if problem.kind is Kind.WGRAD else arrays[:1]
    return Contender(SYMCONV, lambda: function(*arguments), read, convolution_steps(function))


def convolution_steps(function: sc.Function) -> str:
    """Which implementations run a function's convolutions."""
    names = [step["implementation"] for step in function.explain(format="dict")["steps"] if step.get("problem")]
    return ", ".join(f"{names.count(name)}x {name}" if names.count(name) > 1 else str(name) for name in dict.fromkeys(names))


def elementwise(chain: Callable[..., Any], arrays: Sequence[Array]) -> Contender:
    """A chain of elementwise operations on inputs."""
    inputs = [T.tensor(f"x{number}", array.dtype, array.shape) for number, array in enumerate(arrays)]
    function = sc.compile(inputs, chain(T, *inputs))
    return Contender(SYMCONV, lambda: function(*arrays), read)
