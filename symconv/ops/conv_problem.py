r"""A convolution with every size known, as a value and as a line of text.

The text is the key of tuning, the row of a benchmark and the name of a test case:

    fprop n50 c64 h56 w56 k64 r3 s3 p1 f32 +bias+relu

    kind     fprop | dgrad | wgrad
    sizes    n batch, c channels of the image (all groups), then the image: w | h w | d h w; k filters, then the kernel:
             s | r s | t r s.  One, two or three letters make a 1-D, 2-D or 3-D convolution
    u        stride, l dilation, p padding: one value for all axes or one each (u2, u2x1); left out where 1, 1, 0
             a padding that differs on the two sides is before:after (p0:1, p1x0:2)
    g        groups, left out where 1
    flip     a true convolution (left out: cross-correlation)
    dtype    f16 | bf16 | f32 | f64, then @f64 where sums run in another dtype than usual, then >f16 where the result has
             another dtype
    layout   nchw8c: image and result in blocks of 8 channels; nchw>nchw8c: only the result; nhwc: channels last; left out where
             both are plain
    epilogue what is fused behind it: +bias+relu
The sizes are always those of the forward direction.
"""
from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from .. import dtypes
from ..errors import ArgumentError, InternalError, explain_error
from .layout import Layout, parse_layout
from .spec import ConvSpec, Kind, output_shape

