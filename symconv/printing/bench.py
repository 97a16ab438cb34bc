"""`python -m symconv bench "problem string"`: every implementation of one convolution, timed on this machine."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import dtypes
from ..config import config
from ..errors import ArgumentError, InternalError, explain_error
from ..graph import TensorType, Variable, apply_op
from ..graph.node import Array
from ..ops.constants import constant
from ..ops.conv_problem import ConvProblem
from ..ops.convolution import Conv
from ..ops.epilogue import CHANNEL, FULL, Epilogue
from ..ops.layout import array_to_blocked
from ..ops.scalar import SCALAR_OPS, Instruction, ScalarProgram
from ..ops.spec import Kind
from ..runtime.compile import compile as compile_function
from ..runtime.function import Function
from ..runtime.mode import Mode
from ..runtime.report import CandidateReport, StepReport, make_report
from ..runtime.shared import shared

_OPERANDS = {"bias": ("add", CHANNEL), "scale": ("mul", CHANNEL), "residual": ("add", FULL), "gate": ("mul", FULL)}
_UNARY = tuple(name for name, op in SCALAR_OPS.items()
               if op.arity == 1 and name != "cast" and not name.startswith(("is", "invert")))


def bench(text: str, device: str = "cpu", training: bool = False) -> str:
    """The table of a problem's implementations: seconds, GFLOP/s, share of the machine's peak, and why others refuse.

    Args:
        text: a problem string (`ops/conv_problem.py` has the grammar), as `explain()` prints it.
        device: "cpu", "cuda", "cuda:1" or "emulator".
        training: weights change with every call, so what is made of them is counted; by default they are state at rest.

    Raises:
        ArgumentError: the text says no convolution; BackendError: the device is not there.

    >>> print(bench("fprop n1 c4 h6 w6 k4 r3 s3 p1 f32 +bias+relu").splitlines()[0])
    fprop n1 c4 h6 w6 k4 r3 s3 p1 f32 +bias+relu on cpu
    """
    problem = ConvProblem.parse(text)
    with config.change(selection="measure"):
        function, arrays = _function(problem, device, training)
        function(*arrays)
    step = next((each for each in make_report(function).steps if each.problem is not None), None)
    if step is None:
        raise InternalError(f"the program of {text} has no convolution")
    return "\n".join([f"{problem} on {device}", *_rows(step)])


def _function(problem: ConvProblem, device: str, training: bool) -> tuple[Function, list[Array]]:
    """A function that is this convolution alone, and random arguments."""
    generator = np.random.default_rng(0)
    epilogue = _epilogue(problem)
    inputs: list[Variable] = []
    arrays: list[Array] = []
    operands: list[Variable] = []
    for role, shape in [*((role, _shape(problem, role)) for role in problem.kind.reads), *_operand_shapes(problem, epilogue)]:
        array = generator.standard_normal(shape).astype(dtypes.numpy_dtype(problem.dtype))
        if role in ("x", "y") and problem.layout is not None:
            array = np.ascontiguousarray(array_to_blocked(array, problem.layout.block(role)))
        if role in ("w", CHANNEL) and not training:
            operands.append(shared(array, name=role, shape=array.shape))
            continue
        variable = Variable(TensorType(problem.dtype, array.shape), role)
        inputs.append(variable)
        operands.append(variable)
        arrays.append(array)
    if problem.kind is not Kind.FPROP:
        operands.insert(2, constant(np.array(problem.result_shape, np.int64)))
    result = apply_op(Conv(problem.kind, problem.spec, epilogue, layout=problem.layout), *operands)
    mode = Mode("bench", include=())  # the convolution as it is asked for, not what it could be rewritten to
    return compile_function(inputs, result, device=device, mode=mode, name="bench"), arrays


def _shape(problem: ConvProblem, role: str) -> tuple[int, ...]:
    return {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}[role]


def _operand_shapes(problem: ConvProblem, epilogue: Epilogue | None) -> list[tuple[str, tuple[int, ...]]]:
    if epilogue is None:
        return []
    shapes = {CHANNEL: (problem.result_shape[1],), FULL: problem.result_shape}
    return [("x" if place == FULL and problem.kind is Kind.DGRAD else "y" if place == FULL else place, shapes[place])
            for place in epilogue.operands]


def _epilogue(problem: ConvProblem) -> Epilogue | None:
    """What the words of a problem string say, applied in order."""
    words = [word for word in problem.epilogue.split("+") if word]
    if not words:
        return None
    places = [_OPERANDS[word][1] for word in words if word in _OPERANDS]
    body: list[Instruction] = []
    value, operand, following = 0, 1, 1 + len(places)
    for word in words:
        if word in _OPERANDS:
            body.append(Instruction(_OPERANDS[word][0], (value, operand), problem.dtype))
            operand += 1
        elif word in _UNARY:
            body.append(Instruction(word, (value,), problem.dtype))
        else:
            raise ArgumentError(explain_error(f"this epilogue cannot be made from its text: {problem.epilogue!r}",
                                              f"the word {word!r}", f"use {', '.join((*_OPERANDS, *_UNARY))}"))
        value, following = following, following + 1
    return Epilogue(ScalarProgram((problem.dtype,) * (1 + len(places)), tuple(body), (value,)), tuple(places))


def _rows(step: StepReport) -> list[str]:
    """The candidates, fastest first, then those that refuse."""
    able = sorted((each for each in step.candidates if each.seconds is not None), key=_seconds)
    refusing = [each for each in step.candidates if each.refusal is not None]
    width = max(len(each.name) for each in step.candidates)
    lines = [f"  {'':2}{'implementation':{width}} {'ms':>10} {'GFLOP/s':>9} {'of peak':>8}", *(_row(each, width) for each in able)]
    lines += [f"    {each.name:{width}} refuses: {each.refusal}" for each in refusing]
    return lines + [f"  {note}" for note in _notes(step, able)]


def _row(each: CandidateReport, width: int) -> str:
    rate = f"{each.gflops:9.1f}" if each.gflops is not None else f"{'':9}"
    share = f"{each.share:8.0%}" if each.share is not None else f"{'':8}"
    kind = "" if each.is_measured else "  expected"
    return f"  {'* ' if each.is_chosen else '  '}{each.name:{width}} {1e3 * _seconds(each):10.4f} {rate} {share}{kind}"


def _seconds(each: CandidateReport) -> float:
    return 0.0 if each.seconds is None else each.seconds


def _notes(step: StepReport, able: Sequence[CandidateReport]) -> list[str]:
    if not able:
        return ["nothing generated takes it: symconv runs the NumPy reference"]
    notes = ["* is what symconv runs"]
    if len(able) == 1:
        notes.append("only one takes it, so there was nothing to choose and nothing was timed")
    return notes + ([f"not measured: {step.not_measured}"] if step.not_measured else [])
