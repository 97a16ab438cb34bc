"""From plans to launches: every layout, padding form, kind and chain, run by a stand-in for cuDNN between emulated conversions."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conv_oracle import TOLERANCE, expected, op_and_inputs, operands
from cuda_launching import operand_of, run_plan
from cudnn_stand_in import NumPyCudnn, chained

from symconv.codegen.cuda.composing import self_contained_plan
from symconv.codegen.cuda.kernel import CudaKernel, CudnnLaunch
from symconv.codegen.cudnn.devices import known_device
from symconv.codegen.cudnn.fusion import fusion_of
from symconv.codegen.cudnn.implementation import CudnnConvolution
from symconv.codegen.cudnn.launches import lies_as_wanted, make_launches
from symconv.codegen.cudnn.padding import padding_forms
from symconv.codegen.cudnn.plan_list import stand_in
from symconv.codegen.cudnn.plans import CudnnPlan
from symconv.codegen.kernel import Operand, Problem
from symconv.config import config
from symconv.graph.types import TensorType
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.epilogue import Epilogue
from symconv.ops.layout import CHANNELS_LAST, Layout, array_to_blocked
from symconv.ops.scalar import Instruction, ScalarProgram
from symconv.ops.spec import Kind
from symconv.runtime.targets import make_target
from symconv.target import Target

GPU = known_device("h200")
TARGET = Target("cuda", arch=90, gpu=GPU.text, place="cuda:0")
SIZES = ["n2 c4 h7 w6 k6 r3 s2 u2x1 p0:1x2:0 l1x2 g2", "n1 c3 w11 k4 s3 u3 p1:4", "n2 c3 d3 h4 w5 k2 t2 r3 s1 p0:1x1x0",
         "n1 c2 h6 w5 k3 r3 s3 u2 p3:0x0:2 flip", "n2 c8 h6 w6 k8 r3 s3 p1 g8", "n1 c1 h1 w1 k1 r1 s1"]


def epilogue(dtype):
    """+bias+residual+relu"""
    body = (Instruction("add", (0, 1), dtype), Instruction("add", (3, 2), dtype), Instruction("relu", (4,), dtype))
    return Epilogue(ScalarProgram((dtype,) * 3, body, (5,)), ("channel", "full"))


def problem_of(op, inputs, shape, dtype):
    return Problem(op, tuple(map(operand_of, inputs)), (Operand.contiguous(dtype, shape),))


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("sizes", SIZES)
def test_every_form_is_the_convolution(sizes, kind, layout):
    conv = ConvProblem.parse(f"{kind.value} {sizes} f32")
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    fused = epilogue("float32") if kind is not Kind.WGRAD else None
    op, inputs = op_and_inputs(conv, x, w, y, fused)
    more = []
    if fused is not None:
        rng = np.random.default_rng(1)
        more = [rng.standard_normal(wanted.shape[1]).astype(np.float32), rng.standard_normal(wanted.shape).astype(np.float32)]
        wanted = np.maximum(wanted + more[0].reshape(1, -1, *(1,) * (wanted.ndim - 2)) + more[1], 0)
        conv = replace(conv, epilogue=str(fused))
    problem = problem_of(op, [*inputs, *more], wanted.shape, "float32")
    for form in padding_forms(conv):
        plan = CudnnPlan(str(conv), str(GPU), layout, "", form.name, "engine", 40, (), b"")
        launches = make_launches(problem, conv, fusion_of(fused), plan, ())
        cudnn = NumPyCudnn()
        with stand_in(cudnn):
            (found,) = run_plan(launches, problem, [*inputs, *more])
        assert cudnn.ran == ["engine"]
        assert (abs(found - wanted) <= TOLERANCE["float32"] * (magnitude + 10)).all(), form.name


def test_what_lies_right_is_not_copied():
    conv = ConvProblem.parse("fprop n2 c4 h5 w5 k6 r3 s3 f32")
    x, w, y = operands(conv)
    op, inputs = op_and_inputs(conv, x, w, y)
    with stand_in(NumPyCudnn()):
        built = CudnnConvolution().build(problem_of(op, inputs, conv.y_shape, "float32"), TARGET)
    (launch,) = built.launches
    assert isinstance(launch, CudnnLaunch)
    assert launch.buffers == (0, 1, 2)
    assert built.workspace_bytes == 0


def test_channels_last_views_are_taken_as_they_are():
    conv = ConvProblem.parse("fprop n2 c4 h5 w5 k6 r3 s3 f16")
    x, w, y = operands(conv)
    op, (x, w) = op_and_inputs(conv, x, w, y)
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    cudnn, problem = CudnnConvolution(), problem_of(op, [last, w], conv.y_shape, "float16")
    assert [cudnn.takes_strides(problem, position) for position in (0, 1)] == [True, True]
    assert lies_as_wanted(problem.inputs[0], "nhwc")
    with stand_in(NumPyCudnn()):
        assert [each.position for each in cudnn.prepare(problem, TARGET)] == [1]  # the filters
        built = self_contained_plan(cudnn, problem, problem, (), TARGET)
        assert [type(each) for each in built.launches] == [CudaKernel, CudnnLaunch, CudaKernel]  # the filters, and the result
        (found,) = run_plan(built, problem, [last, w])
    np.testing.assert_allclose(found.astype(np.float64), expected(conv, x, w, y)[0], rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("blocks", [(CHANNELS_LAST, CHANNELS_LAST), (CHANNELS_LAST, 0), (0, CHANNELS_LAST)])
@pytest.mark.parametrize("sizes", SIZES[:3])
def test_tensors_with_channels_last(sizes, blocks, kind):
    conv = ConvProblem.parse(f"{kind.value} {sizes} f32")
    x, w, y = operands(conv)
    wanted, magnitude = expected(conv, x, w, y)
    fused = epilogue("float32") if kind is not Kind.WGRAD and conv.spec.ndim < 3 else None
    op, inputs = op_and_inputs(conv, x, w, y, fused)
    op = replace(op, layout=Layout(*blocks))
    more = []
    if fused is not None:
        rng = np.random.default_rng(1)
        bias, residual = (rng.standard_normal(shape).astype(np.float32) for shape in (wanted.shape[1], wanted.shape))
        wanted = np.maximum(wanted + bias.reshape(1, -1, *(1,) * (wanted.ndim - 2)) + residual, 0)
        more = [bias, in_memory(residual, op.block(kind.produces))]
    inputs = [in_memory(array, op.block(role)) for array, role in zip(inputs, kind.reads, strict=False)] + inputs[2:] + more
    problem = problem_of(op, inputs, in_memory(wanted, op.block(kind.produces)).shape, "float32")
    cudnn, implementation = NumPyCudnn(), CudnnConvolution()
    with stand_in(cudnn):
        assert implementation.serves(op)
        assert implementation.refuse(problem, TARGET) is None
        built = self_contained_plan(implementation, problem, problem, (), TARGET)
        (found,) = run_plan(built, problem, inputs)
    assert {launch.plan.layout for launch in cudnn.launches} == {"nhwc"}
    assert (abs(found - in_memory(wanted, op.block(kind.produces))) <= TOLERANCE["float32"] * (magnitude.max() + 10)).all()


def in_memory(array, block):
    return np.ascontiguousarray(array_to_blocked(array, block))


def test_a_chain_with_channels_last_converts_its_filters_alone():
    conv = ConvProblem.parse("fprop n2 c4 h5 w5 k6 r3 s3 f16")
    op, (x, w) = op_and_inputs(conv, *operands(conv))
    op = replace(op, layout=Layout(CHANNELS_LAST, CHANNELS_LAST))
    inputs = [in_memory(x, CHANNELS_LAST), w]
    problem = problem_of(op, inputs, in_memory(np.zeros(conv.y_shape), CHANNELS_LAST).shape, "float16")
    with stand_in(NumPyCudnn()):
        built = CudnnConvolution().build(problem, TARGET)
    assert [type(each) for each in built.launches] == [CudnnLaunch]


def test_strided_filters_are_brought_to_channels_last_in_one_copy():
    conv = ConvProblem.parse("fprop n2 c4 h5 w5 k6 r3 s3 f16")
    x, w, y = operands(conv)
    op, (x, w) = op_and_inputs(conv, x, w, y)
    turned = w[:, :, ::-1]
    cudnn, problem = CudnnConvolution(), problem_of(op, [x, turned], conv.y_shape, "float16")
    assert cudnn.takes_strides(problem, 1)
    with stand_in(NumPyCudnn()):
        (found,) = run_plan(self_contained_plan(cudnn, problem, problem, (), TARGET), problem, [x, turned])
    wanted, _ = expected(conv, x, np.ascontiguousarray(turned), y)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2e-3, atol=4e-3)


def refusal(text, target=TARGET, cudnn=None, fused=None, **settings):
    conv = ConvProblem.parse(text)
    op, inputs = op_and_inputs(conv, *operands(conv), fused)
    more = [] if fused is None else [np.ones(conv.y_shape[1], conv.dtype), np.ones(conv.result_shape, conv.dtype)]
    problem = problem_of(op, [*inputs, *more], conv.result_shape, conv.dtype)
    with stand_in(cudnn or NumPyCudnn()), config.change(**settings):
        return CudnnConvolution().refuse(problem, target)


def test_refusals_name_their_reasons():
    plain = "fprop n1 c3 h5 w5 k2 r3 s3 f32"
    assert refusal(plain) is None
    assert refusal(plain, dnn__enabled=False) == "config.dnn.enabled is False"
    assert refusal(plain, cudnn=NumPyCudnn(missing="cuDNN: not found in /opt")) == "cuDNN: not found in /opt"
    assert "figures" in refusal(plain, target=Target("cuda", arch=90))
    assert "no elements" in refusal("fprop n0 c3 h5 w5 k2 r3 s3 f32")
    assert "float64" in refusal("fprop n1 c3 h5 w5 k2 r3 s3 f64", fused=epilogue("float64"))
    mixed = Epilogue(ScalarProgram(("float32", "float64", "float32"), epilogue("float32").program.body, (5,)), ("channel", "full"))
    assert "operands of the convolution's dtype" in refusal(plain, fused=mixed)


def test_without_a_stand_in_the_emulator_refuses():
    conv = ConvProblem.parse("fprop n1 c3 h5 w5 k2 r3 s3 f32")
    op, inputs = op_and_inputs(conv, *operands(conv))
    problem = problem_of(op, inputs, conv.y_shape, "float32")
    assert "generated kernels only" in CudnnConvolution().refuse(problem, Target("emulator", arch=90, gpu=GPU.text))


def test_the_chain_of_the_stand_in_is_the_epilogue():
    made, value = epilogue("float64"), np.linspace(-2, 2, 5).reshape(1, 1, 5)
    bias, residual = np.array([0.5]), -value
    (wanted,) = made.program.evaluate(value, bias.reshape(1, 1, 1), residual)
    np.testing.assert_allclose(chained(fusion_of(made), value, [bias.reshape(1, 1, 1), residual]), wanted)


def refused_epilogue(op, size, gpu="h200"):
    """What the target says of relu, exp, … behind a 3x3 convolution of so many pixels and 256 channels."""
    target = make_target("cuda", gpu)
    conv = ConvProblem.parse(f"fprop n8 c256 h{size} w{size} k256 r3 s3 p1 f32")
    types = [TensorType("float32", shape) for shape in (conv.x_shape, conv.w_shape, conv.y_shape)]
    program = ScalarProgram(("float32",), (Instruction(op, (0,), "float32"),), (1,))
    return target.refuse_epilogue(Conv(conv.kind, conv.spec), types[:2], types[2], Epilogue(program))


def test_what_cudnn_does_not_fuse_stays_outside_where_cudnn_is_faster_so():
    with stand_in(NumPyCudnn()):
        assert refused_epilogue("tanh", 56) is None
        assert "cuDNN, which does not take it, is faster" in refused_epilogue("exp", 56)
        with config.change(dnn__enabled=False):
            assert refused_epilogue("exp", 56) is None
        with config.change(dnn__enabled=True):
            assert "not asked for the epilogue step exp" in refused_epilogue("exp", 1)
    with stand_in(NumPyCudnn(missing="not here")):
        assert refused_epilogue("exp", 56) is None
