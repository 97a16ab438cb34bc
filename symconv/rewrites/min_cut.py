"""The cheapest way to divide nodes into two sides, by a maximum flow (Dinic 1970)."""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable

_LEAST = 1e-12


class Cut:
    """Nodes that go to one of two sides, `FIRST` or `SECOND`, each arc with what it costs to have its ends on different ones."""

    FIRST = "first"
    SECOND = "second"

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._arcs: list[list[int]] = []
        self._heads: list[int] = []
        self._left: list[float] = []
        for side in (self.FIRST, self.SECOND):
            self._node(side)

    def add(self, start: Hashable, end: Hashable, cost: float) -> None:
        """To have `start` on the first side and `end` on the second costs this much (`math.inf`: is not allowed)."""
        if cost <= 0:
            return
        for tail, head, capacity in ((start, end, cost), (end, start, 0.0)):
            self._arcs[self._node(tail)].append(len(self._heads))
            self._heads.append(self._node(head))
            self._left.append(capacity)

    def first_side(self) -> set[Hashable]:
        """The nodes of the first side in the cheapest division; the smallest such set.

        >>> cut = Cut()
        >>> cut.add(Cut.FIRST, "a", 3.0); cut.add("a", Cut.SECOND, 1.0); cut.add("a", "b", 1.5); cut.add("b", Cut.SECOND, 9.0)
        >>> sorted(cut.first_side() - {Cut.FIRST})
        ['a']
        """
        while True:
            depth = self._depths()
            if depth[1] < 0:
                return {node for node, number in self._numbers.items() if depth[number] >= 0}
            following = [0] * len(self._arcs)
            while self._push(depth, following):
                pass

    def _node(self, key: Hashable) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._arcs)
            self._arcs.append([])
        return self._numbers[key]

    def _depths(self) -> list[int]:
        """How many arcs with something left each node is from the start; -1 where none lead there."""
        depth = [-1] * len(self._arcs)
        depth[0], waiting = 0, deque([0])
        while waiting:
            node = waiting.popleft()
            for arc in self._arcs[node]:
                head = self._heads[arc]
                if self._left[arc] > _LEAST and depth[head] < 0:
                    depth[head] = depth[node] + 1
                    waiting.append(head)
        return depth

    def _push(self, depth: list[int], following: list[int]) -> bool:
        """Fill one path from the first to the second side; whether there was one."""
        path: list[int] = []
        node = 0
        while node != 1:
            arcs = self._arcs[node]
            while following[node] < len(arcs):
                arc = arcs[following[node]]
                if self._left[arc] > _LEAST and depth[self._heads[arc]] == depth[node] + 1:
                    break
                following[node] += 1
            if following[node] < len(arcs):
                path.append(arcs[following[node]])
                node = self._heads[path[-1]]
            elif path:
                node = self._heads[path.pop() ^ 1]
                following[node] += 1
            else:
                return False
        flow = min((self._left[arc] for arc in path), default=0.0)
        for arc in path:
            self._left[arc] -= flow
            self._left[arc ^ 1] += flow if math.isfinite(flow) else 0.0
        return True
