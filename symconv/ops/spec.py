"""What a convolution is, without any graph: its kinds, its parameters, its shape rules.

Three roles, named as in cuDNN: the image x (N, C, *spatial), the filters w (K, C / groups, *kernel) and the response
y (N, K, *spatial).  `ConvSpec` is always stated for the forward direction x, w → y.  The three kinds are the three
partial derivatives of one form T(x, w, y) = ⟨y, conv(x, w)⟩, which is linear in each of x, w and y.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from .. import dtypes
from ..errors import ArgumentError, GraphTypeError, InternalError, ShapeError, explain_error
from .border_modes import RULES, AxisPadding, axis_values, is_whole_number, parse_border_mode, rule_padding

Sizes = tuple[int | None, ...]
Role = str
"""One of "x", "w", "y"."""


class Kind(Enum):
    """Which of x, w, y a convolution makes from the other two."""

    FPROP = "fprop"
    DGRAD = "dgrad"
    WGRAD = "wgrad"

    @property
    def reads(self) -> tuple[Role, Role]:
        """The roles of its two tensor inputs, in order."""
        return {"fprop": ("x", "w"), "dgrad": ("y", "w"), "wgrad": ("x", "y")}[self.value]

    @property
    def produces(self) -> Role:
        """The role of its result."""
        return {"fprop": "y", "dgrad": "x", "wgrad": "w"}[self.value]

    @property
    def ends(self) -> tuple[Role, Role]:
        """The roles of the two tensors that have channels and pixels, one that is read in front."""
        return ("y", "x") if self is Kind.DGRAD else ("x", "y")

    @classmethod
    def producing(cls, role: Role) -> Kind:
        """The kind that makes a role.

        >>> Kind.producing("w")
        <Kind.WGRAD: 'wgrad'>
        """
        return {"y": cls.FPROP, "x": cls.DGRAD, "w": cls.WGRAD}[role]


@dataclass(frozen=True, slots=True)
class ConvSpec:
    """The parameters of a convolution over `ndim` spatial axes (1 to 3), stated for the forward direction.

    `flip` is True for a true convolution (the kernel reversed along every spatial axis), False for cross-correlation.
    `dilation` 1 means no gaps.  `compute_dtype` is what products are summed in (None: `dtypes.accumulator`).
    `pad_rule` holds, for an axis whose padding waits for sizes that are not known yet, the name of its rule (else ""); the
    two pads of such an axis are 0 and mean nothing until `resolved` has put them in.  Ask `is_resolved`.
    """

    ndim: int
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    pad_lo: tuple[int, ...]
    pad_hi: tuple[int, ...]
    groups: int = 1
    flip: bool = False
    compute_dtype: str | None = None
    pad_rule: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.pad_rule:
            object.__setattr__(self, "pad_rule", ("",) * self.ndim)
        lengths = {len(each) for each in (self.stride, self.dilation, self.pad_lo, self.pad_hi, self.pad_rule)}
        if self.ndim not in (1, 2, 3) or lengths != {self.ndim}:
            raise InternalError(f"a ConvSpec of rank {self.ndim} with fields of lengths {sorted(lengths)}")
        if min(self.stride + self.dilation) < 1 or min(self.pad_lo + self.pad_hi) < 0 or self.groups < 1:
            raise InternalError(f"a ConvSpec with a number that is too small: {self}")
        for rule, low, high in zip(self.pad_rule, self.pad_lo, self.pad_hi, strict=True):
            if rule and (rule not in RULES or low or high):
                raise InternalError(f"a ConvSpec axis with the rule {rule!r} and the pads {low}, {high}")

    @property
    def is_resolved(self) -> bool:
        """Whether the padding of every axis is known in numbers."""
        return not any(self.pad_rule)

    @property
    def padding(self) -> tuple[AxisPadding, ...]:
        """For each axis the pair (before, after), or the name of a rule that waits for sizes."""
        return tuple(rule or (low, high) for rule, low, high in zip(self.pad_rule, self.pad_lo, self.pad_hi, strict=True))

    def with_padding(self, padding: Sequence[AxisPadding]) -> ConvSpec:
        """The same with another padding, as `padding` gives it."""
        pairs = [(0, 0) if isinstance(each, str) else each for each in padding]
        return replace(self, pad_lo=tuple(low for low, _ in pairs), pad_hi=tuple(high for _, high in pairs),
                       pad_rule=tuple(each if isinstance(each, str) else "" for each in padding))

    def resolved(self, x_spatial: Sequence[int | None], w_spatial: Sequence[int | None]) -> ConvSpec:
        """The same with every rule turned into pads whose sizes are known; fully resolved where all sizes are known.

        >>> make_spec(2, border_mode="same", stride=2).resolved((8, None), (3, 3)).padding
        ((0, 1), 'same')
        """
        if self.is_resolved:
            return self
        found = [
            pad if not isinstance(pad, str) else rule_padding(pad, x_spatial[axis], w_spatial[axis],
                                                              self.stride[axis], self.dilation[axis]) or pad
            for axis, pad in enumerate(self.padding)
        ]
        return self.with_padding(found)

    def accumulator(self, dtype: str) -> str:
        """The dtype in which products of operands of `dtype` are summed."""
        return self.compute_dtype or dtypes.accumulator(dtype)

    def __str__(self) -> str:
        parts = ["convolution" if self.flip else "cross-correlation"]
        if any(pad != (0, 0) for pad in self.padding):
            parts.append("padding " + " ".join(
                pad if isinstance(pad, str) else str(pad[0]) if pad[0] == pad[1] else f"{pad[0]}:{pad[1]}"
                for pad in self.padding))
        for word, values in (("stride", self.stride), ("dilation", self.dilation)):
            if set(values) != {1}:
                parts.append(f"{word} {'x'.join(map(str, values))}")
        if self.groups != 1:
            parts.append(f"groups {self.groups}")
        if self.compute_dtype:
            parts.append(f"computed in {self.compute_dtype}")
        return ", ".join(parts)


def make_spec(ndim: int, border_mode: Any = "valid", stride: Any = 1, dilation: Any = 1, groups: Any = 1, flip: bool = False,
              compute_dtype: Any = None, names: tuple[str, str, str, str] = ("border_mode", "stride", "dilation", "groups"),
              ) -> ConvSpec:
    """A checked ConvSpec from what a user wrote; `names` are the words of the API that the errors should use.

    >>> print(make_spec(2, border_mode="half", stride=2, groups=4))
    cross-correlation, padding half half, stride 2x2, groups 4
    """
    if ndim not in (1, 2, 3):
        raise ArgumentError(explain_error("a convolution has 1, 2 or 3 spatial axes", str(ndim)))
    padding = parse_border_mode(border_mode, ndim, names[0])
    spec = ConvSpec(ndim, axis_values(stride, ndim, names[1]), axis_values(dilation, ndim, names[2]), (0,) * ndim,
                    (0,) * ndim, _checked_groups(groups, names[3]), _checked_flip(flip), _checked_compute(compute_dtype))
    return spec.with_padding(padding)


def _checked_groups(groups: Any, name: str) -> int:
    if not is_whole_number(groups):
        raise GraphTypeError(explain_error(f"{name} must be a whole number, known when the graph is built", repr(groups)))
    if groups < 1:
        raise ArgumentError(explain_error(f"{name} must be 1 or more", repr(groups)))
    return int(groups)


def _checked_flip(flip: Any) -> bool:
    if flip not in (True, False):
        raise GraphTypeError(explain_error("whether the kernel is flipped is True or False", repr(flip)))
    return bool(flip)


def _checked_compute(dtype: Any) -> str | None:
    if dtype is None:
        return None
    name = dtypes.canonical(dtype)
    if name not in ("float32", "float64"):
        raise ArgumentError(explain_error("products of a convolution are summed in float32 or float64", name,
                                          "leave it out to sum float16 and bfloat16 in float32"))
    return name


def output_shape(x_shape: Sequence[int | None], w_shape: Sequence[int | None], spec: ConvSpec) -> Sizes:
    """The shape of y; None where a size that it needs is None. A ShapeError where x and w do not fit together.

    >>> output_shape((3, 2, 12, 9), (4, 2, 5, 6), make_spec(2, "half", stride=(1, 2), dilation=(2, 1)))
    (3, 4, 12, 5)
    """
    check_ranks(x_shape, w_shape, spec)
    check_channels(x_shape, w_shape, spec)
    return (x_shape[0], w_shape[0], *(_output_size(x_shape, w_shape, spec, axis) for axis in range(spec.ndim)))


def _output_size(x_shape: Sequence[int | None], w_shape: Sequence[int | None], spec: ConvSpec, axis: int) -> int | None:
    size, kernel, stride, dilation = x_shape[2 + axis], w_shape[2 + axis], spec.stride[axis], spec.dilation[axis]
    if kernel == 0:
        raise ShapeError(explain_error(f"the kernel has no elements along spatial axis {axis}", f"filters {_text(w_shape)}"))
    padding: tuple[int, int] | str | None = spec.pad_rule[axis] or (spec.pad_lo[axis], spec.pad_hi[axis])
    if isinstance(padding, str):
        if padding.startswith("same") and size:
            return -(-size // stride)
        padding = rule_padding(padding, size, kernel, stride, dilation)
    if size is None or kernel is None or padding is None:
        return None
    room = size + sum(padding) - ((kernel - 1) * dilation + 1)
    if room < 0:
        raise ShapeError(_too_large(x_shape, w_shape, spec, axis, padding))
    return room // stride + 1


def _too_large(x_shape: Sequence[int | None], w_shape: Sequence[int | None], spec: ConvSpec, axis: int,
               padding: tuple[int, int]) -> str:
    size, kernel, dilation = x_shape[2 + axis] or 0, w_shape[2 + axis] or 0, spec.dilation[axis]
    dilated = (kernel - 1) * dilation + 1
    spread = f"kernel {kernel}" + (f" with dilation {dilation} spans {dilated}" if dilation > 1 else "")
    return explain_error(
        f"the kernel is larger than the padded image along spatial axis {axis} (axis {axis + 2} of the image)",
        f"{spread}; image {size} + padding {padding[0]} + {padding[1]} = {size + sum(padding)}; "
        f"image {_text(x_shape)}, filters {_text(w_shape)}", "pad more, or use a smaller kernel or dilation")


def check_ranks(x_shape: Sequence[Any], w_shape: Sequence[Any], spec: ConvSpec,
                names: tuple[str, str] = ("image", "filters")) -> None:
    """A GraphTypeError unless both have ndim + 2 axes."""
    wanted = spec.ndim + 2
    layouts = {"image": "(batch, channels, *sizes)", "filters": "(filters, channels / groups, *sizes)",
               "output gradient": "(batch, filters, *sizes)"}
    for name, shape in zip(names, (x_shape, w_shape), strict=True):
        if len(shape) != wanted:
            raise GraphTypeError(explain_error(
                f"the {name} of a {spec.ndim}-D convolution must have {wanted} axes {layouts[name]}",
                f"{len(shape)} axes, shape {_text(shape)}"))


def check_channels(x_shape: Sequence[int | None], w_shape: Sequence[int | None], spec: ConvSpec) -> None:
    """A ShapeError where the channels of image and filters and the groups do not fit together, as far as known."""
    channels, per_group, filters = x_shape[1], w_shape[1], w_shape[0]
    sizes = f"image {_text(x_shape)}, filters {_text(w_shape)}, groups {spec.groups}"
    if channels is not None and channels % spec.groups:
        raise ShapeError(explain_error(f"the image's {channels} channels do not divide into {spec.groups} groups", sizes))
    if filters is not None and filters % spec.groups:
        raise ShapeError(explain_error(f"the {filters} filters do not divide into {spec.groups} groups", sizes))
    if channels is not None and per_group is not None and channels != per_group * spec.groups:
        raise ShapeError(explain_error(
            f"the filters take {per_group * spec.groups} channels, the image has {channels}", sizes,
            "make the image's channels equal to the filters' channels (their axis 1) times the groups"))


def check_output(x_shape: Sequence[int | None], w_shape: Sequence[int | None], y_shape: Sequence[int | None],
                 spec: ConvSpec) -> None:
    """A ShapeError unless y can be the response of x and w, as far as sizes are known."""
    if len(y_shape) != spec.ndim + 2:
        check_ranks(x_shape, y_shape, spec, ("image", "output gradient"))
    expected = output_shape(x_shape, w_shape, spec)
    if any(a is not None and b is not None and a != b for a, b in zip(expected, y_shape, strict=True)):
        raise ShapeError(explain_error(
            f"an image {_text(x_shape)} and filters {_text(w_shape)} give a response {_text(expected)}, "
            f"but the output gradient has the shape {_text(y_shape)}", f"{spec}"))


def image_shape(y_shape: Sequence[int | None], w_shape: Sequence[int | None], spec: ConvSpec) -> Sizes:
    """What y and w tell of the shape of x: batch, channels, and the sizes along axes with stride 1."""
    check_ranks(y_shape, w_shape, spec, ("output gradient", "filters"))
    _check_filters(y_shape, w_shape)
    known = spec.resolved((None,) * spec.ndim, w_shape[2:])
    channels = None if w_shape[1] is None else w_shape[1] * spec.groups
    return (y_shape[0], channels, *(
        _inverse_size(y_shape[2 + axis], w_shape[2 + axis], known, axis) for axis in range(spec.ndim)))


def _inverse_size(output: int | None, kernel: int | None, spec: ConvSpec, axis: int) -> int | None:
    if spec.stride[axis] != 1 or output is None:
        return None
    if spec.pad_rule[axis].startswith("same"):
        return output
    if kernel is None or spec.pad_rule[axis]:
        return None
    size = output + (kernel - 1) * spec.dilation[axis] - spec.pad_lo[axis] - spec.pad_hi[axis]
    return max(size, 0)


def filters_shape(x_shape: Sequence[int | None], y_shape: Sequence[int | None], spec: ConvSpec) -> Sizes:
    """What x and y tell of the shape of w: filters, channels, and the sizes along axes with stride 1 and known pads."""
    check_ranks(x_shape, y_shape, spec, ("image", "output gradient"))
    channels = None if x_shape[1] is None or x_shape[1] % spec.groups else x_shape[1] // spec.groups
    return (y_shape[1], channels, *(_kernel_size(x_shape[2 + axis], y_shape[2 + axis], spec, axis)
                                    for axis in range(spec.ndim)))


def _kernel_size(size: int | None, output: int | None, spec: ConvSpec, axis: int) -> int | None:
    if spec.stride[axis] != 1 or spec.pad_rule[axis] or size is None or output is None:
        return None
    spread = size + spec.pad_lo[axis] + spec.pad_hi[axis] - output
    return None if spread < 0 or spread % spec.dilation[axis] else spread // spec.dilation[axis] + 1


def _check_filters(y_shape: Sequence[int | None], w_shape: Sequence[int | None]) -> None:
    if y_shape[1] is not None and w_shape[0] is not None and y_shape[1] != w_shape[0]:
        raise ShapeError(explain_error(
            f"the output gradient has {y_shape[1]} channels for {w_shape[0]} filters",
            f"output gradient {_text(y_shape)}, filters {_text(w_shape)}"))


def _text(shape: Sequence[Any]) -> str:
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"
