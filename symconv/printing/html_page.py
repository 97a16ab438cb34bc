"""A page from its template, style, scripts and data: one file that needs nothing else, in which every name is only text."""
from __future__ import annotations

import json
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib import resources
from string import Template
from typing import Any

SCRIPTS = ("dom", "model", "layers", "layout", "boxes", "scene", "camera", "paint", "graph_view", "graph_input", "highlight",
           "panel", "search", "steps", "memory", "main")


def render_page(title: str, document: Any) -> str:
    """The page that shows a document (`html_document.make_document`)."""
    return Template(_text("page.html")).substitute(
        title=escape(title), style=_text("page.css"), script=_script(), data=script_data(document),
        style_hash=_hash(_text("page.css")), script_hash=_hash(_script()))


def script_data(document: Any) -> str:
    r"""Data as JSON that may stand inside a script element: ASCII only, and nothing in it can end the element or open a comment.

    >>> script_data({"name": "</script><!--\u2028"})
    '{"name":"\\u003c/script\\u003e\\u003c!--\\u2028"}'
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@lru_cache(maxsize=1)
def _script() -> str:
    """All scripts in one function, so that they leave nothing behind in the page."""
    parts = [f"// {name}.js\n{_text(f'{name}.js')}" for name in SCRIPTS]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


@lru_cache(maxsize=32)
def _text(name: str) -> str:
    return (resources.files("symconv.printing") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the page's Content-Security-Policy knows a script or style by."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
