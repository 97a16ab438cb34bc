"""Errors that a step meets when a function runs, in the user's words: node, inputs with dtypes, shapes and strides, the user's
lines, and with `config.exception_verbosity = "high"` the expression around the node."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .. import dtypes
from ..codegen.cache import current_cache
from ..codegen.kernel import Kernel
from ..config import config
from ..errors import IndexRangeError, InternalError, SymconvError, UserError, explain_error
from ..graph import Apply, TensorType
from .step import Place, Step

MOST_LINES = 40
_MOST_LINES_HIGH = 400
_DEPTH = 6  # levels of the expression that are shown
_HIGH = 'config.exception_verbosity = "high" shows the expression around it'


def step_error(kind: type[SymconvError], wrong: str, step: Step, do: str = "") -> SymconvError:
    """The error of a step: what was wrong and where."""
    lines, places = "\n".join(step_lines(step)), () if step.node is None else step.node.source
    if "\n  found: " in wrong:  # it is explained already, but not where
        text = explain_error(f"{wrong}\n  {lines}", do=do, where=places)
    else:
        text = explain_error(wrong, lines, do, places)
    return kind(limited(text + _expression(step.node)))


def binding_error(error: UserError, node: Apply, types: Sequence[TensorType]) -> UserError:
    """An error found when sizes became known, with the node, its inputs' types and the user's lines."""
    text = str(error)
    if "\n  where: " in text:
        return error
    names = ", ".join(f"{_one_line(variable.label)}: {type}" for variable, type in zip(node.inputs, types, strict=True))
    return type(error)(limited(explain_error(f"{text}\n  in {node.op} of {names}", where=node.source) + _expression(node)))


def unknown_code_error(step: Step, position: int, code: int) -> InternalError:
    """A kernel ended with a code that it has no text for: our own bug; the message says where its source is."""
    source = _kept_source(step)
    return InternalError(limited(explain_error(f"step {position} ({step.name}) ended with the unknown code {code}",
                                               "\n".join([*step_lines(step), *([f"    source: {source}"] if source else [])]),
                                               "report this with the source", () if step.node is None else step.node.source)))


def step_lines(step: Step) -> Iterator[str]:
    """A step's operation, then a line for each of its inputs."""
    node = step.node
    yield f"in {'a copy' if node is None else node.op} of {', '.join(_type(place) for place in step.reads)}"
    names = [variable.label for variable in node.inputs] if node is not None and len(node.inputs) == len(step.reads) else []
    for number, place in enumerate(step.reads):
        strides = tuple(stride * dtypes.itemsize(place.operand.dtype) for stride in place.operand.strides)
        name = f" {_one_line(names[number])}:" if names else ":"
        yield f"    i{number}{name} {place.operand.dtype}, shape {place.operand.shape}, strides {strides} bytes"


def _type(place: Place) -> str:
    return f"{place.operand.dtype}{list(place.operand.shape)}"


def _one_line(text: str) -> str:
    short = text if len(text) <= 60 else text[:59] + "…"
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in short)


def _expression(node: Apply | None) -> str:
    """The expression that a node computes, with `config.exception_verbosity = "high"`; else how to see it."""
    if node is None:
        return ""
    if config.exception_verbosity != "high":
        return f"\n  more: {_HIGH}"
    from ..printing.tree import debugprint

    tree = debugprint(node.outputs[0], file="str", depth=_DEPTH, print_type=True)
    return "\n  expression:\n" + "\n".join(f"    {line}" for line in tree.split("\n"))


def limited(text: str) -> str:
    """The text with as many lines as the setting allows: the first and the last are kept."""
    most = _MOST_LINES_HIGH if config.exception_verbosity == "high" else MOST_LINES
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    tail = most // 4
    left_out = len(lines) - most + 1
    return "\n".join([*lines[:most - tail - 1], f"    … {left_out} lines left out ({_HIGH}) …", *lines[-tail:]])


def _kept_source(step: Step) -> str:
    """The path of the kernel's source, written to the cache folder now; empty where it has none."""
    if not isinstance(step.kernel, Kernel):
        return ""
    try:
        return str(current_cache().keep("failed", f"{step.kernel.name}.c", step.kernel.source))
    except OSError as error:
        return f"it could not be kept: {error}"


@contextmanager
def telling(step: Step) -> Iterator[None]:
    """Errors that a reference raises inside are told with the step: the user's and index errors in their text, others in a note."""
    try:
        yield
    except UserError as error:
        raise step_error(type(error), str(error), step) from None
    except SymconvError:
        raise
    except IndexError as error:
        raise step_error(IndexRangeError, str(error), step) from None
    except Exception as error:
        where = [f"  where: {place}" for place in (() if step.node is None else step.node.source)]
        error.add_note(limited("\n".join([*step_lines(step), *where]) + _expression(step.node)))
        raise
