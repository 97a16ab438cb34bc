"""Elementwise nodes into few kernels, and into the reductions that read them.

A group has one root: an elementwise node, or a reduction, or several reductions of the same elements
(`reduction_groups.py`).  A node joins the group of its readers where all of them are in that one group; so no path leaves a
group and comes back.  A value that is also an output or an update becomes a further output of the kernel.  A cheap value
that several groups read joins each of them where computing it again moves less memory than keeping it
(`recomputation.py`); no path leaves such a copy but into its group.

Conditions: at most MAX_INPUTS inputs and MAX_INSTRUCTIONS instructions a kernel; all values have the shape of the root but
for a few cheap ones on smaller, broadcast values, which are computed again for every element; a further output has the
root's shape.  The target may refuse.  Constants with one element become part of the program.

Floats: the same operations in the same order; nothing changes.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..graph import Apply, Variable
from ..graph.node import make_apply
from ..graph.provenance import merge_sources
from ..ops.broadcasting import broadcast_shapes
from ..ops.elementwise import Elementwise
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.lowered.reduce_many import ReduceMany
from ..ops.reductions import Reduce
from ..ops.scalar import ScalarProgram, single
from .context import Context
from .programs import Place, ProgramBuilder, add_nodes, scalar_constant
from .recomputation import CHEAP, pays_again
from .reduction_groups import reduction_groups

MAX_INPUTS = 30
MAX_INSTRUCTIONS = 200
MAX_OUTPUTS = 8
MAX_REPEATED = 4


class Group:
    """Nodes that become one kernel, readers before inputs; `roots` are the first: one elementwise node, or reductions."""

    def __init__(self, *roots: Apply) -> None:
        self.roots = roots
        self.root = roots[0]
        self.is_reduction = isinstance(self.root.op, Reduce)
        self.shape = (self.root.inputs if self.is_reduction else self.root.outputs)[0].type.shape
        self.members: list[Apply] = [] if self.is_reduction else [self.root]
        self.outputs: list[Variable] = [root.outputs[0] for root in roots]
        self.inputs: dict[Variable, None] = dict.fromkeys(
            each for root in roots for each in root.inputs if scalar_constant(each) is None)
        self.repeated = 0

    def refuse(self, node: Apply, is_result: bool) -> str | None:
        """Why an elementwise node whose readers are all in the group cannot join it; None where it can."""
        (value,) = node.outputs
        is_small = value.type.shape != self.shape
        if is_result and (self.is_reduction or is_small or len(self.outputs) == MAX_OUTPUTS):
            return "its value is also an output, which this kernel cannot write"
        if is_small and (node.op.name not in CHEAP or self.repeated == MAX_REPEATED):
            return "its value is smaller than the kernel's result and would be computed again for every element"
        if len(self.members) == MAX_INSTRUCTIONS:
            return f"the kernel has {MAX_INSTRUCTIONS} instructions already"
        added = sum(each not in self.inputs and scalar_constant(each) is None for each in dict.fromkeys(node.inputs))
        if len(self.inputs) - 1 + added > MAX_INPUTS:
            return f"the kernel would have more than {MAX_INPUTS} inputs"
        return None

    def take(self, node: Apply, is_result: bool) -> None:
        """Let a node join."""
        (value,) = node.outputs
        self.repeated += value.type.shape != self.shape
        self.inputs.pop(value, None)
        self.inputs.update((each, None) for each in node.inputs if scalar_constant(each) is None)
        self.members.append(node)
        if is_result:
            self.outputs.append(value)

    def program(self) -> tuple[ScalarProgram, list[Variable]]:
        """The program of all members, and the variables that it reads."""
        shape = broadcast_shapes([each.type.shape for each in self.inputs]) if self.inputs else None
        with_constants = shape == self.shape
        builder, read = ProgramBuilder(), list[Variable]()

        def operand(variable: Variable) -> Place:
            value = scalar_constant(variable)
            if with_constants and value is not None:
                return builder.instruction("constant", (), variable.dtype, value)
            read.append(variable)
            return builder.input(variable.dtype)

        places = add_nodes(builder, reversed(self.members), {}, operand)
        wanted = [root.inputs[0] for root in self.roots] if self.is_reduction else self.outputs
        places |= {each: operand(each) for each in dict.fromkeys(wanted) if each not in places}
        return builder.finish(places[each] for each in wanted), read


def fuse_elementwise(context: Context) -> Mapping[Variable, Variable]:
    """Every group of two or more nodes as one node."""
    replacements: dict[Variable, Variable] = {}
    for group in find_groups(context):
        if len(group.members) + len(group.roots) - (not group.is_reduction) < 2:
            continue
        program, read = group.program()
        reason = context.target.refuse_elementwise(program)
        if reason is not None:
            context.decline(group.root, reason)
            continue
        sources = merge_sources(*(node.source for node in (*group.roots, *group.members)))
        made = make_apply(_fused_op(group, program), read, sources)
        replacements.update(zip(group.outputs, made.outputs, strict=True))
    return replacements


def _fused_op(group: Group, program: ScalarProgram) -> FusedElementwise | Reduce | ReduceMany:
    parts = tuple(root.op for root in group.roots if isinstance(root.op, Reduce))
    if not parts:
        return FusedElementwise(program)
    if len(parts) > 1:
        return ReduceMany(parts, program)
    return Reduce(parts[0].kind, parts[0].axes, parts[0].keepdims, parts[0].dtype, program)


def find_groups(context: Context) -> Iterable[Group]:
    """The groups of a graph, found from its outputs on: each node after all its readers."""
    groups_of: dict[Apply, tuple[Group, ...]] = {}
    for roots in reduction_groups(context.graph):
        group = Group(*roots)
        groups_of.update((root, (group,)) for root in roots)
    refusals: dict[ScalarProgram, str | None] = {}
    for node in reversed(context.graph.nodes):
        if isinstance(node.op, Elementwise) and _is_allowed(node, context, refusals):
            groups_of[node] = _joined(node, context, groups_of) or (Group(node),)
    return dict.fromkeys(group for groups in groups_of.values() for group in groups)


def _joined(node: Apply, context: Context, groups_of: Mapping[Apply, tuple[Group, ...]]) -> tuple[Group, ...]:
    """The groups of all readers of a node, which it has now joined; none where it needs a group of its own."""
    value, found = node.outputs[0], dict[Group, None]()
    for reader in context.graph.readers.get(value, ()):
        if reader not in groups_of:
            return ()
        found.update(dict.fromkeys(groups_of[reader]))
    groups, is_result = tuple(found), context.is_result(value)
    if any(group.refuse(node, is_result) is not None for group in groups):
        return ()
    if len(groups) > 1 and (is_result or not pays_again(node, [(group.shape, group.inputs) for group in groups], context)):
        return ()
    for group in groups:
        group.take(node, is_result)
    return groups


def _is_allowed(node: Apply, context: Context, refusals: dict[ScalarProgram, str | None]) -> bool:
    """Whether the target fuses this operation at all; the reason of each kind that it refuses is noted once."""
    program = single(node.op.name, tuple(each.dtype for each in node.inputs), node.outputs[0].dtype)
    if program not in refusals:
        refusals[program] = context.target.refuse_elementwise(program)
        if refusals[program] is not None:
            context.decline(node, str(refusals[program]))
    return refusals[program] is None
