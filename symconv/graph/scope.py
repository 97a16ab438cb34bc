"""Name scopes: which part of a model a node belongs to, noted beside its place in the user's code.

A scope is a path such as `block1/conv`.  It travels with the `SourceLine` of a node, so everything that keeps the user's lines
(interning, fusing, saving) keeps the scopes too; it is never part of a node's identity.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
from typing import Any

from ..errors import ArgumentError, explain_error

_current: ContextVar[str] = ContextVar("symconv_name_scope", default="")
GRADIENT = "gradient"


@contextmanager
def name_scope(name: str) -> Iterator[str]:
    r"""Note on every node and leaf that is made inside which part of the model it belongs to.

    Scopes nest: inside another scope the path grows, `block1/conv`; a `/` in the name is a level too.  Gradients of what was
    made in `block1` are in `gradient/block1`.  Scopes change nothing that is computed: they group nodes in drawings and
    pages, and tell in reports and errors where a node comes from.  Also usable as a decorator of a function.

    Args:
        name: a text of printable characters, no level of it empty.

    Yields:
        The whole path.

    Raises:
        ArgumentError: another name.

    >>> import symconv as sc, symconv.tensor as T
    >>> with sc.name_scope("block1"):
    ...     with sc.name_scope("scale") as path:
    ...         y = T.vector("x") * 2
    >>> path, y.scopes
    ('block1/scale', ('block1/scale',))
    """
    if not isinstance(name, str) or not name.isprintable() or not all(part.strip() for part in name.split("/")):
        raise ArgumentError(explain_error("a name scope is a printable text, with a / between levels that are not empty",
                                          repr(name)))
    outer = _current.get()
    token = _current.set(f"{outer}/{name}" if outer else name)
    try:
        yield _current.get()
    finally:
        _current.reset(token)


def current_scope() -> str:
    """The path of the scopes that are open now; empty outside all."""
    return _current.get()


@contextmanager
def gradient_scope(scopes: tuple[str, ...]) -> Iterator[None]:
    """The scope for the gradients of what was made in these scopes: `gradient/…` inside the present one."""
    home, outer = common_scope(scopes), current_scope()
    if outer:
        home = home.removeprefix(outer).removeprefix("/") if f"{home}/".startswith(f"{outer}/") else home
    if not home:
        yield
        return
    with name_scope(home if GRADIENT in home.split("/") else f"{GRADIENT}/{home}"):
        yield


def scopes_of(places: Iterable[Any]) -> tuple[str, ...]:
    """The scopes of `SourceLine`s, each once, in order; nothing for those outside all scopes."""
    return tuple(dict.fromkeys(place.scope for place in places if place.scope))


def common_scope(scopes: Iterable[str]) -> str:
    """The innermost scope that holds all of these.

    >>> common_scope(["block1/conv", "block1/bias"]), common_scope(["a/b", "ab"]), common_scope([])
    ('block1', '', '')
    """
    levels = [scope.split("/") for scope in scopes]
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*levels, strict=False))
    return "/".join(level[0] for level in shared)
