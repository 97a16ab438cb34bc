"""A drawing of a graph as SVG, without any other program."""
from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape as xml

from .colours import categories, colours
from .diagram import Diagram, DiagramNode
from .dot import implementation_text, output_marks
from .layout import Layout, Stretch, make_layout
from .names import shortened

_SIZES = {"head": 13.0, "name": 12.0, "detail": 11.0, "type": 11.0, "how": 10.5, "mark": 10.5}
_LINE, _PAD_X, _PAD_Y, _MARGIN = 1.32, 11.0, 7.0, 28.0
_WRAP = 34
_PALE = ("shared", "constant")
_MOST_DETAIL_LINES = 4
_STYLE = """
  text { font-family: "DejaVu Sans", Verdana, "Segoe UI", Helvetica, Arial, sans-serif; fill: #0f172a; }
  .head { font-size: 13px; font-weight: 600; } .name { font-size: 12px; font-style: italic; }
  .detail { font-size: 11px; fill: #334155; } .type { font-size: 11px; fill: #475569; }
  .how { font-size: 10.5px; fill: #64748b; } .mark { font-size: 10.5px; font-weight: 600; fill: #b45309; }
  .port { font-size: 9px; fill: #64748b; }
  .title { font-size: 18px; font-weight: 600; } .legend { font-size: 12px; fill: #334155; }
  .edge { fill: none; stroke: #475569; stroke-width: 1.4; } .weak { stroke: #a8b5c6; stroke-width: 1.2; }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A node with its lines (style, text) and its size."""

    node: DiagramNode
    lines: tuple[tuple[str, str], ...]
    width: float
    height: float


def to_svg(diagram: Diagram) -> str:
    """The drawing: layers from top to bottom, a legend, and for each node a tooltip: its full text and the user's lines."""
    boxes = [_make_box(node) for node in diagram.nodes]
    numbers = {node.key: number for number, node in enumerate(diagram.nodes)}
    edges = [(numbers[edge.source], numbers[edge.target]) for edge in diagram.edges]
    weak = frozenset(number for number, box in enumerate(boxes) if box.node.kind in _PALE)
    layout = make_layout([(box.width, box.height) for box in boxes], edges, weak)
    width = max(layout.width, 520.0, text_width(diagram.title, 18.0) * 1.1)  # bold
    legend, top = _legend(diagram, width)
    height = top + layout.height + 2 * _MARGIN
    total = width + 2 * _MARGIN
    left = _MARGIN + (width - layout.width) / 2
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {total:.0f} {height:.0f}">',
        f"<title>{xml(diagram.title or 'symconv graph')}</title>", f"<style>{_STYLE}</style>", _MARKERS,
        '<rect width="100%" height="100%" fill="#ffffff"/>', *legend,
        f'<g transform="translate({left:.1f} {top + _MARGIN:.1f})">', *_edges(layout, boxes, diagram),
        *(_box(box, centre) for box, centre in zip(boxes, layout.centres, strict=True)), "</g>", "</svg>", ""])


_MARKERS = "\n".join(
    f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0.8 L7.5 4 L0 7.2 z" fill="{colour}"/></marker>'
    for name, colour in (("arrow", "#475569"), ("weak", "#a8b5c6")))


def text_width(text: str, size: float) -> float:
    """An upper estimate of the width of a text in a sans-serif font of this size."""
    return size * sum(0.36 if character in "iljtfrI.,:;|!'()[]{} /" else 1.05 if ord(character) > 0x2E80
                      else 0.75 if character.isupper() or character in "mwMW@→…%" else 0.63 for character in text)


def _make_box(node: DiagramNode) -> Box:
    lines = [("head", shortened(node.headline, 40)), *(("detail", line) for line in wrapped(node.details))]
    if node.name and node.kind == "apply":
        lines.append(("name", shortened(node.name, 40)))
    types = node.type.split(", ")
    same = len(types) > 1 and len(set(types)) == 1
    lines.append(("type", shortened(f"{len(types)} × {types[0]}" if same else node.type, 60)))
    if node.implementation:
        lines.append(("how", implementation_text(node)))
    lines += [("mark", shortened(mark, 44)) for mark in (*output_marks(node), *node.marks)]
    # bold text is wider than the estimate for a regular face
    width = max(text_width(text, _SIZES[style]) * (1.06 if style in ("head", "mark") else 1.0) for style, text in lines)
    height = sum(_SIZES[style] * _LINE for style, _ in lines)
    return Box(node, tuple(lines), width + 2 * _PAD_X, height + 2 * _PAD_Y)


