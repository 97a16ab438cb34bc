"""Every exception that symconv raises, in three families.

`UserError`: what the user wrote cannot be done; the message says what was wrong, what was found and what to do, and
names the user's own file and line where there is one.  `InternalError`: a bug of symconv.  `BackendError`: nothing on
this machine can run the expression, or a build failed.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class SymconvError(Exception):
    """Root of all exceptions of symconv."""


class UserError(SymconvError):
    """Something that the user wrote or passed cannot be done."""


class GraphTypeError(UserError, TypeError):
    """A variable, dtype or rank that an operation does not take."""


class ShapeError(UserError, ValueError):
    """Sizes that do not fit together."""


class ArgumentError(UserError, ValueError):
    """An argument with a value that means nothing here."""


class GradientError(UserError, ValueError):
    """A gradient that does not exist or was asked for wrongly."""


class DisconnectedInputError(GradientError):
    """The cost does not depend on a variable that its gradient was asked for."""


class FunctionError(UserError, ValueError):
    """`compile` or a compiled function was called with arguments that do not fit."""


class MissingInputError(FunctionError):
    """An expression needs a variable that is neither an input nor given."""


class UnusedInputError(FunctionError):
    """An input that no output and no update uses."""


class InputTypeError(UserError, TypeError):
    """A compiled function was called with a value that its input does not take."""


class IndexRangeError(UserError, IndexError):
    """An index outside the axis that it indexes, found at run time."""


class AssertionFailedError(UserError, AssertionError):
    """A condition of the user's `Assert` did not hold when the function ran."""


class NumericalError(UserError, ArithmeticError):
    """`mode="nan_guard"`: a NaN, an infinity or a huge value appeared."""


class InternalError(SymconvError):
    """A bug of symconv: please report it with the printed graph."""


class WrongRewriteError(InternalError):
    """`mode="debug"`: a rewrite changed the value of an expression."""


class WrongKernelError(InternalError):
    """`mode="debug"`: a kernel differs from its reference, or wrote where it may not."""


class BackendError(SymconvError):
    """No implementation can run this here, or building one failed."""


def explain_error(wrong: str, found: str = "", do: str = "", where: Iterable[Any] = ()) -> str:
    """Compose an error text: what was wrong, what was found, what to do, and the user's lines.

    >>> print(explain_error("the ranks differ", "4 and 2", "reshape one of them"))
    the ranks differ
      found: 4 and 2
      do: reshape one of them
    """
    lines = [wrong]
    if found:
        lines.append(f"  found: {found}")
    if do:
        lines.append(f"  do: {do}")
    lines.extend(f"  where: {place}" for place in where)
    return "\n".join(lines)
