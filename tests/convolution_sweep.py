"""The sweep of convolution settings: all of them, or a sample; and how one setting is checked on a path.

A path is a function from outputs and bindings to arrays: the interpreter of references, or compiled functions.
"""
from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from plain_convolution import Array, Setting, plain_dgrad, plain_fprop, plain_outputs, plain_shapes, plain_wgrad

from symconv.graph import TensorType, Variable
from symconv.ops.conv_builders import conv_dgrad, conv_fprop, conv_wgrad
from symconv.ops.spec import make_spec

Path = Callable[[list[Variable], dict[Variable, Array]], list[Array]]

KERNELS, STRIDES, DILATIONS, SIZES, BATCHES = (1, 2, 3, 5), (1, 2, 3), (1, 2, 3), tuple(range(1, 18)), (0, 1, 3)
MODES: tuple[Any, ...] = (0, 1, 2, (0, 1), (2, 0), "half", "full", "same", "same_lower")
GROUPS = ("one", "two", "depthwise")
PARAMETERS: tuple[tuple[Any, ...], ...] = (KERNELS, STRIDES, DILATIONS, GROUPS, MODES, SIZES, BATCHES, (False, True))


def settings(ndim: int, seed: int = 0) -> Iterator[Setting]:
    """Every setting of the sweep that has an output.

    For ranks 2 and 3 the swept parameters are those of one axis, which takes turns; the other axes are small and drawn.
    """
    chosen = random.Random(seed)
    for number, values in enumerate(itertools.product(*PARAMETERS)):
        setting = _setting(values, ndim, number % ndim, chosen)
        if min(plain_outputs(setting)) > 0:
            yield setting


def sample(ndim: int, count: int, seed: int = 0) -> list[Setting]:
    """A seeded sample of the sweep."""
    chosen = random.Random(seed)
    found: list[Setting] = []
    while len(found) < count:
        setting = _setting([chosen.choice(each) for each in PARAMETERS], ndim, chosen.randrange(ndim), chosen)
        if min(plain_outputs(setting)) > 0:
            found.append(setting)
    return found


def _setting(values: Sequence[Any], ndim: int, turn: int, chosen: random.Random) -> Setting:
    kernel, stride, dilation, groups, mode, size, batch, flip = values
    axes = [(chosen.randint(2, 4), chosen.choice((1, 2)), chosen.choice(STRIDES), chosen.choice((1, 2)),
             chosen.choice(MODES)) for _ in range(ndim - 1)]
    axes.insert(turn, (size, kernel, stride, dilation, mode))
    image, kernels, strides, dilations, modes = zip(*axes, strict=True)
    channels, filters, count = {"one": (2, 3, 1), "two": (4, 2, 2), "depthwise": (3, 6, 3)}[groups]
    return Setting(batch, channels, image, filters, kernels, strides, dilations, modes, count, flip)


def check(setting: Setting, path: Path, dtype: str = "float64", static: bool = False, seed: int = 0) -> None:
    """All three kinds of one setting on a path: equal to plain loops, and adjoint to each other."""
    rtol = {"float64": 1e-10, "float32": 1e-4}[dtype]
    shapes = plain_shapes(setting)
    rng = np.random.default_rng(seed)
    x, w, u = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    xv, wv, uv = (Variable(TensorType(dtype, shape if static else (None,) * len(shape)), name)
                  for name, shape in zip("xwu", shapes, strict=True))
    spec = make_spec(len(setting.image), setting.mode, setting.stride, setting.dilation, setting.groups, setting.flip)
    outputs = [conv_fprop(xv, wv, spec), conv_dgrad(uv, wv, xv.shape, spec), conv_wgrad(xv, uv, wv.shape, spec)]
    y, gx, gw = path(outputs, {xv: x, wv: w, uv: u})
    wide = [array.astype(np.float64) for array in (x, w, u)]
    compare("fprop", y, plain_fprop(wide[0], wide[1], setting), rtol, setting)
    compare("dgrad", gx, plain_dgrad(wide[2], wide[1], setting), rtol, setting)
    compare("wgrad", gw, plain_wgrad(wide[0], wide[2], setting), rtol, setting)
    if dtype == "float64":
        forms = [float((a * b).sum()) for a, b in ((y, u), (gx, x), (gw, w))]
        scale = float(np.abs(y * u).sum()) + 1e-300
        assert max(forms) - min(forms) <= 1e-10 * scale, f"not adjoint: {forms} in {setting}"


def compare(kind: str, found: Array, wanted: Array, rtol: float, setting: Setting) -> None:
    """`found` within `rtol` of `wanted`, relative to its largest element."""
    assert found.shape == wanted.shape, f"{kind}: shape {found.shape}, not {wanted.shape} in {setting}"
    scale = float(np.abs(wanted).max(initial=0.0))
    error = float(np.abs(found - wanted).max(initial=0.0))
    assert error <= rtol * max(scale, 1e-3), f"{kind}: off by {error} of {scale} in {setting}"
