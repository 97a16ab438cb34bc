"""`refuse` against the real cuDNN, asked without a GPU; chains, padding forms and layouts against oracles that need no cuDNN."""
from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conv_oracle import expected, operands

from symconv.codegen.cudnn.devices import known_device, known_devices
from symconv.codegen.cudnn.fusion import Fusion, Step, fusion_of, parse_fusion
from symconv.codegen.cudnn.graph import NCHW, NHWC, layout_strides
from symconv.codegen.cudnn.library import available, findings, load_frontend, why_not_deviceless
from symconv.codegen.cudnn.padding import EXPLICIT, padding_forms
from symconv.codegen.cudnn.plan_list import first_plan, serialize_plans
from symconv.codegen.cudnn.plans import CudnnPlan, load_plan, supported_graph
from symconv.codegen.cudnn.support import Requirements, choose_layout, refuse
from symconv.config import config
from symconv.errors import ArgumentError, BackendError
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import CHANNELS_LAST, Layout
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind

PROBLEMS = Path(__file__).parent.parent.parent / "problems"
H200, T4 = known_device("h200"), known_device("t4")
needs_cudnn = pytest.mark.skipif(why_not_deviceless() is not None, reason=f"cuDNN cannot be asked: {why_not_deviceless()}")


def all_problems():
    texts = {line.split("#")[0].strip() for path in sorted(PROBLEMS.glob("*.txt")) for line in path.read_text().splitlines()}
    kinds = tuple(kind.value for kind in Kind)
    full = {each for text in texts if text for each in ([text] if text.startswith(kinds) else [f"{kind} {text}" for kind in kinds])}
    return [ConvProblem.parse(text) for text in sorted(full)]


def is_taken(problem, device, wanted):
    frontend = load_frontend()
    chain = parse_fusion(problem.epilogue, problem.dtype)
    layouts = (choose_layout(problem, device, chain).layout,) if refuse(problem, device, wanted) is None else (NCHW, NHWC)
    for layout in layouts:
        try:
            supported_graph(frontend, device, padding_forms(problem)[0], chain, layout, wanted)
        except (RuntimeError, ValueError, frontend.cudnnGraphNotSupportedError):
            continue
        return True
    return False


def can_be_asked(problem):
    usual = problem.layout is None and problem.spec.compute_dtype is None and problem.result_dtype == problem.dtype
    return usual and isinstance(parse_fusion(problem.epilogue, problem.dtype), Fusion)


def disagreements(problems, devices, wanted=Requirements()):  # noqa: B008 - frozen
    wrong = []
    for problem in problems:
        for device in devices:
            reason = refuse(problem, device, wanted)
            if is_taken(problem, device, wanted) != (reason is None):
                wrong.append(f"{problem} on {device}: refuse says {reason}")
    return wrong


@needs_cudnn
@pytest.mark.parametrize("name", known_devices())
def test_refuse_agrees_with_cudnn(name):
    """Every problem of every file on every GPU: taken where `refuse` says so, refused where it says not."""
    assert not disagreements([each for each in all_problems() if can_be_asked(each)], [known_device(name)])


@needs_cudnn
@pytest.mark.parametrize("name", known_devices())
def test_refuse_agrees_for_other_kinds_and_dtypes(name):
    """The same sizes as another kind, in another dtype, turned around: each such problem on one of the GPUs."""
    number = list(known_devices()).index(name)
    others = [each for position, each in enumerate(other_problems()) if position % len(known_devices()) == number]
    assert not disagreements(others, [known_device(name)])


@needs_cudnn
@pytest.mark.parametrize("wanted", [{"tf32": True}, {"deterministic": True}, {"workspace_bytes": 1 << 24}])
def test_refuse_agrees_under_requirements(wanted):
    problems = [each for each in all_problems() if can_be_asked(each)]
    sample = random.Random(4).sample(problems, 40) + [each for each in problems if each.epilogue]
    assert not disagreements(sample, [known_device("h200"), known_device("rtx4090"), T4], Requirements(**wanted))


@needs_cudnn
def test_tensors_with_channels_last_are_taken_in_every_dtype():
    sample = random.Random(5).sample(other_problems(), 150)
    last = [replace(each, layout=Layout(CHANNELS_LAST, CHANNELS_LAST)) for each in sample if each.layout is None]
    assert not disagreements([each for each in last if refuse(each, H200, Requirements()) is None], [H200])


def other_problems():
    """Problems that are in no file: kinds, dtypes and directions of the kernel exchanged."""
    files = [each for each in all_problems() if can_be_asked(each)]
    found = {}
    for each, kind, dtype, flip in itertools.product(files, Kind, ("float16", "bfloat16", "float32", "float64"), (False, True)):
        epilogue = each.epilogue if kind is each.kind else "" if flip else {Kind.DGRAD: "+gt+where"}.get(kind, "")
        other = replace(each, kind=kind, dtype=dtype, result_dtype=dtype, spec=replace(each.spec, flip=flip), epilogue=epilogue)
        found[str(other)] = other
    for each in files:
        found.pop(str(each), None)
    return list(found.values())


