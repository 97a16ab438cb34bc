"""draw: a graph into a picture file."""
from __future__ import annotations

import shutil
import subprocess
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, BackendError, explain_error
from ..runtime.file_places import file_place, whole_file, write_whole_text
from .diagram import make_diagram
from .dot import diagram_to_dot
from .svg import to_svg

FORMATS = (".svg", ".png", ".pdf")
_SECONDS = 120


def draw(obj: Any, path: str | PathLike[str], engine: str | None = None) -> Path:
    """Draw a graph into a file: `.svg`, or `.png` and `.pdf` where Graphviz's program `dot` is installed.

    Args:
        obj: what `debugprint` takes.
        path: the file; its ending says the format.
        engine: "graphviz" for a layout by `dot`, "builtin" for the own layout (SVG only); None takes `dot` where it is
            installed.

    Returns:
        The path.

    Raises:
        ArgumentError: another ending or engine; a path that is a folder, or lies in none.
        BackendError: `dot` is needed and not installed, or failed.

    >>> import symconv as sc, symconv.tensor as T, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sc.draw(T.exp(T.scalar("x")), os.path.join(folder, "graph.svg")).name
    'graph.svg'
    """
    target = file_place(path)
    ending = target.suffix.lower()
    if ending not in FORMATS:
        raise ArgumentError(explain_error("a graph is drawn into an .svg, .png or .pdf file", repr(str(path))))
    if engine not in (None, "graphviz", "builtin"):
        raise ArgumentError(explain_error('engine is "graphviz", "builtin" or None', repr(engine)))
    program = None if engine == "builtin" else shutil.which("dot")
    if program is None and (ending != ".svg" or engine == "graphviz"):
        found = 'engine="builtin", which draws .svg only' if engine == "builtin" else "it is not on the PATH"
        raise BackendError(explain_error(f"this drawing ({ending}) needs Graphviz's program dot", found,
                                         "install Graphviz (Debian: apt install graphviz), or draw an .svg file"))
    diagram = make_diagram(obj)
    if program is None:
        write_whole_text(target, to_svg(diagram))
    else:
        drawing = _run_dot(program, diagram_to_dot(diagram), ending[1:])
        with whole_file(target) as file:
            file.write(drawing)
    return target


def _run_dot(program: str, text: str, form: str) -> bytes:
    """The drawing as dot makes it, in one of its formats."""
    try:
        done = subprocess.run([program, f"-T{form}"], input=text.encode("utf-8"), capture_output=True,
                              timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendError(explain_error("Graphviz's program dot could not draw the graph", str(error),
                                         'draw an .svg file with engine="builtin"')) from None
    if done.returncode:
        raise BackendError(explain_error("Graphviz's program dot could not draw the graph",
                                         done.stderr.decode("utf-8", "replace").strip()[:500] or f"status {done.returncode}",
                                         'draw an .svg file with engine="builtin"'))
    return done.stdout
