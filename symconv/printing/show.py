"""`python -m symconv show FILE.py:name`: what a user's file makes, as text, drawing or page."""
from __future__ import annotations

import inspect
import sys
from functools import reduce
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, explain_error
from ..graph import Apply, FunctionGraph, Variable
from ..runtime.file_places import file_place
from ..runtime.function import Function
from ..runtime.planned import PlannedProgram

_GRAPHS = (Variable, Apply, FunctionGraph, Function, PlannedProgram)


def load_graph(address: str) -> Any:
    """The variable, function or graph that `FILE.py:name` means; a callable that needs no arguments is called for it.

    The file is run as a module of its own name, with its folder first on the path; dots in the name reach into what is there.

    Raises:
        ArgumentError: no such file or name, or something else stands there.
    """
    filename, _, name = address.rpartition(":")
    path = Path(filename)
    if not filename or not name or not path.is_file():
        raise ArgumentError(explain_error("show takes a Python file and a name in it", repr(address),
                                          "write FILE.py:name, where the name is a variable, a compiled function, or a function of "
                                          "yours that gives one"))
    module = _run_file(path)
    try:
        found = reduce(getattr, name.split("."), module)
    except AttributeError:
        names = sorted(each for each, value in vars(module).items() if not each.startswith("_") and _is_graph(value))
        raise ArgumentError(explain_error(f"{path.name} has no {name!r}", f"it has {', '.join(names) or 'no graphs'}")) from None
    if not _is_graph(found) and callable(found):
        found = _called(found, name)
    if not _is_graph(found):
        raise ArgumentError(explain_error("show takes variables, lists of them, graphs and compiled functions",
                                          f"{name} is {type(found).__name__} {found!r:.80}"))
    return found


def _run_file(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ArgumentError(explain_error("this is no Python file", str(path)))
    module = module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def _called(found: Any, name: str) -> Any:
    needed = [each.name for each in inspect.signature(found).parameters.values()
              if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if needed:
        raise ArgumentError(explain_error(f"{name} needs arguments", ", ".join(needed),
                                          "show a function that needs none and gives a variable or a compiled function"))
    return found()


def _is_graph(value: Any) -> bool:
    """What `debugprint` takes: a graph, or one list, tuple or dict of graphs."""
    several = list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(isinstance(each, _GRAPHS) for each in several)


def show(address: str, html: Path | None = None, svg: Path | None = None, as_text: bool = False) -> list[str]:
    """Write what was asked for; the lines to print: the paths written, and the tree where it was asked for or nothing else was."""
    from .draw import draw
    from .html_export import to_html
    from .tree import debugprint

    for path in (html, svg):
        if path is not None:
            file_place(path)  # both, before the first is written
    graph = load_graph(address)
    lines = [str(to_html(graph, html))] if html is not None else []
    if svg is not None:
        if svg.suffix.lower() != ".svg":
            raise ArgumentError(explain_error("--svg writes a file whose name ends in .svg", str(svg)))
        lines.append(str(draw(graph, svg)))
    return [*lines, debugprint(graph, file="str")] if as_text or not lines else lines
