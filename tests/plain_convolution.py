"""Convolution by plain loops over outputs and kernel elements: an oracle that shares nothing with symconv."""
from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Setting(NamedTuple):
    """A convolution: sizes and parameters of each axis, `pads` as (before, after), or a mode name."""

    batch: int
    channels: int
    image: tuple[int, ...]
    filters: int
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    mode: Any
    groups: int
    flip: bool


def plain_pads(mode: Any, size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """The zeros that a border mode puts before and after an axis; `same` by searching the least that keeps the size."""
    spread = kernel + (kernel - 1) * (dilation - 1)
    if mode == "valid":
        return 0, 0
    if mode == "half":
        return spread // 2, spread // 2
    if mode == "full":
        return spread - 1, spread - 1
    if mode == "causal":
        return spread - 1, 0
    if mode in ("same", "same_upper", "same_lower"):
        wanted = len(range(0, size, stride))
        total = next(total for total in itertools.count() if len(range(0, size + total - spread + 1, stride)) >= wanted)
        less, more = total // 2, total - total // 2
        return (more, less) if mode == "same_lower" else (less, more)
    return (mode, mode) if isinstance(mode, int) else (mode[0], mode[1])


def plain_padding(setting: Setting) -> list[tuple[int, int]]:
    """The zeros before and after every axis."""
    modes = setting.mode if isinstance(setting.mode, (list, tuple)) else [setting.mode] * len(setting.image)
    return [plain_pads(*each) for each in zip(modes, setting.image, setting.kernel, setting.stride, setting.dilation,
                                              strict=True)]


def plain_outputs(setting: Setting) -> tuple[int, ...]:
    """How many places the kernel has along each axis, found by walking (0 or less: it does not fit)."""
    counts = []
    for (before, after), size, kernel, stride, dilation in zip(plain_padding(setting), setting.image, setting.kernel,
                                                               setting.stride, setting.dilation, strict=True):
        places = 0
        while places * stride + (kernel - 1) * dilation < before + size + after:
            places += 1
        counts.append(places)
    return tuple(counts)


def _meetings(setting: Setting) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(output, kernel element, image element) that are multiplied."""
    pads = plain_padding(setting)
    for output in itertools.product(*map(range, plain_outputs(setting))):
        for tap in itertools.product(*map(range, setting.kernel)):
            place = tuple(
                o * s + (k - 1 - t if setting.flip else t) * d - p[0]
                for o, s, t, k, d, p
                in zip(output, setting.stride, tap, setting.kernel, setting.dilation, pads, strict=True))
            if all(0 <= i < size for i, size in zip(place, setting.image, strict=True)):
                yield output, tap, place


def _group_slices(setting: Setting) -> Iterator[tuple[slice, slice]]:
    """(filters, channels) of every group."""
    k, c = setting.filters // setting.groups, setting.channels // setting.groups
    for group in range(setting.groups):
        yield slice(group * k, (group + 1) * k), slice(group * c, (group + 1) * c)


def plain_shapes(setting: Setting) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The shapes of x, w and y."""
    return ((setting.batch, setting.channels, *setting.image),
            (setting.filters, setting.channels // setting.groups, *setting.kernel),
            (setting.batch, setting.filters, *plain_outputs(setting)))


def plain_fprop(x: Array, w: Array, setting: Setting) -> Array:
    """y, in float64."""
    y = np.zeros(plain_shapes(setting)[2])
    for output, tap, place in _meetings(setting):
        for filters, channels in _group_slices(setting):
            y[(slice(None), filters, *output)] += np.einsum("nc,kc->nk", x[(slice(None), channels, *place)],
                                                            w[(filters, slice(None), *tap)])
    return y


def plain_dgrad(y: Array, w: Array, setting: Setting) -> Array:
    """x, in float64."""
    x = np.zeros(plain_shapes(setting)[0])
    for output, tap, place in _meetings(setting):
        for filters, channels in _group_slices(setting):
            x[(slice(None), channels, *place)] += np.einsum("nk,kc->nc", y[(slice(None), filters, *output)],
                                                            w[(filters, slice(None), *tap)])
    return x


def plain_wgrad(x: Array, y: Array, setting: Setting) -> Array:
    """w, in float64."""
    w = np.zeros(plain_shapes(setting)[1])
    for output, tap, place in _meetings(setting):
        for filters, channels in _group_slices(setting):
            w[(filters, slice(None), *tap)] += np.einsum("nk,nc->kc", y[(slice(None), filters, *output)],
                                                         x[(slice(None), channels, *place)])
    return w
