"""to_html: a graph and its compilation as a page."""
from __future__ import annotations

from os import PathLike
from typing import Any

from ..runtime.file_places import file_place, write_whole_text
from .html_document import make_document
from .html_page import render_page


def to_html(obj: Any, path: str | PathLike[str] | None = None) -> Any:
    """A page that shows a graph: one file, which needs no network and works in every present browser.

    It can be moved, zoomed and searched (by name, operation, type and file:line); name scopes (`sc.name_scope`) open and close.
    Of a compiled function a slider shows the phases of compilation, from the expression as written to the program, with what each
    phase made and replaced, and two more views show the steps (with times after calls with `profile=True`) and the arena over time.
    A selected node tells its type, layout, lines of yours, rewrites, candidates with their reasons, and generated source.
    Everything can be reached by keys; colours follow the system's light or dark.

    The phases are run again for the page; the function itself is not changed.

    Args:
        obj: what `debugprint` takes.
        path: the file to write; None: the page is returned as text.

    Returns:
        The path, or the text where there is none.

    Raises:
        GraphTypeError: `obj` is something else.
        ArgumentError: the path is a folder, or lies in none.

    >>> import symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> page = sc.to_html(sc.compile([x], T.exp(x) + 1))
    >>> page.startswith("<!doctype html>"), "http://" in page or "https://" in page
    (True, False)
    """
    target = None if path is None else file_place(path)
    document = make_document(obj)
    page = render_page(document["title"], document)
    if target is None:
        return page
    write_whole_text(target, page)
    return target
