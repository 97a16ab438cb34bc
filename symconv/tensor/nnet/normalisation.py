"""Normalisation: by batch, layer, group, instance and local response. All are composed of elementary operations.

Mean and variance are taken together (`ops/moments.py`), in a form that stays exact where mean² is large against the variance.
float16 and bfloat16 are computed in float32 and their statistics are float32.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...errors import ArgumentError, GraphTypeError, ShapeError, explain_error
from ...graph import Variable, apply_op
from ...ops.axes import normalize_axes
from ...ops.constants import as_variable
from ...ops.elementwise import rsqrt, sqrt, square
from ...ops.moments import moments
from ...ops.pooling import Pool
from ...ops.shape import Size, size_of
from ...ops.sizes import joined_size

__all__ = ["batch_normalization", "batch_normalization_test", "batch_normalization_train", "group_normalization",
           "instance_normalization", "layer_normalization", "local_response_normalization"]


def batch_normalization_train(inputs: Any, gamma: Any, beta: Any, axes: Any = "per-activation", epsilon: float = 1e-4,
                              running_average_factor: float = 0.1, running_mean: Any = None,
                              running_var: Any = None) -> tuple[Variable, ...]:
    """Normalise with the statistics of the batch: (inputs - mean)·invstd·gamma + beta.

    Args:
        inputs: floats, of any rank.
        gamma, beta: scale and shift: one axis for each axis of `inputs` that is not in `axes`, or the rank of `inputs` with
            size 1 along `axes`.
        axes: the axes that are averaged over: "per-activation" is (0,), "spatial" is (0, 2, 3, …), or an int or a tuple.
        epsilon: added to the variance; at least 1e-5, as cuDNN asks.
        running_average_factor: how much of the new statistics the running ones take in.
        running_mean, running_var: running statistics, shaped as `gamma`; both or none.

    Returns:
        (out, mean, invstd), and with running statistics also (new_running_mean, new_running_var) for updates; all but
        `out` have the rank of `gamma`.  invstd is 1/√(var + epsilon) with the biased variance;
        new_running_mean = (1 - f)·running_mean + f·mean;  new_running_var = (1 - f)·running_var + f·m/(m - 1)·var, where m
        is the number of elements behind each statistic (m = 1 divides by zero).

    Raises:
        ArgumentError: axes or an epsilon that do not fit, one running statistic without the other.
        ShapeError: a parameter whose rank or sizes do not fit.

    Ioffe and Szegedy 2015, arXiv:1502.03167. Theano: `bn.batch_normalization_train`; there only `out` had a gradient.
    """
    x, wide = _floats(inputs)
    chosen = _batch_axes(axes, x.ndim)
    _check_epsilon(epsilon)
    if (running_mean is None) != (running_var is None):
        raise ArgumentError(explain_error("running_mean and running_var go together", "only one of them"))
    scale, shift = (_parameter(name, value, x, chosen) for name, value in (("gamma", gamma), ("beta", beta)))
    mean, var = moments(wide, chosen)
    invstd = rsqrt(var + epsilon)
    out = ((wide - mean) * (scale * invstd) + shift).astype(x.dtype)
    squeeze = as_variable(gamma).ndim != x.ndim
    results = [mean, invstd]
    if running_mean is not None:
        old_mean = _parameter("running_mean", running_mean, x, chosen)
        old_var = _parameter("running_var", running_var, x, chosen)
        results += _running(old_mean, old_var, mean, var, _count(x, chosen), running_average_factor)
    return (out, *(_without(result, chosen) if squeeze else result for result in results))


def batch_normalization_test(inputs: Any, gamma: Any, beta: Any, mean: Any, var: Any, axes: Any = "per-activation",
                             epsilon: float = 1e-4) -> Variable:
    """Normalise with given statistics: (inputs - mean)·gamma/√(var + epsilon) + beta.

    `mean` and `var` are shaped as `gamma` and `beta`; all arguments as in `batch_normalization_train`. Note that it takes
    the variance, where training returns the inverse standard deviation.
    """
    x, wide = _floats(inputs)
    chosen = _batch_axes(axes, x.ndim)
    _check_epsilon(epsilon)
    scale, shift, centre, spread = (_parameter(name, value, x, chosen) for name, value in
                                    (("gamma", gamma), ("beta", beta), ("mean", mean), ("var", var)))
    return ((wide - centre) * (scale / sqrt(spread + epsilon)) + shift).astype(x.dtype)


def batch_normalization(inputs: Any, gamma: Any, beta: Any, mean: Any, std: Any, mode: str = "low_mem") -> Variable:
    """(inputs - mean)·gamma/std + beta; all broadcast as NumPy, so statistics by channel have axes of size 1.

    `mode`: Theano's "low_mem" or "high_mem", which name the same computation here.  ArgumentError for another.
    """
    if mode not in ("low_mem", "high_mem"):
        raise ArgumentError(explain_error("batch_normalization has no such mode", repr(mode), 'use "low_mem" or "high_mem"'))
    x, wide = _floats(inputs)
    return ((wide - as_variable(mean)) * (as_variable(gamma) / as_variable(std)) + as_variable(beta)).astype(x.dtype)


def layer_normalization(x: Any, gamma: Any = None, beta: Any = None, axes: Any = -1, epsilon: float = 1e-5) -> Variable:
    """Normalise over `axes`, then ·gamma + beta, which broadcast against x. Ba et al. 2016, arXiv:1607.06450."""
    variable, wide = _floats(x)
    return _affine(_standardised(wide, normalize_axes(axes, variable.ndim), epsilon), gamma, beta).astype(variable.dtype)


def group_normalization(x: Any, groups: int, gamma: Any = None, beta: Any = None, epsilon: float = 1e-5) -> Variable:
    """Normalise [N, C, ...] over each of `groups` groups of channels and all spatial axes, then ·gamma + beta of shape [C].

    The static number of channels must be a multiple of `groups`. Wu and He 2018, arXiv:1803.08494.
    """
    variable, wide = _floats(x)
    channels = variable.static_shape[1] if variable.ndim >= 2 else None
    if channels is None or groups < 1 or channels % groups:
        raise ShapeError(explain_error("group normalisation divides a known number of channels into equal groups",
                                       f"{variable.type} and groups={groups}",
                                       "give x a static size on axis 1 that is a multiple of groups"))
    sizes = [size_of(variable, axis) for axis in range(variable.ndim)]
    grouped = wide.reshape(sizes[0], groups, channels // groups, *sizes[2:])
    normal = _standardised(grouped, tuple(range(2, grouped.ndim)), epsilon).reshape(*sizes)
    return _affine(normal, _by_channel(gamma, variable.ndim), _by_channel(beta, variable.ndim)).astype(variable.dtype)


def instance_normalization(x: Any, gamma: Any = None, beta: Any = None, epsilon: float = 1e-5) -> Variable:
    """Normalise every channel of every example of [N, C, ...] over its spatial axes, then ·gamma + beta of shape [C].

    Ulyanov et al. 2016, arXiv:1607.08022.
    """
    variable, wide = _floats(x)
    if variable.ndim < 3:
        raise GraphTypeError(explain_error("instance normalisation needs spatial axes", str(variable.type),
                                           "pass [N, C, ...]"))
    normal = _standardised(wide, tuple(range(2, variable.ndim)), epsilon)
    return _affine(normal, _by_channel(gamma, variable.ndim), _by_channel(beta, variable.ndim)).astype(variable.dtype)


def local_response_normalization(x: Any, n: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 2.0) -> Variable:
    """Divide by the activity of neighbouring channels: y_c = x_c / (k + alpha·Σ x_j²)^beta, j from c - n//2 to c + n//2.

    Args:
        x: floats [N, C, ...], any number of spatial axes, none included.
        n: how many adjacent channels count, an odd number; channels that do not exist count as 0.
        alpha: factor of the sum. It is not divided by n, as in the paper; cuDNN and PyTorch divide their alpha by n.

    Krizhevsky, Sutskever and Hinton 2012, "ImageNet classification with deep convolutional neural networks", section 3.3,
    whose constants are the defaults.
    """
    variable, wide = _floats(x)
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or n % 2 == 0:
        raise ArgumentError(explain_error("local response normalisation counts an odd number of channels", repr(n)))
    if variable.ndim < 2:
        raise GraphTypeError(explain_error("local response normalisation needs [N, C, ...]", str(variable.type)))
    sizes = [size_of(wide, axis) for axis in range(wide.ndim)]
    squares = square(wide).reshape(sizes[0], sizes[1], joined_size(sizes[2:]))
    activity = apply_op(Pool("sum", (n, 1), (1, 1), (n // 2, 0), (n // 2, 0)), squares).reshape(*sizes)
    return (wide * (activity * alpha + k) ** -beta).astype(variable.dtype)


def _floats(value: Any) -> tuple[Variable, Variable]:
    """The input, and the input in the dtype that it is computed in."""
    x = as_variable(value)
    if not dtypes.is_float(x.dtype):
        raise GraphTypeError(explain_error("normalisation needs floats", str(x.type), 'cast the input: x.astype("float32")'))
    return x, x.astype(dtypes.accumulator(x.dtype))


def _batch_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if isinstance(axes, str):
        named = {"per-activation": (0,), "spatial": (0, *range(2, ndim))}
        if axes not in named:
            raise ArgumentError(explain_error("axes is 'per-activation', 'spatial' or a tuple of axes", repr(axes)))
        axes = named[axes]
    chosen = tuple(sorted(normalize_axes(axes, ndim)))
    if not chosen:
        raise ArgumentError(explain_error("batch normalisation averages over at least one axis", repr(axes)))
    return chosen


def _check_epsilon(epsilon: float) -> None:
    if epsilon < 1e-5:
        raise ArgumentError(explain_error("epsilon must be at least 1e-5", repr(epsilon)))


def _parameter(name: str, value: Any, x: Variable, axes: Sequence[int]) -> Variable:
    """A parameter with the rank of x, size 1 along the axes and the dtype that x is computed in."""
    variable = as_variable(value)
    variable = variable.astype(dtypes.promote([variable.dtype, dtypes.accumulator(x.dtype)]))
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    if variable.ndim == len(kept):
        variable = variable.dimshuffle(*(kept.index(axis) if axis in kept else "x" for axis in range(x.ndim)))
    elif variable.ndim != x.ndim:
        raise ShapeError(explain_error(f"{name} has rank {variable.ndim}, which does not fit inputs of rank {x.ndim}",
                                       f"{variable.type} for {x.type} normalised over the axes {tuple(axes)}",
                                       f"give it rank {len(kept)}, or rank {x.ndim} with size 1 along these axes"))
    for axis, (size, wanted) in enumerate(zip(variable.static_shape, x.static_shape, strict=True)):
        wanted = 1 if axis in axes else wanted
        if size is not None and wanted is not None and size != wanted:
            raise ShapeError(explain_error(f"{name} has size {size} on axis {axis} of the inputs, where {wanted} is needed",
                                           f"{as_variable(value).type} for {x.type}, axes {tuple(axes)}"))
    return variable


def _count(x: Variable, axes: Sequence[int]) -> Size:
    """Number of elements behind each statistic."""
    return joined_size([size_of(x, axis) for axis in axes])


def _running(old_mean: Variable, old_var: Variable, mean: Variable, var: Variable, count: Size,
             factor: Any) -> list[Variable]:
    elements = as_variable(count, var.dtype)
    unbiased = var * (elements / (elements - 1))
    return [old_mean * (1 - factor) + mean * factor, old_var * (1 - factor) + unbiased * factor]


def _without(x: Variable, axes: Sequence[int]) -> Variable:
    return x.dimshuffle(*(axis for axis in range(x.ndim) if axis not in axes))


def _standardised(x: Variable, axes: tuple[int, ...], epsilon: float) -> Variable:
    mean, variance = moments(x, axes)
    return (x - mean) * rsqrt(variance + epsilon)


def _by_channel(parameter: Any, ndim: int) -> Variable | None:
    if parameter is None:
        return None
    variable = as_variable(parameter)
    if variable.ndim != 1:
        raise ShapeError(explain_error("a parameter by channel has one axis", str(variable.type)))
    return variable.dimshuffle("x", 0, *["x"] * (ndim - 2))


def _affine(x: Variable, gamma: Variable | None, beta: Variable | None) -> Variable:
    scaled = x if gamma is None else x * gamma
    return scaled if beta is None else scaled + beta
