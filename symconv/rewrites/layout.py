"""Chains of convolutions work on blocks of channels (nChw8c), on GPUs with channels last (nhwc), where that is faster.

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
from ..graph.provenance import Sources
from ..ops.basic_indexing import Subtensor
from ..ops.convolution import Conv
from ..ops.layout import CHANNELS_LAST, from_blocked, to_blocked
from ..ops.shape import BroadcastTo
from .context import Context
from .layout_forms import Form, blocked_type, build_exit, conv_in_blocks, find_form, is_exit
from .min_cut import Cut

_CONVERSION_START = 4.0e-6
_TRANSPOSING = 1.2
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
    on_gpu = context.target.device != "cpu"
    chosen = _Choice(context, CHANNELS_LAST if on_gpu
                     else max(16, context.target.vector_bytes) // dtypes.itemsize(first.inputs[0].dtype))
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
        self.how = "with channels last" if block == CHANNELS_LAST else f"in blocks of {block} channels"
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
        result = node.outputs[0].type if form.makes_plain else blocked_type(node.outputs[0], self.block)
        blocked = self.context.target.estimate(changed, inputs, [result])
        plain = self.context.target.estimate(op, [each.type for each in node.inputs], [node.outputs[0].type])
        if isinstance(blocked, str):
            self.context.decline(node, f"{self.how}: {blocked}")
            return None
        if self.block != CHANNELS_LAST and not self.context.is_still(node.inputs[1]):  # weights that change are always packed
            weights = _nbytes(node.inputs[1])
            blocked += _CONVERSION_START + _PACKING * self.context.target.copy_seconds(2 * weights, working_set=weights)
        return _Times(math.inf if isinstance(plain, str) else plain, blocked)

    def replacements(self) -> dict[Variable, Variable]:
        """Variables that plain nodes read, over expressions in blocks."""
        nodes = self._chosen_nodes()
        self._note(nodes)
        blocked = _Blocked(self.block, {each for node in self.context.graph.nodes for each in node.outputs})
        replacements: dict[Variable, Variable] = {}
        for node in self.context.graph.nodes:
            if node in nodes:
                (result,) = node.outputs
                made = blocked.written_at(node.source, self.forms[node].build(blocked))
                if self.forms[node].makes_plain:
                    replacements[result] = made
                    continue
                blocked[result] = made
                if self._is_read_plain(result, nodes):
                    replacements[result] = blocked.written_at(node.source, from_blocked(blocked[result], self.block))
            elif is_exit(node, self.block) and self._maker(node.inputs[0]) in nodes:
                made = build_exit(node, blocked[node.inputs[0]], self.block)
                replacements[node.outputs[0]] = blocked.written_at(node.source, made)
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
        made = [node.outputs[0] for node, form in self.forms.items() if not form.makes_plain]
        read = [each for form in self.forms.values() for each in form.images]
        return iter(dict.fromkeys((*made, *read)))

    def _add_conversions(self, cut: Cut, variable: Variable) -> None:
        """What it costs that a variable is made on one side and read on the other; one conversion serves all readers."""
        maker = self._maker(variable) or Cut.SECOND
        seconds = self._conversion_seconds(variable)
        readers = self._readers(variable, paying=True)
        inside, outside = ("to blocks", variable), ("from blocks", variable)
        for reader in readers:
            if reader in self.forms:
                cut.add(reader, inside, math.inf)
            cut.add(outside, reader if reader in self.forms else Cut.SECOND, math.inf)
        cut.add(inside, maker, seconds)
        cut.add(maker, outside, seconds)

    def _maker(self, variable: Variable) -> Apply | None:
        """The node that makes a variable and may make it in blocks."""
        form = self.forms.get(variable.apply) if variable.apply is not None else None
        return None if form is None or form.makes_plain else form.node

    def _readers(self, variable: Variable, paying: bool = False) -> Sequence[Apply | str]:
        """Who reads a variable: nodes that may lie in blocks as what they are, all plain ones as the second side.

        `paying`: without those that take a view of it, for which channels last need no copy.
        """
        found: dict[Apply | str, None] = {}
        for reader in self.context.graph.readers.get(variable, ()):
            form = self.forms.get(reader)
            if form is not None and variable in form.images:
                found[reader] = None
            elif not is_exit(reader, self.block) and not (paying and self.block == CHANNELS_LAST
                                                          and isinstance(reader.op, Subtensor)):
                found[Cut.SECOND] = None
        if self.context.is_result(variable):
            found[Cut.SECOND] = None
        return list(found)

    def _is_read_plain(self, variable: Variable, nodes: set[Apply]) -> bool:
        return any(reader == Cut.SECOND or reader not in nodes for reader in self._readers(variable))

    def _conversion_seconds(self, variable: Variable) -> float:
        target, nbytes = self.context.target, _nbytes(variable)
        if self.block == CHANNELS_LAST:  # a transposing copy; none of what is broadcast, whose readers take strides
            is_free = variable.apply is not None and isinstance(variable.apply.op, BroadcastTo)
            return 0.0 if is_free else _CONVERSION_START + _TRANSPOSING * target.copy_seconds(2 * nbytes, working_set=nbytes)
        factor = _CONVERTING_IN_CACHE if nbytes <= target.ceilings.l3_bytes else _CONVERTING_IN_MEMORY
        return _CONVERSION_START + factor * target.copy_seconds(2 * nbytes, working_set=nbytes)

    def _note(self, nodes: set[Apply]) -> None:
        """Why convolutions stay plain that could lie in blocks."""
        for node, times in self.times.items():
            if node not in nodes and isinstance(node.op, Conv):
                more = ", and conversions would cost more than that" if times.blocked < times.plain else ""
                self.context.decline(node, f"{self.how} an estimated {times.blocked * 1e6:.0f} µs "
                                           f"instead of {times.plain * 1e6:.0f} µs{more}")


class _Blocked(dict[Variable, Variable]):
    """Variables in blocks; those that are made plain are converted when first asked for. `known` is what was there before."""

    def __init__(self, block: int, known: set[Variable]) -> None:
        super().__init__()
        self.block, self.known = block, known

    def __missing__(self, variable: Variable) -> Variable:
        self[variable] = self.written_at(variable.source, to_blocked(variable, self.block))
        return self[variable]

    def written_at(self, source: Sources, made: Variable) -> Variable:
        """The variable; the new nodes behind it tell these lines of the user's, not the one that called the compiler."""
        waiting = [made]
        while waiting:
            variable = waiting.pop()
            if variable.apply is not None and variable not in self.known:
                variable.apply.source = source
                self.known.update(variable.apply.outputs)
                waiting += variable.apply.inputs
        return made


def _nbytes(variable: Variable) -> int:
    return math.prod(variable.type.static_shape) * dtypes.itemsize(variable.dtype)
