"""Where the boxes and edges of a drawing go: layers from top to bottom, boxes near what they are linked to."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .layering import Layers, make_layers, neighbours

BOX_GAP, SLOT_GAP, LAYER_GAP = 22.0, 14.0, 40.0
_SWEEPS, _MANY_ITEMS = 24, 5_000
_WEAK = 0.02
_WEIGHTS = (1.0, 2.0, 8.0)
"""How strongly a link pulls, by how many of its ends are slots: long edges become straight."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of an edge between two layers; `edge` is the number of the edge that ends with it, None where
    it goes on."""

    start: tuple[float, float]
    end: tuple[float, float]
    source: int
    edge: int | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, pieces of edges, and the size of the whole."""

    centres: list[tuple[float, float]]
    stretches: list[Stretch]
    width: float
    height: float


def make_layout(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]],
                weak: frozenset[int] = frozenset()) -> Layout:
    """Lay out boxes of these (width, height); edges go from a box to one with a higher number.

    The boxes in `weak` are put beside their readers and hardly pull at them.
    """
    layers = make_layers(len(sizes), edges)
    n_items = sum(map(len, layers.order))
    widths = [size[0] for size in sizes] + [0.0] * (n_items - len(sizes))
    centres_x = _horizontal(layers, widths, weak)
    tops, bottoms = _vertical(layers, sizes)
    left = min((x - width / 2 for x, width in zip(centres_x, widths, strict=True)), default=0.0)
    xs = [x - left for x in centres_x]
    layer_of = {item: number for number, layer in enumerate(layers.order) for item in layer}
    centres = [(xs[box], (tops[layer_of[box]] + bottoms[layer_of[box]]) / 2) for box in range(len(sizes))]
    stretches = _stretches(layers, sizes, xs, centres, (tops, bottoms), layer_of)
    right = max((x + width / 2 for x, width in zip(xs, widths, strict=True)), default=0.0)
    return Layout(centres, stretches, right, bottoms[-1] if bottoms else 0.0)


def _vertical(layers: Layers, sizes: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Top and bottom of every layer; the gap grows with the links that cross it sideways."""
    tops, bottoms = [], []
    top = 0.0
    for layer in layers.order:
        height = max((sizes[item][1] for item in layer if item < layers.n_boxes), default=0.0)
        tops.append(top)
        bottoms.append(top + height)
        top += height + LAYER_GAP + min(len(layer) * 0.6, 20.0)
    return tops, bottoms


def _horizontal(layers: Layers, widths: list[float], weak: frozenset[int]) -> list[float]:
    """Centres from left to right: every layer in turn as near as it can be to the weighted mean of its neighbours."""
    above, below = neighbours(len(widths), layers.links)
    xs = [0.0] * len(widths)
    for layer in layers.order:
        x = 0.0
        for item in layer:
            xs[item] = x + widths[item] / 2
            x += widths[item] + BOX_GAP
    slots = [item >= layers.n_boxes for item in range(len(widths))]
    sweeps = _SWEEPS if len(widths) < _MANY_ITEMS else _SWEEPS // 4
    for sweep in range(sweeps):
        downwards = sweep % 2 == 0
        both = sweep >= sweeps - 4
        for layer in layers.order if downwards else reversed(layers.order):
            wanted, weights = [], []
            for item in layer:
                near = above[item] + below[item] if both else above[item] if downwards else below[item]
                pulls = [_WEAK if each in weak else _WEIGHTS[slots[item] + slots[each]] for each in near]
                total = sum(pulls)
                pulled = sum(pull * xs[each] for pull, each in zip(pulls, near, strict=True))
                wanted.append(pulled / total if near else xs[item])
                weights.append(_WEAK if item in weak else total or _WEAK)
            for item, x in zip(layer, spread(wanted, weights, _distances(layer, widths, slots)), strict=True):
                xs[item] = x
    return xs


def _distances(layer: list[int], widths: list[float], slots: list[bool]) -> list[float]:
    """The least distance between the centres of each two neighbours."""
    return [(widths[left] + widths[right]) / 2 + (SLOT_GAP if slots[left] or slots[right] else BOX_GAP)
            for left, right in pairwise(layer)]


def spread(wanted: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Positions nearest to the wanted ones (weighted squares) that keep their order and the least distances.

    Pool adjacent violators (Barlow, Bartholomew, Bremner and Brunk 1972), after the distances are taken off.

    >>> spread([0.0, 0.0], [1.0, 1.0], [10.0])
    [-5.0, 5.0]
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[list[float]] = []
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        blocks.append([want - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, weight_, count = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + value * weight_) / (last[1] + weight_)
            last[1] += weight_
            last[2] += count
    values = [block[0] for block in blocks for _ in range(int(block[2]))]
    return [value + offset for value, offset in zip(values, offsets, strict=False)]


def _stretches(layers: Layers, sizes: Sequence[tuple[float, float]], xs: list[float], centres: list[tuple[float, float]],
               bounds: tuple[list[float], list[float]], layer_of: dict[int, int]) -> list[Stretch]:
    """Every link as a piece from the bottom of the one to the top of the other, and straight through the layers passed."""
    tops, bottoms = bounds
    owners = list(range(len(xs)))
    for upper, lower in layers.links:
        if lower >= layers.n_boxes:
            owners[lower] = owners[upper]
    ports = _ports(layers, sizes, xs)
    stretches = []
    for number, (upper, lower) in enumerate(layers.links):
        is_box = upper < layers.n_boxes
        start_y = centres[upper][1] + sizes[upper][1] / 2 if is_box else bottoms[layer_of[upper]]
        if lower < layers.n_boxes:
            end = (xs[lower] + ports[number], centres[lower][1] - sizes[lower][1] / 2)
            stretches.append(Stretch((xs[upper], start_y), end, owners[upper], layers.arrivals[number]))
        else:
            top, bottom = tops[layer_of[lower]], bottoms[layer_of[lower]]
            stretches.append(Stretch((xs[upper], start_y), (xs[lower], top), owners[upper], None))
            if bottom > top:
                stretches.append(Stretch((xs[lower], top), (xs[lower], bottom), owners[upper], None))
    return stretches


def _ports(layers: Layers, sizes: Sequence[tuple[float, float]], xs: list[float]) -> dict[int, float]:
    """For links into boxes, how far right of the middle they arrive: in the order they come from, side by side."""
    arriving: dict[int, list[int]] = {}
    for number, (_, lower) in enumerate(layers.links):
        if lower < layers.n_boxes:
            arriving.setdefault(lower, []).append(number)
    ports: dict[int, float] = {}
    for box, numbers in arriving.items():
        numbers.sort(key=lambda number: xs[layers.links[number][0]])
        step = min(22.0, sizes[box][0] * 0.7 / max(len(numbers) - 1, 1))
        for place, number in enumerate(numbers):
            ports[number] = (place - (len(numbers) - 1) / 2) * step
    return ports
