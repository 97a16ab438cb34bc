"""How a compiled function shows itself in a notebook: what goes in and out, what runs, and a small drawing."""
from __future__ import annotations

from base64 import b64encode
from html import escape as text

from ..graph import Variable
from ..runtime.function import Function
from .diagram import make_diagram
from .explain_html import wrapped
from .names import bytes_text, escape, plural
from .svg import to_svg

MOST_DRAWN = 60


def function_as_html(function: Function) -> str:
    """Inputs, results, updates, the program's size and, of graphs with at most 60 nodes, a drawing to unfold."""
    graph = function.graph if not function.programs else function.programs[-1].graph
    rows = [("inputs", ", ".join(map(_variable, graph.inputs)) or "none"),
            ("results", ", ".join(f"<code>{text(str(output.type))}</code>" for output in graph.outputs) or "none"),
            ("updates", ", ".join(_variable(target) for target, _ in graph.updates)), ("program", text(_program(function)))]
    table = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows if value)
    return str(wrapped(f"<h2>{text(escape(function.name))} on {text(escape(function.device))}</h2>",
                       f"<table><tbody>{table}</tbody></table>", _drawing(function)))


def _variable(variable: Variable) -> str:
    return f"{text(escape(variable.label))} <code>{text(str(variable.type))}</code>"


def _program(function: Function) -> str:
    if not function.programs:
        return "none yet: call the function once, or prepare(shapes)"
    program = function.programs[-1]
    several = f", one of {len(function.programs)} programs" if len(function.programs) > 1 else ""
    return f"{plural(len(program.steps), 'step')}, {bytes_text(program.memory.arena_bytes)} of temporary memory{several}"


def _drawing(function: Function) -> str:
    """The drawing as a picture: its style stays its own."""
    diagram = make_diagram(function)
    if len(diagram.nodes) > MOST_DRAWN:
        return f'<p class="quiet">{len(diagram.nodes)} nodes: sc.to_html(function, "graph.html") shows them</p>'
    picture = b64encode(to_svg(diagram).encode()).decode()
    return f'<details><summary>graph</summary><img alt="graph" src="data:image/svg+xml;base64,{picture}"></details>'
