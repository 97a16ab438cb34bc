"""The colours of the drawings, by family of operation and kind of leaf."""
from __future__ import annotations

from .diagram import Diagram

_COLOURS = {
    "convolution": ("#dbeafe", "#2563eb"),
    "pooling": ("#cffafe", "#0e7490"),
    "matrix product": ("#e0e7ff", "#4338ca"),
    "elementwise": ("#dcfce7", "#15803d"),
    "reduction": ("#fef3c7", "#b45309"),
    "softmax": ("#fae8ff", "#a21caf"),
    "indexing": ("#ffe4e6", "#be123c"),
    "random": ("#ede9fe", "#6d28d9"),
    "shape and other": ("#f1f5f9", "#64748b"),
    "input": ("#ffffff", "#0f172a"),
    "shared": ("#ffedd5", "#c2410c"),
    "constant": ("#f8fafc", "#94a3b8"),
}
_DARK = {
    "convolution": ("#172f56", "#60a5fa"),
    "pooling": ("#0f3a44", "#22d3ee"),
    "matrix product": ("#272a5c", "#818cf8"),
    "elementwise": ("#12391f", "#4ade80"),
    "reduction": ("#42300f", "#fbbf24"),
    "softmax": ("#421a47", "#e879f9"),
    "indexing": ("#471a27", "#fb7185"),
    "random": ("#31205c", "#a78bfa"),
    "shape and other": ("#27303d", "#94a3b8"),
    "input": ("#0b1220", "#e2e8f0"),
    "shared": ("#43240f", "#fb923c"),
    "constant": ("#1a2330", "#64748b"),
}


def colours(category: str) -> tuple[str, str]:
    """Fill and line colour of a category."""
    return _COLOURS[category]


def palette() -> dict[str, dict[str, tuple[str, str]]]:
    """Fill and line colour of every category, on light and on dark ground."""
    return {"light": dict(_COLOURS), "dark": dict(_DARK)}


def categories(diagram: Diagram) -> list[str]:
    """The categories that a diagram has, in the order of the table."""
    found = {node.category for node in diagram.nodes}
    return [name for name in _COLOURS if name in found]


def legend_text(diagram: Diagram) -> str:
    """What the borders mean, for drawings without a legend of their own."""
    notes = ["thick border: output"] if any(node.outputs for node in diagram.nodes) else []
    notes += ["dashed border: view, needs no step"] if any(node.is_view for node in diagram.nodes) else []
    return "; ".join(notes)
