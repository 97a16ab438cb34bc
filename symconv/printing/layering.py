"""Which layer every box of a drawing stands in, and in which order: few crossings, short edges.

An edge over several layers passes each of them in a slot of its own.  All edges of one source share their slots: they run
together and branch off where their readers are.
"""
from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

_SWEEPS = 12
_COUNTED_LINKS = 20_000


@dataclass(frozen=True, slots=True)
class Layers:
    """Items 0 … n_boxes-1 are the boxes, the later ones slots of passing edges.

    `order` has the items of each layer from left to right, `links` the pairs (item, item of the next layer), one for
    each stretch of an edge, and `arrivals` tells which edge ends with a link.
    """

    n_boxes: int
    order: list[list[int]]
    links: list[tuple[int, int]]
    arrivals: dict[int, int]


def make_layers(n_boxes: int, edges: Sequence[tuple[int, int]]) -> Layers:
    """Layers of boxes joined by edges (source, target), every source numbered before its targets."""
    ranks = _ranks(n_boxes, edges)
    layer_of, links, arrivals = _with_slots(ranks, edges)
    order: list[list[int]] = [[] for _ in range(max(layer_of, default=-1) + 1)]
    for item, layer in enumerate(layer_of):
        order[layer].append(item)
    return Layers(n_boxes, _ordered(order, layer_of, links), links, arrivals)


def _ranks(n_boxes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Longest path from a source; then every box moves down as long as that shortens edges more than it lengthens others."""
    import networkx

    graph = networkx.DiGraph(edges)
    graph.add_nodes_from(range(n_boxes))
    ranks = [0] * n_boxes
    for rank, generation in enumerate(networkx.topological_generations(graph)):
        for box in generation:
            ranks[box] = rank
    light = {box for box in range(n_boxes) if not graph.pred[box] or not any(graph.pred[each] for each in graph.pred[box])}
    last = {box: heapq.nlargest(2, ((ranks[reader], reader) for reader in graph.succ[box])) for box in range(n_boxes)}
    for box in reversed(range(n_boxes)):
        if graph.succ[box]:
            _lower(box, ranks, graph, light, last)
    return ranks


def _lower(box: int, ranks: list[int], graph: Any, light: set[int], last: dict[int, list[tuple[int, int]]]) -> None:
    """Move a box down to its first reader, or to where it would begin to stretch edges of two boxes above.

    Light boxes (leaves, and what reads nothing else) that nothing else reads come along and cost nothing.  `last` has for each box
    its two lowest readers, as (rank, reader): a box may have thousands.
    """
    lowest = min(ranks[reader] for reader in graph.succ[box]) - 1
    reach = [next((rank for rank, reader in last[above] if reader != box), ranks[box])
             for above in graph.pred[box] if above not in light or len(graph.succ[above]) > 1]
    if reach:
        # with one edge lengthened and its own shortened nothing is won
        lowest = min(lowest, *reach)
    if lowest > ranks[box]:
        ranks[box] = lowest
        for above in graph.pred[box]:
            others = [each for each in last[above] if each[1] != box]
            last[above] = heapq.nlargest(2, [*others, (lowest, box)])


def _with_slots(ranks: list[int],
                edges: Sequence[tuple[int, int]]) -> tuple[list[int], list[tuple[int, int]], dict[int, int]]:
    """The layer of every item, the links, and the edges that end with them."""
    layer_of = list(ranks)
    arrivals: dict[int, int] = {}
    links: list[tuple[int, int]] = []
    chains: dict[int, list[int]] = {}
    for number, (source, target) in sorted(enumerate(edges), key=lambda item: item[1]):
        chain = chains.setdefault(source, [source])
        while ranks[source] + len(chain) < ranks[target]:
            layer_of.append(ranks[source] + len(chain))
            links.append((chain[-1], len(layer_of) - 1))
            chain.append(len(layer_of) - 1)
        arrivals[len(links)] = number
        links.append((chain[ranks[target] - ranks[source] - 1], target))
    return layer_of, links, arrivals


def _ordered(order: list[list[int]], layer_of: list[int], links: list[tuple[int, int]]) -> list[list[int]]:
    """Sort the layers by the mean position of neighbours, down and up in turn; keep the order with fewest crossings."""
    above, below = neighbours(len(layer_of), links)
    best, best_crossings = [list(layer) for layer in order], -1
    order = [list(layer) for layer in order]
    for sweep in range(_SWEEPS):
        _sweep(order, above if sweep % 2 == 0 else below, sweep % 2 == 0)
        crossings = _count_crossings(order, below) if len(links) <= _COUNTED_LINKS else _SWEEPS - sweep
        if best_crossings < 0 or crossings < best_crossings:
            best, best_crossings = [list(layer) for layer in order], crossings
    return best


def neighbours(n_items: int, links: Iterable[tuple[int, int]]) -> tuple[list[list[int]], list[list[int]]]:
    """For every item those linked to it from above, and those below."""
    above: list[list[int]] = [[] for _ in range(n_items)]
    below: list[list[int]] = [[] for _ in range(n_items)]
    for upper, lower in links:
        above[lower].append(upper)
        below[upper].append(lower)
    return above, below


def _sweep(order: list[list[int]], fixed: list[list[int]], downwards: bool) -> None:
    positions: dict[int, float] = {}
    for layer in order if downwards else reversed(order):
        wanted = {item: _mean([positions[each] for each in fixed[item]], default=float(place))
                  for place, item in enumerate(layer)}
        layer.sort(key=lambda item: wanted[item])
        positions = {item: float(place) for place, item in enumerate(layer)}


def _mean(values: list[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _count_crossings(order: list[list[int]], below: list[list[int]]) -> int:
    total = 0
    for layer, following in pairwise(order):
        places = {item: place for place, item in enumerate(following)}
        seen: list[int] = []
        for item in layer:
            ends = sorted(places[each] for each in below[item])
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
