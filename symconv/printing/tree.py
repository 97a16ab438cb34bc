"""debugprint: an expression as a tree of text."""
from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from ..errors import ArgumentError, explain_error
from .branches import Key, Tree
from .marks import Marks
from .subject import make_subject
from .terminal import as_ascii, encodable, plain, standard_output, style_of

ID_TYPES = ("CHAR", "int", "id", "")


def debugprint(obj: Any, file: IO[str] | str | None = None, depth: int = -1, id_type: str = "CHAR", print_type: bool = False,
               print_shape: bool = False, stop_on_name: bool = False, print_memory: bool = False, ascii: bool = False,
               done: dict[Key, int] | None = None, print_scope: bool = False) -> Any:
    r"""Print an expression as a tree: a line for each node, its inputs indented below it.

    Every node and leaf is printed once, with an id; where it is met again one line with its id and `···` stands for it.  A
    branch deeper than 20 levels goes on below, at the left margin.

    Of a compiled function the last program is printed (before there is one: the graph as rewritten for any shape), and every line
    says dtype[shape]; of an image how it lies in memory (`nchw`, `nchw8c` in blocks of 8 channels, `nhwc`; all else is row-
    major); the step that computes it and with which implementation, or "view of i0": no step, only other strides; the input whose
    memory it takes ("in place of i0") and the shared variable that it is stored to ("→ W (in place)"); and, where calls were
    profiled, the time of the step for each call, GFLOP/s, and its share of all steps. In fused operations i0, i1, … are the
    inputs in the order in which they stand below.

    A terminal gets colours, unless the environment variable `NO_COLOR` is set; `FORCE_COLOR` brings them to standard output that
    is no terminal; files and texts get none.

    Args:
        obj: a variable, an Apply, a list, tuple or dict of these, a FunctionGraph, a compiled function or a Program.
        file: None for standard output, "str" to get the text, or a file object, which is returned.
        depth: how many levels to print below the results; -1 for all.
        id_type: "CHAR" for A, B, …; "int" for 0, 1, …; "id" for Python's `id` of the node or leaf; "" for none.
        print_type: add dtype[shape] to every line (always there for a program).
        print_shape: add the shape to every line.
        stop_on_name: do not print what is below a variable with a name (other than those asked for).
        print_memory: add the bytes of every result and, for a program, where they lie: at which byte of the arena, or in which
            input, shared variable, output.
        ascii: use ASCII only.  A stream whose encoding has not the characters of the tree gets ASCII all the same.
        done: a dict that is filled with the nodes printed and their numbers; given to the next call, what stands in it keeps its
            id and is not printed in full again.
        print_scope: add the name scopes (`sc.name_scope`) in which a line was made.

    Raises:
        GraphTypeError: `obj` is something else.
        ArgumentError: `depth`, `id_type` or `file` is none of the above.

    Theano: `theano.printing.debugprint` (there `id_type` is called `ids`); PyTensor: `pytensor.printing.debugprint`.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> sc.debugprint(T.exp(x) + x)
    add [id A]
    ├─ exp [id B]
    │  └─ x [id C]
    └─ x [id C] ···
    """
    _check_options(depth, id_type, file)
    stream = standard_output() if file is None else file
    style = plain if isinstance(stream, str) else style_of(stream, file is not None)
    subject = make_subject(obj)
    marks = Marks(subject, style, print_type, print_shape, print_memory, print_scope)
    tree = Tree(subject, marks, style, depth, id_type, stop_on_name)
    if done is not None:
        tree.numbers = done
        tree.printed = set(done)
    lines = _in_ascii(tree.lines()) if ascii else tree.lines()
    if isinstance(stream, str):
        return "\n".join(lines)
    for line in lines:
        stream.write(encodable(line, getattr(stream, "encoding", None)) + "\n")
    return file


def _in_ascii(lines: Iterator[str]) -> Iterator[str]:
    return (as_ascii(line) for line in lines)


def _check_options(depth: Any, id_type: Any, file: Any) -> None:
    if isinstance(depth, bool) or not hasattr(depth, "__index__"):
        raise ArgumentError(explain_error("depth is a whole number of levels, -1 for all", repr(depth)))
    if id_type not in ID_TYPES:
        raise ArgumentError(explain_error(f"id_type is one of {', '.join(map(repr, ID_TYPES))}", repr(id_type)))
    if file is not None and file != "str" and not hasattr(file, "write"):
        raise ArgumentError(explain_error('file is None, "str" or an open file', repr(file),
                                          "open the file first: file=open(path, \"w\")"))
