"""Chains of convolutions work on blocks of channels (nChw8c) where that is faster.

    conv(x, w) = from_blocked(conv'(to_blocked(x), w)),     from_blocked(to_blocked(x)) = x

and what stands between convolutions (activations, sums, pools) goes along; `layout_forms.py` has the laws.  Which nodes lie in
blocks is chosen for the whole graph at once: each convolution has an estimated time plain and in blocks, each tensor that is made
on one side and read on the other costs a conversion, and the division with the smallest sum is a minimal cut.  Conditions:
static shapes; channels that divide; a kernel for the convolution in blocks; the setting `layout` is "auto" (with "always",
conversions and estimates count nothing), and no convolution kernel is forced.  Inputs, outputs and state stay plain.

Floats: sums of products are taken in another order, as between any two convolution kernels; reductions too.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .. import dtypes
from ..config import config
from ..graph import Apply, Variable
from ..ops.convolution import Conv
from ..ops.layout import from_blocked, to_blocked
from .context import Context
from .layout_forms import Form, blocked_type, build_exit, conv_in_blocks, find_form, is_exit
from .min_cut import Cut

_CONVERSION_START = 4.0e-6
_CONVERTING_IN_CACHE, _CONVERTING_IN_MEMORY, _PACKING = 5.0, 2.0, 5.0
"""How much longer than a plain copy a conversion takes, or the packing of weights: one side is read in steps of a block."""


def choose_layouts(context: Context) -> Mapping[Variable, Variable]:
    """Every variable that is made in blocks and read plain, or made from blocks, as an expression over blocks."""
    first = next((node for node in context.graph.nodes if isinstance(node.op, Conv)), None)
    if first is None or config.layout == "off" or not context.target.has_compiler:
        return {}
    if config.conv.implementation:
        context.decline(first, f"the setting conv.implementation forces {config.conv.implementation}, which works on plain tensors")
        return {}
    chosen = _Choice(context, max(16, context.target.vector_bytes) // dtypes.itemsize(first.inputs[0].dtype))
    return chosen.replacements() if chosen.forms else {}


@dataclass(frozen=True, slots=True)
class _Times:
    """Estimated seconds of a node, plain and in blocks."""

    plain: float
    blocked: float


class _Choice:
    """Which nodes of a graph lie in blocks."""

    def __init__(self, context: Context, block: int) -> None:
        self.context, self.block = context, block
        self.forms: dict[Apply, Form] = {}
        self.times: dict[Apply, _Times] = {}
        for node in context.graph.nodes:
            form = find_form(node, block)
            times = None if form is None else self._times(form)
            if form is not None and times is not None:
                self.forms[node], self.times[node] = form, times
        if not any(isinstance(node.op, Conv) for node in self.forms):
            self.forms = {}

    def _times(self, form: Form) -> _Times | None:
        """The seconds of a node; None, and the reason noted, where no kernel runs it in blocks."""
        node, op = form.node, form.node.op
        if not isinstance(op, Conv):
            return _Times(0.0, 0.0)
        inputs = [blocked_type(each, self.block) if each in form.images else each.type for each in node.inputs]
        changed = conv_in_blocks(op, self.block, node.inputs[0] in form.images)
        blocked = self.context.target.estimate(changed, inputs, [blocked_type(node.outputs[0], self.block)])
        plain = self.context.target.estimate(op, [each.type for each in node.inputs], [node.outputs[0].type])
        if isinstance(blocked, str):
            self.context.decline(node, f"in blocks of {self.block} channels: {blocked}")
            return None
        if not self.context.is_still(node.inputs[1]):  # weights that change are packed on every call
            weights = _nbytes(node.inputs[1])
            blocked += _CONVERSION_START + _PACKING * self.context.target.copy_seconds(2 * weights, working_set=weights)
        return _Times(math.inf if isinstance(plain, str) else plain, blocked)

    def replacements(self) -> dict[Variable, Variable]:
        """Variables that plain nodes read, over expressions in blocks."""
        nodes = self._chosen_nodes()
        self._note(nodes)
        blocked = _Blocked(self.block)
        replacements: dict[Variable, Variable] = {}
        for node in self.context.graph.nodes:
            if node in nodes:
                (result,) = node.outputs
                blocked[result] = self.forms[node].build(blocked)
                if self._is_read_plain(result, nodes):
                    replacements[result] = from_blocked(blocked[result], self.block)
            elif is_exit(node, self.block) and node.inputs[0].apply in nodes:
                replacements[node.outputs[0]] = build_exit(node, blocked[node.inputs[0]])
        return replacements

    def _chosen_nodes(self) -> set[Apply]:
        if config.layout == "always":
            return set(self.forms)
        cut = Cut()
        for node, times in self.times.items():
            cut.add(Cut.FIRST, node, times.plain)
            cut.add(node, Cut.SECOND, times.blocked)
        for variable in self._images():
            self._add_conversions(cut, variable)
        side = cut.first_side()
        return {node for node in self.forms if node in side}

    def _images(self) -> Iterator[Variable]:
        """Every variable that is made or read by a node that may lie in blocks."""
        made = [node.outputs[0] for node in self.forms]
        read = [each for form in self.forms.values() for each in form.images]
        return iter(dict.fromkeys((*made, *read)))

    def _add_conversions(self, cut: Cut, variable: Variable) -> None:
        """What it costs that a variable is made on one side and read on the other; one conversion serves all readers."""
        maker = variable.apply if variable.apply in self.forms else Cut.SECOND
        seconds = self._conversion_seconds(variable)
        readers = self._readers(variable)
        inside, outside = ("to blocks", variable), ("from blocks", variable)
        for reader in readers:
            if reader in self.forms:
                cut.add(reader, inside, math.inf)
            cut.add(outside, reader if reader in self.forms else Cut.SECOND, math.inf)
        cut.add(inside, maker, seconds)
        cut.add(maker, outside, seconds)

    def _readers(self, variable: Variable) -> Sequence[Apply | str]:
        """Who reads a variable: nodes that may lie in blocks as what they are, all plain ones as the second side."""
        found: dict[Apply | str, None] = {}
        for reader in self.context.graph.readers.get(variable, ()):
            form = self.forms.get(reader)
            if form is not None and variable in form.images:
                found[reader] = None
            elif not is_exit(reader, self.block):
                found[Cut.SECOND] = None
        if self.context.is_result(variable):
            found[Cut.SECOND] = None
        return list(found)

    def _is_read_plain(self, variable: Variable, nodes: set[Apply]) -> bool:
        return any(reader == Cut.SECOND or reader not in nodes for reader in self._readers(variable))

    def _conversion_seconds(self, variable: Variable) -> float:
        target, nbytes = self.context.target, _nbytes(variable)
        factor = _CONVERTING_IN_CACHE if nbytes <= target.ceilings.l3_bytes else _CONVERTING_IN_MEMORY
        return _CONVERSION_START + factor * target.copy_seconds(2 * nbytes, working_set=nbytes)

    def _note(self, nodes: set[Apply]) -> None:
        """Why convolutions stay plain that could lie in blocks."""
        for node, times in self.times.items():
            if node not in nodes and isinstance(node.op, Conv):
                more = ", and conversions would cost more than that" if times.blocked < times.plain else ""
                self.context.decline(node, f"in blocks of {self.block} channels an estimated {times.blocked * 1e6:.0f} µs "
                                           f"instead of {times.plain * 1e6:.0f} µs{more}")


class _Blocked(dict[Variable, Variable]):
    """Variables in blocks; those that are made plain are converted when first asked for."""

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def __missing__(self, variable: Variable) -> Variable:
        self[variable] = to_blocked(variable, self.block)
        return self[variable]


def _nbytes(variable: Variable) -> int:
    return math.prod(variable.type.static_shape) * dtypes.itemsize(variable.dtype)
