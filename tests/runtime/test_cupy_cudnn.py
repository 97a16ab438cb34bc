"""What executes cuDNN's plans on a GPU, on a frontend that notes what it is told."""
from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from conv_oracle import op_and_inputs, operands
from cuda_launching import operand_of
from cudnn_stand_in import NumPyCudnn

from symconv.codegen.cuda.kernel import workspace_part
from symconv.codegen.cudnn.devices import DeviceProperties, known_device
from symconv.codegen.cudnn.implementation import CudnnConvolution
from symconv.codegen.cudnn.plan_list import stand_in
from symconv.codegen.cudnn.plans import PlanRefusedError
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.conv_problem import ConvProblem
from symconv.runtime.devices import cupy_cudnn
from symconv.target import Target

GPU = known_device("h200")


class NotSupportedError(Exception):
    pass


class Frontend:
    """The package `cudnn`, as far as executing plans goes."""

    cudnnGraphNotSupportedError = NotSupportedError  # noqa: N815 - the package's own name
    data_type = SimpleNamespace(FLOAT="f32", HALF="f16")

    def __init__(self):
        self.calls, self.refuses = [], None

    def create_handle(self):
        return "handle"

    def set_stream(self, *, handle, stream):
        self.calls.append(("stream", handle, stream))

    def pygraph(self, **options):
        return self

    def deserialize(self, handle, data):
        self.calls.append(("plan", handle, data))
        if self.refuses == "deserialize":
            raise NotSupportedError("another version made it")

    def execute(self, pack, workspace, handle):
        if self.refuses == "execute":
            raise RuntimeError("CUDNN_STATUS_EXECUTION_FAILED")
        self.calls.append(("execute", handle, pack, workspace))


@pytest.fixture
def frontend(monkeypatch):
    made = Frontend()
    monkeypatch.setattr(cupy_cudnn, "load_frontend", lambda: made)
    monkeypatch.setattr("symconv.codegen.cudnn.plans.load_frontend", lambda: made)
    return made


def launch():
    """FPROP with 64 bytes of workspace."""
    conv = ConvProblem.parse("fprop n2 c4 h5 w5 k6 r3 s3 f32")
    op, inputs = op_and_inputs(conv, *operands(conv))
    problem = Problem(op, tuple(map(operand_of, inputs)), (Operand.contiguous("float32", conv.y_shape),))
    with stand_in(NumPyCudnn(("engine", 64))):
        (found,) = CudnnConvolution().build(problem, Target("cuda", arch=90, gpu=GPU.text, place="cuda:0")).launches
    return found


def bind(made):
    """On addresses 1000, 1001, … in the order of the launch's buffers."""
    executor = cupy_cudnn.CudnnExecutor(GPU.text, 77)
    return executor.bind(made, range(len(made.buffers)), lambda span: SimpleNamespace(ptr=1000 + span))


def test_pointers_go_by_uid_and_the_workspace_behind_them(frontend):
    made = launch()
    assert made.buffers == (0, 1, 2, workspace_part(0))
    assert bind(made)() is None
    assert frontend.calls == [("stream", "handle", 77), ("plan", "handle", b"nothing"),
                              ("execute", "handle", {3: 1000, 1: 1001, 2: 1002}, 1003)]


@pytest.mark.parametrize(("when", "words"), [("deserialize", "another version made it"), ("execute", "EXECUTION_FAILED")])
def test_what_cudnn_refuses_is_a_refusal(frontend, when, words):
    frontend.refuses = when
    with pytest.raises(PlanRefusedError, match=words):
        bind(launch())()


def test_the_figures_of_a_gpu_have_every_member_that_cudnn_wants():
    known = json.loads(GPU.text)
    runtime = SimpleNamespace(deviceGetAttribute=lambda which, number: {75: 9, 76: 0, 16: 132}.get(which, 1000 + which),
                              driverGetVersion=lambda: 13000)
    told = cupy_cudnn.figures_of(runtime, 0, "NVIDIA H200", 10**9)
    assert set(json.loads(told)) == set(known)
    found = DeviceProperties.parse(told)
    assert (found.name, found.architecture, found.processors, found.memory_bytes) == ("NVIDIA H200", 90, 132, 10**9)
