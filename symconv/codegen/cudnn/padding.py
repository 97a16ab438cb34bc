"""A convolution in the forms that cuDNN may take it in: two spatial axes at least, padding as it is, symmetric, or put into memory.

Padding that differs on the two sides of an axis (lo, hi) has three forms, tried in this order:

    as is      cuDNN's own pre- and post-padding
    crop       symmetric padding P, the smallest with P >= lo, hi and P - lo a multiple of the stride u: the response y is the part
               of the larger response that begins at (P - lo) / u.  FPROP crops its result; DGRAD and WGRAD put y into zeros
    explicit   the image with its padding in memory, and no padding: FPROP and WGRAD copy it into zeros, DGRAD crops its result

A convolution of rank 1 is one of rank 2 with a first spatial axis of one element, in the same memory.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from ...ops.conv_problem import ConvProblem
from ...ops.spec import Role

Margins = tuple[tuple[int, int], ...]
AS_IS, CROP, EXPLICIT = "as is", "symmetric plus crop", "explicit pad"


@dataclass(frozen=True, slots=True)
class PaddingForm:
    """One form: the problem that cuDNN is asked, and how much larger its image and response are than the user's.

    `margins` are, for each role that is larger ("x" or "y"), the elements before and after along each spatial axis: those of a
    tensor that is read are zeros, those of the result are cut off.
    """

    name: str
    problem: ConvProblem
    margins: tuple[tuple[Role, Margins], ...] = ()

    def margins_of(self, role: Role) -> Margins:
        """The margins of a role; zeros where there are none."""
        return dict(self.margins).get(role, ((0, 0),) * self.problem.spec.ndim)


def two_dimensional(problem: ConvProblem) -> ConvProblem:
    """The same with a first spatial axis of one element where it has rank 1; as it is otherwise.

    >>> str(two_dimensional(ConvProblem.parse("fprop n2 c3 w9 k4 s3 u2 p0:1 f32")))
    'fprop n2 c3 h1 w9 k4 r1 s3 u1x2 p0x0:1 f32'
    """
    spec = problem.spec
    if spec.ndim != 1:
        return problem
    wide = replace(spec, ndim=2, stride=(1, *spec.stride), dilation=(1, *spec.dilation), pad_lo=(0, *spec.pad_lo),
                   pad_hi=(0, *spec.pad_hi), pad_rule=())
    return replace(problem, spec=wide, x_shape=_with_unit(problem.x_shape), w_shape=_with_unit(problem.w_shape))


def padding_forms(problem: ConvProblem) -> tuple[PaddingForm, ...]:
    """The forms to try, best first: only the first where the padding is the same on both sides.

    >>> lopsided = ConvProblem.parse("fprop n1 c3 h224 w224 k32 r3 s3 u2 p0:1 f32")
    >>> [(form.name, str(form.problem)) for form in padding_forms(lopsided)][1]
    ('symmetric plus crop', 'fprop n1 c3 h224 w224 k32 r3 s3 u2 p2 f32')
    """
    wide = two_dimensional(problem)
    if wide.spec.pad_lo == wide.spec.pad_hi:
        return (PaddingForm(AS_IS, wide),)
    return PaddingForm(AS_IS, wide), _cropped(wide), _explicit(wide)


def _cropped(problem: ConvProblem) -> PaddingForm:
    spec = problem.spec
    pads = []
    for low, high, stride in zip(spec.pad_lo, spec.pad_hi, spec.stride, strict=True):
        most = max(low, high)
        pads.append(most + (low - most) % stride)
    larger = replace(problem, spec=replace(spec, pad_lo=tuple(pads), pad_hi=tuple(pads)))
    margins = []
    for axis, (pad, low, stride) in enumerate(zip(pads, spec.pad_lo, spec.stride, strict=True)):
        before = (pad - low) // stride
        margins.append((before, larger.y_shape[2 + axis] - before - problem.y_shape[2 + axis]))
    return PaddingForm(CROP, larger, (("y", tuple(margins)),))


def _explicit(problem: ConvProblem) -> PaddingForm:
    spec = problem.spec
    margins = tuple(zip(spec.pad_lo, spec.pad_hi, strict=True))
    sizes = (size + low + high for size, (low, high) in zip(problem.x_shape[2:], margins, strict=True))
    none = (0,) * spec.ndim
    padded = replace(problem, spec=replace(spec, pad_lo=none, pad_hi=none), x_shape=(*problem.x_shape[:2], *sizes))
    return PaddingForm(EXPLICIT, padded, (("x", margins),))


def _with_unit(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:2], 1, *shape[2:])