@needs_cudnn
def test_a_wrong_refusal_is_found(monkeypatch):
    problem = ConvProblem.parse("fprop n2 c8 h9 w9 k8 r3 s3 p1 f32")
    monkeypatch.setitem(globals(), "refuse", lambda *_: "nothing runs")
    assert len(disagreements([problem], [H200])) == 1


@needs_cudnn
def test_plans_are_kept_and_loaded_again(tmp_path):
    problem = ConvProblem.parse("fprop n2 c8 h9 w9 k8 r3 s3 u2 p0:1 f16")
    with config.change(cache_dir=str(tmp_path / "cache")):
        plan = first_plan(problem, H200)
        assert plan.layout == NHWC
        assert first_plan(problem, H200) == plan
        data = serialize_plans([problem], H200)[str(problem)]
        loaded, graph = load_plan(data, H200)
        assert loaded == plan
        assert graph.get_workspace_size() == plan.workspace_bytes
        with pytest.raises(BackendError, match="another GPU"):
            load_plan(data, T4)


def test_what_is_not_there_is_named():
    text = "; ".join(findings())
    assert "libcuda.so.1" in text
    assert "cupy" in text
    assert (available() is None) or "libcuda.so.1" in available()


@pytest.mark.parametrize(("text", "reason"), [
    ("fprop n0 c3 h5 w5 k2 r3 s3 f32", "no elements"), ("fprop n1 c3 h5 w5 k2 r3 s3 bf16", "no bfloat16"),
    ("fprop n1 c3 h5 w5 k2 r3 s3 f32@f64", "summed as usual"), ("dgrad n1 c3 h5 w5 k2 r3 s3 f64 +gt+where", "float64"),
    ("fprop n1 c3 h5 w5 k2 r3 s3 flip f32 +bias+residual", "flipped"), ("fprop n1 c3 h5 w5 k2 r3 s3 f32 +bias+clip", "clip"),
])
def test_reasons(text, reason):
    assert reason in refuse(ConvProblem.parse(text), T4, Requirements())


def test_an_epilogue_and_its_text_are_one_chain():
    program = ScalarProgram(("float32",) * 3, (
        Instruction("add", (0, 1), "float32"), Instruction("constant", (), "float32", 0.0), Instruction("gt", (2, 4), "bool"),
        Instruction("where", (5, 3, 4), "float32")), (6,))
    epilogue = Epilogue(program, ("channel", "full"))
    assert fusion_of(epilogue) == parse_fusion(str(epilogue), "float32")
    assert fusion_of(epilogue).steps == (Step("bias", 0), Step("relu_gradient", 1))


def test_another_epilogue_is_refused():
    program = ScalarProgram(("float32",), (Instruction("exp", (0,), "float32"),), (1,))
    assert "exp" in fusion_of(Epilogue(program))


@pytest.mark.parametrize("text", ["n2 c4 h9 w8 k6 r3 s2 u2x1 p0:1x2:0 l1x2 g2 f64", "n1 c2 w11 k3 s3 u3 p1:4 f64",
                                  "n1 c2 h6 w5 k3 r3 s3 u2 p3:0x0:2 flip f64"])
@pytest.mark.parametrize("kind", list(Kind))
def test_padding_forms_are_the_same_convolution(kind, text):
    problem = ConvProblem.parse(f"{kind.value} {text}")
    x, w, y = operands(problem)
    right, _ = expected(problem, x, w, y)
    for form in padding_forms(problem):
        larger = {role: padded(form, role, array) for role, array in (("x", x), ("w", w), ("y", y))}
        result, _ = expected(form.problem, larger["x"], larger["w"], larger["y"])
        around = zip(result.shape[2:], margins(form, kind.produces), strict=True)
        cut = tuple(slice(low, size - high) for size, (low, high) in around)
        np.testing.assert_allclose(result[(slice(None), slice(None), *cut)].reshape(right.shape), right, atol=1e-12)
    assert form.name == EXPLICIT


def margins(form, role):
    return form.margins_of(role) if role != "w" else ((0, 0),) * form.problem.spec.ndim


def padded(form, role, array):
    shape = {"x": form.problem.x_shape, "w": form.problem.w_shape, "y": form.problem.y_shape}[role]
    inside = array.reshape(*array.shape[:2], *(1,) * (len(shape) - array.ndim), *array.shape[2:])
    return np.pad(inside, [(0, 0), (0, 0), *margins(form, role)])


def test_strides_are_numpys():
    array = np.zeros((2, 5, 6, 3), np.int8).transpose(0, 3, 1, 2)
    assert layout_strides(array.shape, NHWC) == array.strides


def test_an_unknown_gpu_is_an_error():
    with pytest.raises(ArgumentError, match="h200"):
        known_device("sm_10")


def test_a_damaged_plan_is_an_error():
    with pytest.raises(BackendError, match="no plan"):
        CudnnPlan.from_bytes(b"something else")
