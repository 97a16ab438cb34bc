"""cuDNN's attribute structures of the three convolution operations, as light Python objects.

Names and meanings are those of the cuDNN frontend (`Conv_fprop_attributes` and so on); every setter returns the structure.
"""
from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from ...errors import ArgumentError, explain_error


@dataclass(eq=True)
class ConvAttributes:
    """What the three structures share; a field that is None was not set and takes its default.

    `padding` is symmetric; `pre_padding` and `post_padding` are what goes before and after each axis.
    """

    padding: Any = None
    pre_padding: Any = None
    post_padding: Any = None
    stride: Any = None
    dilation: Any = None
    convolution_mode: Any = None
    compute_data_type: Any = None
    name: str | None = None
    operation: ClassVar[str] = ""

    def set_padding(self, padding: Any) -> Self:
        """The same zeros before and after each spatial axis."""
        self.padding = padding
        return self

    def set_pre_padding(self, pre_padding: Any) -> Self:
        """Zeros before each spatial axis."""
        self.pre_padding = pre_padding
        return self

    def set_post_padding(self, post_padding: Any) -> Self:
        """Zeros after each spatial axis."""
        self.post_padding = post_padding
        return self

    def set_stride(self, stride: Any) -> Self:
        """Stride along each spatial axis."""
        self.stride = stride
        return self

    def set_dilation(self, dilation: Any) -> Self:
        """Dilation along each spatial axis; 1 is no gaps."""
        self.dilation = dilation
        return self

    def set_convolution_mode(self, convolution_mode: Any) -> Self:
        """"CROSS_CORRELATION" or "CONVOLUTION"."""
        self.convolution_mode = convolution_mode
        return self

    def set_compute_data_type(self, compute_data_type: Any) -> Self:
        """The dtype that products are summed in: "FLOAT" or "DOUBLE"."""
        self.compute_data_type = compute_data_type
        return self

    def set_name(self, name: str) -> Self:
        """The name of the operation's result."""
        self.name = name
        return self

    def merged(self, given: dict[str, Any]) -> dict[str, Any]:
        """The fields and the arguments given beside the structure; an ArgumentError where both say something."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        twice = [name for name, value in given.items() if value is not None and values[name] is not None]
        if twice:
            raise ArgumentError(explain_error(f"{twice[0]} is given twice",
                                              f"{given[twice[0]]!r} and, in the attributes, {values[twice[0]]!r}"))
        return {name: value if given.get(name) is None else given[name] for name, value in values.items()}


class ConvFpropAttributes(ConvAttributes):
    """Attributes of `conv_fprop`.

    >>> ConvFpropAttributes().set_padding([1, 1]).set_stride([2, 2]).set_name("stem").stride
    [2, 2]
    """

    operation = "conv_fprop"


class ConvDgradAttributes(ConvAttributes):
    """Attributes of `conv_dgrad`."""

    operation = "conv_dgrad"


class ConvWgradAttributes(ConvAttributes):
    """Attributes of `conv_wgrad`."""

    operation = "conv_wgrad"


Conv_fprop_attributes = ConvFpropAttributes
Conv_dgrad_attributes = ConvDgradAttributes
Conv_wgrad_attributes = ConvWgradAttributes
