"""JAX's contenders: jitted functions of arrays that lie on its CPU device."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from symconv.ops.conv_problem import ConvProblem
from symconv.ops.spec import Kind

from .contender import Array, Contender

NAMES = ("jax",)


def read(result: Any) -> list[Array]:
    """Arrays of one result or of several."""
    return [np.asarray(each) for each in (result if isinstance(result, (list, tuple)) else [result])]


def waiting(function: Callable[..., Any], arguments: Sequence[Any]) -> Callable[[], Any]:
    """A call that returns when the result is there."""
    return lambda: jax.block_until_ready(function(*arguments))


def layer(name: str, problem: ConvProblem, arrays: Sequence[Array]) -> Contender:
    """A single convolution; gradients are the transposes that `jax.grad` would take."""
    spec = problem.spec

    def convolve(image: Any, filters: Any) -> Any:
        return jax.lax.conv_general_dilated(image, filters, spec.stride, list(zip(spec.pad_lo, spec.pad_hi, strict=True)),
                                            rhs_dilation=spec.dilation, feature_group_count=spec.groups)

    x, w = (jax.ShapeDtypeStruct(shape, problem.dtype) for shape in (problem.x_shape, problem.w_shape))

    def to_image(loss: Any, filters: Any) -> Any:
        return jax.linear_transpose(lambda image: convolve(image, filters), x)(loss)[0]

    def to_filters(image: Any, loss: Any) -> Any:
        return jax.linear_transpose(lambda filters: convolve(image, filters), w)(loss)[0]

    function = {Kind.FPROP: convolve, Kind.DGRAD: to_image, Kind.WGRAD: to_filters}[problem.kind]
    return Contender(name, waiting(jax.jit(function), [jnp.asarray(array) for array in arrays]), read)


def elementwise(name: str, chain: Callable[..., Any], arrays: Sequence[Array]) -> Contender:
    """A chain of elementwise operations."""
    return Contender(name, waiting(jax.jit(lambda *inputs: chain(jnp, *inputs)), [jnp.asarray(array) for array in arrays]), read)


def network_inference(name: str, network: str, batch: int) -> Contender:
    """Scores of a batch of images."""
    from networks.in_jax import inference
    from networks.parameters import make_batch, make_parameters

    return Contender(name, inference(network, make_parameters(network), make_batch(network, batch)[0]), read)


def network_step(name: str, network: str, batch: int) -> Contender:
    """A training step."""
    from networks.in_jax import training_step
    from networks.parameters import make_batch, make_parameters

    from .rows_networks import LEARNING_RATE, MOMENTUM

    images, labels = make_batch(network, batch)
    step = training_step(network, make_parameters(network), images, labels.astype(np.int32), LEARNING_RATE, MOMENTUM[network])
    return Contender(name, step, read)
