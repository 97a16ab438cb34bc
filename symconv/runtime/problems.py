"""The convolution problems that a node solves: their texts, and the products and sums of a direct computation."""
from __future__ import annotations

from ..graph import Apply, TensorType
from ..ops.conv_problem import ConvProblem
from ..ops.convolution import Conv
from ..ops.lowered.conv_chain import ConvChain
from ..ops.lowered.pooled_convolution import PooledConv
from ..ops.spec import Kind


def conv_problem(node: Apply | None) -> ConvProblem | None:
    """The problem of a node that is one convolution (perhaps behind a pooling's gradient); None for any other."""
    problems = conv_problems(node)
    return problems[0] if len(problems) == 1 else None


def conv_problems(node: Apply | None) -> tuple[ConvProblem, ...]:
    """The problems of a node: one for a convolution, one for each stage of a chain, else none."""
    if node is None:
        return ()
    types, result = [variable.type for variable in node.inputs], node.outputs[0].type
    if isinstance(node.op, Conv):
        return (node.op.problem(types, result),)
    if isinstance(node.op, PooledConv):
        return (_pooled(node.op, types[0], result),)
    return _stages(node.op, types) if isinstance(node.op, ConvChain) else ()


def _pooled(op: PooledConv, first: TensorType, result: TensorType) -> ConvProblem:
    """As if the response were computed: the gradient of a pooling, mostly zeros."""
    response = first.with_shape(op.response_shape(first.shape))
    return op.conv.problem([first, response] if op.conv.kind is Kind.WGRAD else [response, first], result)


def _stages(chain: ConvChain, types: list[TensorType]) -> tuple[ConvProblem, ...]:
    problems, value = [], types[0]
    for stage, extra in chain.parts(types):
        (result,) = stage.infer(value, *extra)
        problems.append(stage.problem([value, *extra], result))
        value = result
    return tuple(problems)
