"""Graphs as JSON, for programs in other languages and for pages."""
from __future__ import annotations

import json
from typing import Any

from .networkx_graph import to_networkx


def to_json(obj: Any, indent: int | None = None) -> str:
    """The graph as a JSON text of one object: `title`, `nodes` and `edges`.

    Nodes have an `id` and the attributes of `to_networkx`, inputs before their readers; edges have `source`, `target` and
    theirs.  The text is the same for the same graph, all ASCII (other characters are escaped), and safe inside an HTML script
    element: `<`, `>` and `&` are escaped too.

    Args:
        obj: what `debugprint` takes.
        indent: spaces for each level; None: one line.

    >>> import json, symconv as sc, symconv.tensor as T
    >>> x = T.scalar("x")
    >>> graph = json.loads(sc.to_json(x * x))
    >>> [node["label"] for node in graph["nodes"]], [edge["position"] for edge in graph["edges"]]
    (['x', 'mul'], [0, 1])
    """
    graph = to_networkx(obj)
    document = {"title": graph.graph["title"],
                "nodes": [{"id": key, **attributes} for key, attributes in graph.nodes(data=True)],
                "edges": [{"source": source, "target": target, **attributes}
                          for source, target, attributes in graph.edges(data=True)]}
    text = json.dumps(document, indent=indent)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