def wrapped(texts: Iterable[str]) -> list[str]:
    """The texts in at most four lines of about 34 characters, broken at spaces where they have some."""
    lines = [line for text in texts
             for line in textwrap.wrap(text, _WRAP, break_on_hyphens=False, drop_whitespace=True)]
    shown = lines[:_MOST_DETAIL_LINES]
    return shown if shown == lines else [*shown[:-1], shown[-1] + " …"]


def _box(box: Box, centre: tuple[float, float]) -> str:
    node = box.node
    fill, stroke = colours(node.category)
    x, y = centre[0] - box.width / 2, centre[1] - box.height / 2
    radius = box.height / 2 if node.kind == "input" else 3 if node.kind == "constant" else 8
    dash = ' stroke-dasharray="5 3"' if node.is_view else ""
    parts = [f'<g class="node" id="{node.key}"><title>{xml(_tooltip(node))}</title>',
             f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{min(radius, 20):.1f}" '
             f'fill="{fill}" stroke="{stroke}" stroke-width="{3.2 if node.outputs else 1.4}"{dash}/>']
    if node.kind == "shared":
        parts.append(f'<rect x="{x + 3:.1f}" y="{y + 3:.1f}" width="{box.width - 6:.1f}" height="{box.height - 6:.1f}" '
                     f'rx="6" fill="none" stroke="{stroke}" stroke-width="0.7"/>')
    line_y = y + _PAD_Y
    for style, text in box.lines:
        line_y += _SIZES[style] * _LINE
        parts.append(f'<text class="{style}" x="{centre[0]:.1f}" y="{line_y - _SIZES[style] * 0.34:.1f}" '
                     f'text-anchor="middle">{xml(text)}</text>')
    return "".join([*parts, "</g>"])


def _tooltip(node: DiagramNode) -> str:
    lines = [node.text, node.name if node.kind == "apply" else "", node.type, implementation_text(node), *output_marks(node),
             *node.marks, node.source]
    return "\n".join(line for line in lines if line)


def _edges(layout: Layout, boxes: list[Box], diagram: Diagram) -> Iterable[str]:
    """The pieces; those from leaves are drawn first and paler, so that the flow of values stands out."""
    strong = [boxes[stretch.source].node.kind not in _PALE for stretch in layout.stretches]
    for wanted in (False, True):
        for stretch, is_strong in zip(layout.stretches, strong, strict=True):
            if is_strong == wanted:
                yield _stretch(stretch, is_strong)
    counts = Counter(edge.target for edge in diagram.edges)
    for stretch in layout.stretches:
        if stretch.edge is not None and counts[diagram.edges[stretch.edge].target] > 1:
            x, y = stretch.end
            yield (f'<text class="port" x="{x + 5:.1f}" y="{y - 9:.1f}">i{diagram.edges[stretch.edge].position}</text>')


def _stretch(stretch: Stretch, is_strong: bool) -> str:
    (x1, y1), (x2, y2) = stretch.start, stretch.end
    middle = (y1 + y2) / 2
    curve = f"V{y2:.1f}" if abs(x1 - x2) < 0.5 else f"C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f} {x2:.1f} {y2:.1f}"
    marker = f' marker-end="url(#{"arrow" if is_strong else "weak"})"' if stretch.edge is not None else ""
    return f'<path class="edge{"" if is_strong else " weak"}" d="M{x1:.1f} {y1:.1f} {curve}"{marker}/>'


def _legend(diagram: Diagram, width: float) -> tuple[list[str], float]:
    """Title and legend, and the height they take."""
    lines = []
    y = _MARGIN
    if diagram.title:
        lines.append(f'<text class="title" x="{_MARGIN}" y="{y + 14:.1f}">{xml(diagram.title)}</text>')
        y += 32
    x = _MARGIN
    entries = [(name, colours(name), "") for name in categories(diagram)]
    plain = ("#ffffff", "#475569")
    if any(node.outputs for node in diagram.nodes):
        entries.append(("output", plain, ' stroke-width="3.2"'))
    if any(node.is_view for node in diagram.nodes):
        entries.append(("view: needs no step", plain, ' stroke-dasharray="5 3"'))
    for name, (fill, stroke), extra in entries:
        taken = 34 + text_width(name, 12.0) + 14
        if x + taken > _MARGIN + width and x > _MARGIN:
            x, y = _MARGIN, y + 22
        lines.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="24" height="14" rx="4" fill="{fill}" stroke="{stroke}"{extra}/>'
                     f'<text class="legend" x="{x + 31:.1f}" y="{y + 11.5:.1f}">{xml(name)}</text>')
        x += taken
    return lines, y + 22
