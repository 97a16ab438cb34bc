"""For every op class expressions that use it, small, with arrays for their inputs: what the suites of devices and references run.

The differentiable ones are those whose gradients are verified (`test_every_gradient.py`), as they are and with their gradients;
beside them stand the others, and each scalar operation in each kind of dtype.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from support import variable_for
from test_every_gradient import ARGUMENTS, CASES

import symconv as sc
import symconv.tensor as T
from symconv.graph import Variable, apply_op
from symconv.graph.node import make_apply
from symconv.graph.traversal import toposort
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.elementwise import Elementwise
from symconv.ops.layout import Layout
from symconv.ops.lowered.blocked_pooling import BlockedPool, BlockedPoolGrad
from symconv.ops.lowered.conv_chain import ConvChain
from symconv.ops.lowered.fused_elementwise import FusedElementwise
from symconv.ops.lowered.pooled_convolution import PooledConv, PoolPlaces
from symconv.ops.lowered.reduce_many import ReduceMany
from symconv.ops.pooling import Pool
from symconv.ops.random import random
from symconv.ops.reductions import Reduce
from symconv.ops.scalar import SCALAR_OPS, Instruction, ScalarProgram
from symconv.ops.spec import Kind, make_spec
from symconv.ops.stop_gradient import StopGradient

Array = np.ndarray[Any, Any]
Build = Callable[..., Any]
_POOL = Pool("max", (2, 2), (2, 2), (0, 0), (0, 0), True)
_rng = np.random.default_rng(3)


@dataclass(frozen=True)
class OpCase:
    """Expressions and the arrays of their inputs."""

    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]
    arrays: tuple[Array, ...]

    @property
    def op_names(self) -> set[str]:
        """The op classes that the expressions are made of."""
        return {type(node.op).__name__ for node in toposort(self.outputs)}


def _normal(*shape: int, dtype: str = "float32") -> Array:
    return _rng.normal(size=shape).astype(dtype)


def _draws(state: Variable) -> list[Variable]:
    return [random("uniform", state, (5,), "float32"), random("normal", state, (3, 2), "float64"),
            random("bits", state, (4,), "uint32")]


def _fused(x: Variable, y: Variable) -> Variable:
    body = (Instruction("mul", (0, 1), "float32"), Instruction("tanh", (2,), "float32"))
    return apply_op(FusedElementwise(ScalarProgram(("float32",) * 2, body, (3,))), x, y)


def _reduced_twice(x: Variable) -> list[Variable]:
    parts = tuple(Reduce(kind, (1,), False, "float32") for kind in ("sum", "max"))
    program = ScalarProgram(("float32",), (Instruction("square", (0,), "float32"),), (0, 1))
    return list(make_apply(ReduceMany(parts, program), [x]).outputs)


def _chain(x: Variable, w: Variable, v: Variable) -> Variable:
    stages = tuple(Conv(Kind.FPROP, ConvProblem.parse(text).spec, None, None, Layout(8, 8))
                   for text in ("fprop n1 c8 h5 w5 k8 r3 s3 p1 g8 f32", "fprop n1 c8 h5 w5 k8 r1 s1 f32"))
    return apply_op(ConvChain(stages), x, w, v)


def _pooled_gradients(x: Variable, w: Variable, g: Variable) -> list[Variable]:
    """Both gradients of a convolution in front of max pooling, for images (2, 2, 6, 6) and filters (3, 2, 3, 3)."""
    spec = make_spec(2)
    places = make_apply(PoolPlaces(_POOL), [T.nnet.conv2d(x, w, filter_flip=False)]).outputs[1]
    return [apply_op(PooledConv(Conv(kind, spec, None, shape), _POOL), first, g, places)
            for kind, first, shape in ((Kind.WGRAD, x, (3, 2, 3, 3)), (Kind.DGRAD, w, (2, 2, 6, 6)))]


OTHERS: dict[str, tuple[Build, list[Array]]] = {
    "Shape": (lambda x: x.shape * 2, [_normal(3, 4)]),
    "MakeVector": (lambda x: T.zeros((x.shape[1], x.shape[0]), "float32") + x[0, 0], [_normal(3, 4)]),
    "ArgReduce": (lambda x: [T.argmax(x, axis=1), T.argmin(x, axis=0)], [_normal(5, 7)]),
    "ArgSort": (lambda x: [T.argsort(x, axis=0), T.argsort(x)], [_normal(4, 3)]),
    "ARange": (lambda n, x: [T.arange(n), T.arange(0.5, 4.0, 0.75, dtype="float32") + x[0]], [np.array(6), _normal(5)]),
    "Eye": (lambda n: T.eye(n, 4, 1, dtype="float32"), [np.array(3)]),
    "Random": (_draws, [np.array([7, 2**40], np.uint64)]),
    "StopGradient": (lambda x: apply_op(StopGradient(), x) + 1, [_normal(3)]),
    "FusedElementwise": (_fused, [_normal(3, 4), _normal(4)]),
    "ReduceMany": (_reduced_twice, [_normal(4, 6)]),
    "BlockedPool": (lambda x: apply_op(BlockedPool(_POOL), x), [_normal(1, 2, 4, 6, 8)]),
    "BlockedPoolGrad": (lambda x, g: [apply_op(BlockedPoolGrad(_POOL, (4, 6)), x, g),
                                      apply_op(BlockedPoolGrad(replace(_POOL, mode="sum"), (4, 6)), g)],
                        [_normal(1, 2, 4, 6, 8), _normal(1, 2, 2, 3, 8)]),
    "PoolPlaces": (lambda x: list(make_apply(PoolPlaces(_POOL), [x]).outputs), [_normal(2, 3, 4, 6)]),
    "PooledConv": (_pooled_gradients, [_normal(2, 2, 6, 6), _normal(3, 2, 3, 3), _normal(2, 3, 2, 2)]),
    "ConvChain": (_chain, [_normal(1, 1, 5, 5, 8), _normal(8, 1, 3, 3), _normal(8, 8, 1, 1)]),
    "Print": (lambda x: sc.Print("")(x) * 2, [_normal(3)]),
    "Assert": (lambda x: sc.Assert("all are small")(x, (x < 100).all()) * 2, [_normal(3)]),
    "Conv depthwise": (lambda x, w: T.nnet.conv2d(x, w, border_mode=1, num_groups=3), [_normal(2, 3, 6, 5), _normal(3, 1, 3, 3)]),
    "Conv of one channel": (lambda x, w: T.nnet.conv2d(x, w, subsample=2), [_normal(2, 1, 9, 8), _normal(5, 1, 5, 5)]),
    "Conv float16": (lambda x, w: T.nnet.conv2d(x, w, border_mode=1), [_normal(1, 8, 5, 5, dtype="float16"),
                                                                      _normal(8, 8, 3, 3, dtype="float16")]),
    "MatMul of integers": (T.matmul, [np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)]),
    "Reduce of flags": (lambda x: [(x > 0).any(axis=0), (x > 0).all()], [_normal(3, 4)]),
    "Gather of flags": (lambda x, i: (x > 0)[i], [_normal(5), np.array([4, 0, -1])]),
}
"""Ops without gradients, and kernels that the gradients' float64 cases do not reach."""

