"""What a report says beside choices: what was fused and what not, how exact results are, and which of them depend on what."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import dtypes
from ..codegen.cuda.kernel import LaunchPlan
from ..config import config
from ..graph import Apply
from ..ops.convolution import Conv
from ..ops.linalg import MatMul
from ..ops.lowered.conv_chain import ConvChain
from ..ops.lowered.fused_elementwise import FusedElementwise
from ..ops.lowered.reduce_many import ReduceMany
from ..ops.random import Random
from ..ops.reductions import Reduce
from ..ops.scalar import ScalarProgram
from ..ops.softmax import LogSoftmax, Softmax
from ..rewrites.log import Declined, expression_text
from ..target import Target
from .planned import PlannedProgram
from .step import Step

_WINOGRAD = ("Winograd's form: errors of rounding up to 4 times those of direct sums, and a NaN or infinity spreads over its tile; "
             'config.conv.winograd = "off" keeps to direct sums')
_FFT = ("Fourier transforms: errors of rounding are those of the largest numbers of a tile, and a NaN or infinity spreads over it; "
        'config.conv.fft = "off" keeps to direct sums')
_SPLIT = "sums are taken in parts, which are added in a fixed order: the same bits on every call"
_TF32 = "products are rounded to tf32 (10 bits of fraction), sums run in float32; config.precision = \"float32\" forbids it"


def fused_parts(node: Apply | None) -> tuple[str, ...]:
    """The operations that a node does beside its own, by name: what was fused into it."""
    op = None if node is None else node.op
    if isinstance(op, Conv):
        return () if op.epilogue is None else _names(op.epilogue.program)
    if isinstance(op, (FusedElementwise, ReduceMany)):
        return _names(op.program)
    if isinstance(op, Reduce):
        return () if op.prologue is None else _names(op.prologue)
    if isinstance(op, ConvChain):
        return tuple(str(stage) for stage in op.stages)
    return ()


def _names(program: ScalarProgram) -> tuple[str, ...]:
    return tuple(step.op for step in program.body if step.op != "constant")


def not_fused(step: Step, declined: Iterable[Declined]) -> tuple[str, ...]:
    """Why rewrites that recognised their pattern at a step, or at what reads a convolution's result, were not applied."""
    node = step.node
    if node is None:
        return ()
    found = [_reason(each, node) for each in declined if any(_is_same(node, other) for other in _concerned(each.node))]
    return tuple(dict.fromkeys(found))


def _reason(declined: Declined, node: Apply) -> str:
    at = "" if type(declined.node.op) is type(node.op) else f" at {expression_text(declined.node.outputs[0], 1)}"
    return f"{declined.rule}{at}: {declined.reason}"


def _concerned(node: Apply) -> Sequence[Apply]:
    """The node at which a rule declined, and the convolutions that it reads."""
    return (node, *(each.apply for each in node.inputs if each.apply is not None and isinstance(each.apply.op, Conv)))


def _is_same(node: Apply, other: Apply) -> bool:
    """Whether a node is another, or has come of it: an op of the same class, written at one of its lines."""
    return node is other or (type(node.op) is type(other.op) and not set(node.source).isdisjoint(other.source))


def precision_notes(step: Step) -> tuple[str, ...]:
    """How exact the results of a step are, and what its kernel has to tell of itself."""
    node, notes = step.node, list[str]()
    if node is None or step.choice is None:
        return ()
    dtype = accumulator(node)
    if dtype:
        notes.append(f"sums run in {dtype}")
    name = step.choice.name
    if "winograd" in name:
        notes.append(_WINOGRAD)
    if name in ("conv_fft", "conv_wgrad_fft"):
        notes.append(_FFT)
    if "_split" in step.name:
        notes.append(_SPLIT)
    if name == "cudnn" and config.precision == "tf32" and node.inputs[0].dtype == "float32":
        notes.append(_TF32)
    return (*notes, *(step.kernel.notes if isinstance(step.kernel, LaunchPlan) else ()))


def accumulator(node: Apply) -> str:
    """The dtype that the sums of a node run in; empty for one without sums."""
    op = node.op
    if isinstance(op, Conv):
        return op.spec.accumulator(node.inputs[0].dtype)
    if isinstance(op, ConvChain):
        return op.stages[0].spec.accumulator(node.inputs[0].dtype)
    if isinstance(op, Reduce):
        return _working(op.dtype) if op.kind in ("sum", "prod") else ""
    if isinstance(op, (MatMul, Softmax, LogSoftmax)):
        return _working(node.outputs[0].dtype)
    return ""


def _working(dtype: str) -> str:
    return dtypes.accumulator(dtype) if dtypes.is_float(dtype) else dtype


def determinism_notes(program: PlannedProgram, target: Target) -> tuple[str, ...]:
    """What the bits of a program's results depend on."""
    runs_cudnn = any(step.choice is not None and step.choice.name == "cudnn" for step in program.steps)
    notes = [_bits_text(target, runs_cudnn), _choice_text(target)]
    if any(step.node is not None and isinstance(step.node.op, Random) for step in program.steps):
        notes.append("random numbers come from a counter: the same seed gives the same numbers on every device")
    if target.device == "cpu" and _has_float32_products(program):
        notes.append("float32 products are computed in float32")
    return tuple(notes)


def _bits_text(target: Target, runs_cudnn: bool) -> str:
    no_atomics = "no kernel adds floats in an order that timing decides (there are no atomic additions)"
    if target.device == "cpu":
        threads = f"{target.threads} thread{'s' * (target.threads != 1)}"
        return f"the same inputs give the same bits on every call with {threads}: {no_atomics}"
    if not runs_cudnn or config.deterministic:
        return f"the same inputs give the same bits on every call: {no_atomics}"
    return "cuDNN's plans may add floats in another order on every call: config.deterministic takes only those that do not"


def _choice_text(target: Target) -> str:
    if config.deterministic:
        return "config.deterministic is on: no kernel is chosen by a measurement"
    by = "measured times" if config.selection == "measure" else "expected times, which reckon with measured ceilings"
    if target.device != "cpu" and config.selection != "measure":
        return "kernels are chosen by expected times, which reckon with nominal rates: the same on every device of this kind"
    return (f"kernels are chosen by {by}: another machine may choose others, whose sums are rounded in another order; "
            "config.deterministic lets no choice depend on a measurement")


def _has_float32_products(program: PlannedProgram) -> bool:
    nodes = [step.node for step in program.steps if step.node is not None]
    return any(isinstance(node.op, (Conv, ConvChain, MatMul)) and node.inputs[0].dtype == "float32" for node in nodes)