_IMAGE, _KERNEL = "dhw", "trs"
_SHORT = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
_LONG = {
    **{short: name for name, short in _SHORT.items()},
    **{f"{kind}{8 * size}": f"{word}{8 * size}" for kind, word in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
    "b8": "bool",
}
_SHORT_ALL = {name: short for short, name in _LONG.items()}
_NUMBERS = re.compile(r"([ncdhwktrsg])(\d+)")
_AXES = re.compile(r"([upl])(\d+(?::\d+)?(?:x\d+(?::\d+)?)*)")
_DTYPE = re.compile(r"(bf16|f16|f32|f64)(?:@(f32|f64))?(?:>(\w+))?")


EVERY_KIND = tuple(each.value for each in Kind)


class GemmSizes(NamedTuple):
    """The matrix products that a convolution is: `batch` times (m, k) @ (k, n)."""

    m: int
    n: int
    k: int
    batch: int


@dataclass(frozen=True, slots=True)
class ConvProblem:
    """One kind of convolution of known sizes: what an implementation is asked about.

    `spec` is resolved; `x_shape` and `w_shape` are those of the forward direction whatever the kind.  `dtype` is that of
    the two tensors read, `result_dtype` of the result.  `epilogue` is the text of what is fused, "" for nothing; `layout` which
    tensors lie in blocks of channels (the shapes here are plain whatever it is).

    >>> problem = ConvProblem.parse("dgrad n2 c8 h9 w9 k4 r3 s3 u2 p0:1 g2 flip f16>f32")
    >>> problem.x_shape, problem.w_shape, problem.y_shape, str(problem)
    ((2, 8, 9, 9), (4, 4, 3, 3), (2, 4, 4, 4), 'dgrad n2 c8 h9 w9 k4 r3 s3 u2 p0:1 g2 flip f16>f32')
    """

    kind: Kind
    spec: ConvSpec
    x_shape: tuple[int, ...]
    w_shape: tuple[int, ...]
    dtype: str
    result_dtype: str
    epilogue: str = ""
    layout: Layout | None = None

    def __post_init__(self) -> None:
        if not self.spec.is_resolved:
            raise InternalError(f"a problem with unresolved padding: {self.spec}")
        usual = dtypes.accumulator(self.dtype)
        if self.spec.compute_dtype == usual:
            object.__setattr__(self, "spec", replace(self.spec, compute_dtype=None))

    @property
    def y_shape(self) -> tuple[int, ...]:
        """The shape of the response."""
        shape = output_shape(self.x_shape, self.w_shape, self.spec)
        return tuple(size for size in shape if size is not None)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of what this kind makes."""
        return {"x": self.x_shape, "w": self.w_shape, "y": self.y_shape}[self.kind.produces]

    @property
    def accumulator(self) -> str:
        """The dtype that products are summed in."""
        return self.spec.accumulator(self.dtype)

    @property
    def flops(self) -> int:
        """Multiplications and additions, those with padding zeros counted too: the same for all three kinds."""
        return 2 * math.prod(self.y_shape) * math.prod(self.w_shape[1:])

    @property
    def bytes(self) -> int:
        """Bytes of both tensors read once and the result written once."""
        sizes = {"x": math.prod(self.x_shape), "w": math.prod(self.w_shape), "y": math.prod(self.y_shape)}
        read = sum(sizes[role] for role in self.kind.reads) * dtypes.itemsize(self.dtype)
        return read + sizes[self.kind.produces] * dtypes.itemsize(self.result_dtype)

    @property
    def gemm(self) -> GemmSizes:
        """The sizes of the implicit matrix products, as in CUTLASS (`implicit_gemm_problem_size`), for each group.

        >>> ConvProblem.parse("fprop n50 c64 h56 w56 k128 r3 s3 p1 f32").gemm
        GemmSizes(m=156800, n=128, k=576, batch=1)
        """
        groups = self.spec.groups
        pixels = self.y_shape[0] * math.prod(self.y_shape[2:])
        filters, per_group, taps = self.w_shape[0] // groups, self.w_shape[1], math.prod(self.w_shape[2:])
        if self.kind is Kind.FPROP:
            return GemmSizes(pixels, filters, per_group * taps, groups)
        if self.kind is Kind.DGRAD:
            return GemmSizes(self.x_shape[0] * math.prod(self.x_shape[2:]), per_group, filters * taps, groups)
        return GemmSizes(filters, per_group * taps, pixels, groups)

    def __str__(self) -> str:
        words = [self.kind.value, f"n{self.x_shape[0]}", f"c{self.x_shape[1]}",
                 *_letters(_IMAGE, self.x_shape[2:]), f"k{self.w_shape[0]}", *_letters(_KERNEL, self.w_shape[2:])]
        pads = [str(low) if low == high else f"{low}:{high}"
                for low, high in zip(self.spec.pad_lo, self.spec.pad_hi, strict=True)]
        for letter, values, usual in (("u", [*map(str, self.spec.stride)], "1"), ("p", pads, "0"),
                                      ("l", [*map(str, self.spec.dilation)], "1")):
            if set(values) != {usual}:
                words.append(letter + (values[0] if len(set(values)) == 1 else "x".join(values)))
        if self.spec.groups != 1:
            words.append(f"g{self.spec.groups}")
        if self.spec.flip:
            words.append("flip")
        layout = "" if self.layout is None else self.layout.text(*self.kind.ends, self.spec.ndim)
        return " ".join([*words, self._dtype_text(), *filter(None, (layout, self.epilogue))])

    def _dtype_text(self) -> str:
        text = _SHORT[self.dtype]
        if self.spec.compute_dtype is not None:
            text += f"@{_SHORT[self.spec.compute_dtype]}"
        return text if self.result_dtype == self.dtype else f"{text}>{_SHORT_ALL[self.result_dtype]}"

    @classmethod
    def parse(cls, text: str) -> ConvProblem:
        """The problem that a line of text says; the module's text has the grammar. ArgumentError where it says none."""
        kind, *words = text.split() or [""]
        if kind not in [each.value for each in Kind]:
            raise ArgumentError(_unreadable(text, f"it begins with {kind!r}", "begin with fprop, dgrad or wgrad"))
        return _from_words(text, Kind(kind), _sorted_words(text, words))


def parse_problems(text: str, kinds: Sequence[str] = EVERY_KIND) -> list[ConvProblem]:
    """The problems of a file's text, one a line; a line without a kind stands for each of `kinds`, and `#` begins a comment.

    >>> [str(problem) for problem in parse_problems("n1 c2 w8 k3 s3 f32  # short", ("fprop", "wgrad"))]
    ['fprop n1 c2 w8 k3 s3 f32', 'wgrad n1 c2 w8 k3 s3 f32']
    """
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    every = {kind.value for kind in Kind}
    return [ConvProblem.parse(whole) for line in lines if line
            for whole in ([line] if line.split()[0] in every else [f"{kind} {line}" for kind in kinds])]


def _letters(letters: str, sizes: Sequence[int]) -> list[str]:
    return [f"{letter}{size}" for letter, size in zip(letters[-len(sizes):], sizes, strict=True)]


def _unreadable(text: str, found: str, do: str = "") -> str:
    return explain_error(f"this is not the text of a convolution: {text!r}", found, do)


def _sorted_words(text: str, words: Sequence[str]) -> dict[str, str]:
    """The words by what they are: a letter for sizes and axes, "flip", "dtype", "epilogue"."""
    found: dict[str, str] = {}
    for word in words:
        if number := (_NUMBERS.fullmatch(word) or _AXES.fullmatch(word)):
            key, value = number[1], number[2]
        elif word == "flip" or _DTYPE.fullmatch(word):
            key, value = ("flip" if word == "flip" else "dtype"), word
        elif word.startswith("+"):
            key, value = "epilogue", word
        elif word.startswith(("nc", "nd", "nh", "nw")):
            key, value = "layout", word
        else:
            raise ArgumentError(_unreadable(text, f"the word {word!r}"))
        if key in found:
            raise ArgumentError(_unreadable(text, f"{word!r} after another {key!r}"))
        found[key] = value
    return found


def _from_words(text: str, kind: Kind, found: dict[str, str]) -> ConvProblem:
    ndim = sum(letter in found for letter in _IMAGE)
    least = max(ndim, 1)
    wanted = [*"nck", *_IMAGE[3 - least:], *_KERNEL[3 - least:], "dtype"]
    missing = [key for key in wanted if key not in found]
    extra = [letter for letter in _KERNEL[:3 - least] if letter in found]
    if missing or extra:
        raise ArgumentError(_unreadable(
            text, f"it does not say {', '.join(missing)}" if missing else f"{', '.join(extra)} in a {ndim}-D convolution",
            f'write for instance "{kind.value} n8 c64 h56 w56 k64 r3 s3 p1 f32": images, channels, height and width, filters, '
            "their height and width, padding, dtype"))
    number = {key: int(value) for key, value in found.items() if key in "ncdhwktrsg"}
    groups = number.get("g", 1)
    if groups < 1 or number["c"] % groups:
        raise ArgumentError(_unreadable(text, f"{number['c']} channels in {groups} groups"))
    pads = [tuple(map(int, (pair + ":" + pair).split(":")[:2])) for pair in _values(text, found, "p", "0", ndim)]
    dtype = _DTYPE.fullmatch(found["dtype"])
    if dtype is None or dtype[3] not in (None, *_LONG):
        raise ArgumentError(_unreadable(text, f"the dtype {found['dtype']!r}"))
    stride, dilation = (tuple(map(int, _values(text, found, letter, "1", ndim))) for letter in "ul")
    if 0 in stride + dilation:
        raise ArgumentError(_unreadable(text, "a stride or dilation of 0"))
    spec = ConvSpec(ndim, stride, dilation, tuple(low for low, _ in pads), tuple(high for _, high in pads), groups,
                    "flip" in found, _LONG[dtype[2]] if dtype[2] else None)
    problem = ConvProblem(
        kind, spec, (number["n"], number["c"], *(number[letter] for letter in _IMAGE[3 - ndim:])),
        (number["k"], number["c"] // groups, *(number[letter] for letter in _KERNEL[3 - ndim:])),
        _LONG[dtype[1]], _LONG[dtype[3] or dtype[1]], found.get("epilogue", ""), _layout(text, kind, ndim, found.get("layout")))
    output_shape(problem.x_shape, problem.w_shape, spec)
    return problem


def _layout(text: str, kind: Kind, ndim: int, word: str | None) -> Layout | None:
    if word is None:
        return None
    layout = parse_layout(word, *kind.ends)
    if layout is None or layout.text(*kind.ends, ndim) != word:
        raise ArgumentError(_unreadable(text, f"the layout {word!r}"))
    return layout


def _values(text: str, found: dict[str, str], letter: str, usual: str, ndim: int) -> list[str]:
    values = found.get(letter, usual).split("x")
    if ":" in found.get(letter, "") and letter != "p":
        raise ArgumentError(_unreadable(text, f"{letter}{found[letter]}", "only paddings have two sides"))
    if len(values) not in (1, ndim):
        raise ArgumentError(_unreadable(text, f"{letter}{found[letter]}", f"give one value or {ndim}"))
    return values * ndim if len(values) == 1 else values