_OF_REWRITES = {"BlockedPool", "BlockedPoolGrad", "PoolPlaces", "PooledConv", "ConvChain"}  # made when all sizes are known
_NUMBERS = {"b": np.array([True, False, True, False]), "i": np.array([-7, 3, 0, 5], np.int32),
            "u": np.array([7, 3, 1, 250], np.uint8), "f": np.array([-1.75, 0.5, 0.25, 2.5], np.float32)}
_WITHIN_ONE = ("arcsin", "arccos")


def _scalar_builds(kind: str) -> Build:
    """Every scalar operation that takes a kind of dtype, all in one function."""

    def build(a: Variable, b: Variable) -> list[Variable]:
        results = []
        for row in SCALAR_OPS.values():
            if kind not in row.kinds or row.name == "cast":
                continue
            if row.name == "where":
                results.append(T.where(b > a if kind != "b" else a, a, b))
            else:
                first = a * np.float32(0.25) if row.name in _WITHIN_ONE else a
                results.append(apply_op(Elementwise(row.name, None), *(first, b, a)[:row.arity]))
        return results

    return build


def cases() -> dict[str, Callable[[], OpCase]]:
    """The makers of all cases, by name; the op class is the name's first word where it is one."""
    found: dict[str, Callable[[], OpCase]] = {}
    for name, (build, arrays) in CASES.items():
        found[name] = lambda build=build, arrays=arrays: _differentiated(build, arrays)
    for name, (build, arrays) in OTHERS.items():
        found[name] = lambda build=build, arrays=arrays, known=name in _OF_REWRITES: _plain(build, arrays, known)
    for kind, numbers in _NUMBERS.items():
        found[f"Elementwise {numbers.dtype.name}"] = lambda kind=kind, numbers=numbers: _plain(
            _scalar_builds(kind), [numbers, numbers[::-1].copy()])
    for name, function in _differentiable_scalars():
        found[f"Elementwise gradient of {name}"] = lambda name=name, function=function: _differentiated(function, ARGUMENTS[name])
    return found


def _differentiable_scalars() -> Iterator[tuple[str, Build]]:
    """A few whose gradients are made of others than the rest."""
    for name in ("pow", "logaddexp", "erf", "softplus"):
        yield name, getattr(sc.ops.elementwise, name)


def _plain(build: Build, arrays: Sequence[Array], known: bool = False) -> OpCase:
    inputs = tuple(variable_for(array, known) for array in arrays)
    built = build(*inputs)
    return OpCase(inputs, tuple(built) if isinstance(built, (tuple, list)) else (built,), tuple(arrays))


def _differentiated(build: Build, arrays: Sequence[Array]) -> OpCase:
    """The result, and the gradients of the sum of its squares."""
    inputs = tuple(variable_for(np.asarray(array)) for array in arrays)
    result = build(*inputs)
    gradients = sc.grad((result * result).sum(), list(inputs))
    return OpCase(inputs, (result, *gradients), tuple(map(np.asarray, arrays)))
