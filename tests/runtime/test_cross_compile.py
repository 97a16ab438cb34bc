"""Functions compiled for a GPU that is not here: made, looked at, saved; loaded on a fake one whose memory is the emulator's."""
from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from cudnn_stand_in import NumPyCudnn

import symconv as sc
import symconv.tensor as T
from symconv.codegen.cuda.cubin import read_resources
from symconv.codegen.cuda.kernel import CudaKernel
from symconv.codegen.cuda.nvrtc import compile_kernel
from symconv.codegen.cuda.nvrtc_library import find_nvrtc
from symconv.codegen.cudnn.devices import known_device
from symconv.codegen.cudnn.library import why_not_deviceless
from symconv.codegen.cudnn.plan_list import stand_in
from symconv.codegen.cudnn.plans import load_plan
from symconv.config import config
from symconv.errors import ArgumentError, BackendError
from symconv.runtime.devices import find
from symconv.runtime.devices.emulator import PROPERTIES, EmulatorDevice
from symconv.tensor.nnet import conv2d, relu

needs_nvrtc = pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC, which makes the machine code, is not installed")
SHAPES = (2, 3, 7, 6), (4, 3, 3, 3), (4,)


class FakeGpu(EmulatorDevice):
    """A GPU of devices.json: it runs what the emulator runs, and notes which cubins it was given and what it had to compile."""

    def __init__(self, name):
        super().__init__()
        gpu = known_device(name)
        self.name = "cuda:0"
        self.properties = replace(PROPERTIES, name=gpu.name, arch=gpu.architecture, figures=gpu.text)
        self.cubins, self.compiled = [], []

    def bind(self, launch, spans):
        if isinstance(launch, CudaKernel):
            (self.compiled if launch.cubin is None else self.cubins).append(launch)
        return super().bind(launch, spans)


@pytest.fixture
def gpu(monkeypatch):
    """Puts a fake GPU into the machine."""
    def put(name):
        device = FakeGpu(name)
        monkeypatch.setattr(find, "_device", lambda *_: device)
        return device
    return put


@pytest.fixture
def path(tmp_path):
    return tmp_path / "function.symconv"


def expression():
    x, w, b = T.tensor4("x"), T.tensor4("w"), T.vector("b")
    return [x, w, b], relu(conv2d(x, w, filter_flip=False) + b.dimshuffle("x", 0, "x", "x")).sum(axis=(2, 3))


def given():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def wanted():
    inputs, output = expression()
    return sc.compile(inputs, output)(*given())


def crossed(target="sm_90", **settings):
    inputs, output = expression()
    with config.change(**settings):
        function = sc.compile(inputs, output, device="cuda", target=target)
        function.prepare(*SHAPES)
    return function


@needs_nvrtc
def test_the_kernels_of_a_saved_function_are_not_compiled_where_it_is_loaded(path, gpu, tmp_path):
    crossed(dnn__enabled=False).save(path)
    device = gpu("h200")
    with config.change(cache_dir=str(tmp_path / "empty"), dnn__enabled=False):
        function = sc.load(path, machine_code=True)
        np.testing.assert_allclose(function(*given()), wanted(), rtol=1e-4, atol=1e-4)
        assert not device.compiled
        assert device.cubins
        for launch in device.cubins:
            assert launch.name in read_resources(launch.cubin)
        assert "machine code from the file" in function.explain()


@needs_nvrtc
def test_plans_of_cudnn_are_saved_and_go_first(path, gpu):
    here = NumPyCudnn(("other", 0), version="9")
    with stand_in(NumPyCudnn(("saved", 128), version="9")):
        crossed(dnn__enabled=True).save(path)
    gpu("h200")
    right = wanted()
    with stand_in(here), config.change(dnn__enabled=True):
        function = sc.load(path, machine_code=True)
        np.testing.assert_allclose(function(*given()), right, rtol=1e-4, atol=1e-4)
        assert set(here.ran) == {"saved"}
        assert "cuDNN's plan saved, nchw, padding as is, workspace 128 bytes, from the file" in function.explain()


@needs_nvrtc
def test_a_plan_of_the_file_that_is_refused_is_followed_by_one_made_here(path, gpu, tmp_path):
    here = NumPyCudnn(("other", 0), version="9", refused=("saved",))
    with stand_in(NumPyCudnn(("saved", 128), version="9")):
        crossed(dnn__enabled=True).save(path)
    gpu("h200")
    right = wanted()
    with stand_in(here), config.change(dnn__enabled=True, cache_dir=str(tmp_path / "empty")):
        np.testing.assert_allclose(sc.load(path, machine_code=True)(*given()), right, rtol=1e-4, atol=1e-4)
    assert set(here.ran) == {"other"}


@needs_nvrtc
def test_code_for_another_architecture_is_made_anew_and_said(path, gpu):
    crossed(dnn__enabled=False).save(path)
    device = gpu("a100")
    with config.change(dnn__enabled=False):
        with pytest.warns(UserWarning, match=r"for NVIDIA H200 \(sm_90\)[\s\S]*a GPU of sm_80"):
            function = sc.load(path, machine_code=True)
        np.testing.assert_allclose(function(*given()), wanted(), rtol=1e-4, atol=1e-4)
    assert device.compiled
    assert not device.cubins


@needs_nvrtc
@pytest.mark.parametrize(("version", "name", "reason"), [("8", "h200", "of cuDNN 9, here is 8"),
                                                         ("9", "h200-small", "132 multiproc")])
def test_plans_of_another_cudnn_or_gpu_are_made_anew_and_said(path, gpu, version, name, reason):
    with stand_in(NumPyCudnn(("saved", 128), version="9")):
        crossed("H200", dnn__enabled=True).save(path)
    device = gpu("h200")
    if name == "h200-small":
        members = json.loads(device.properties.figures) | {"multiProcessorCount": 66}
        device.properties = replace(device.properties, figures=json.dumps(members))
    here = NumPyCudnn(("made here", 0), version=version)
    with stand_in(here), config.change(dnn__enabled=True):
        with pytest.warns(UserWarning, match=reason):
            function = sc.load(path, machine_code=True)
        function(*given())
    assert set(here.ran) == {"made here"}
    assert device.cubins


@needs_nvrtc
def test_without_machine_code_all_is_made_anew(path, gpu):
    crossed(dnn__enabled=False).save(path)
    device = gpu("h200")
    with config.change(dnn__enabled=False):
        sc.load(path, machine_code=False)(*given())
        with pytest.warns(UserWarning, match="holds machine code for a GPU, which is not used"):
            sc.load(path)(*given())
    assert device.compiled
    assert not device.cubins


@needs_nvrtc
def test_calling_it_here_is_one_error_that_says_what_it_is_for():
    function = crossed(dnn__enabled=False)
    with pytest.raises(BackendError, match=r"compiled for NVIDIA H200 \(sm_90\), which stands for 'sm_90'[\s\S]*save\(path\)"):
        function(*given())
    with pytest.raises(BackendError, match="compiled for NVIDIA H200"):
        pickle.loads(pickle.dumps(function))(*given())


@needs_nvrtc
def test_it_can_be_looked_at():
    function = crossed(dnn__enabled=False)
    text = function.explain()
    assert "runs conv_" in text
    assert "kernels and 0 plans of cuDNN for NVIDIA H200 (sm_90) are made" in text
    assert "sc_conv" in "".join(function.sources())
    assert "Conv" in sc.debugprint(function, file="str")


@needs_nvrtc
def test_static_shapes_are_made_at_once():
    x = T.tensor("x", "float32", (2, 3))
    function = sc.compile([x], T.exp(x), device="cuda", target="A100")
    assert len(function.machine_code().cubins) == 1
    assert function.machine_code().architecture == 80
    (source,), (cubin,) = function.sources().values(), function.machine_code().cubins.values()
    assert cubin == compile_kernel(source, 80)
    assert cubin != compile_kernel(source, 90)


@needs_nvrtc
def test_the_code_of_all_programs_is_there():
    x = T.matrix("x", dtype="float32")
    function = sc.compile([x], x.sum(axis=0), device="cuda", target="H200")
    shapes = (3, 4), (50_000, 3)  # summed by kernels of their own
    for shape in shapes:
        function.prepare(shape)
    keys = [set(program.code.cubins) for program in function.programs]
    assert len(keys) == len(shapes)
    assert keys[0] != keys[1]
    assert set(function.machine_code().cubins) == keys[0] | keys[1]
    assert list(function.machine_code().cubins.values()) == [compile_kernel(each, 90) for each in function.sources().values()]


def test_a_target_is_for_cuda_and_must_be_known():
    x = T.vector("x")
    with pytest.raises(ArgumentError, match=r'device="cuda"'):
        sc.compile([x], x, target="sm_90")
    with pytest.raises(ArgumentError, match="rtx4090"):
        sc.compile([x], x, device="cuda", target="sm_42")


@needs_nvrtc
@pytest.mark.parametrize("part", ["code/0.bin", "digest", "gpu", "number", "plan"])
def test_damaged_machine_code_is_one_error(path, tmp_path, part, gpu):
    with stand_in(NumPyCudnn(("saved", 128), version="9")):
        crossed(dnn__enabled=True).save(path)
    damaged = tmp_path / "damaged.symconv"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(damaged, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == part:
                data = data[:100] + b"X" + data[101:]
            if name == "function.json":
                data = json.dumps(_damage(json.loads(data), part)).encode()
            new.writestr(name, data)
    gpu("h200")
    with pytest.raises(ArgumentError):
        sc.load(damaged, machine_code=True)


def _damage(document, part):
    code = document["machine_code"]
    if part == "digest":
        next(iter(code["plans"].values()))[1] = "0" * 64
    if part == "gpu":
        code["gpu"] = "{}"
    if part == "number":
        next(iter(code["cubins"].values()))[0] = 10**6
    if part == "plan":  # a cubin where a plan should be, its digest right
        code["plans"] = {key: next(iter(code["cubins"].values())) for key in code["plans"]}
    return document


@needs_nvrtc
@pytest.mark.skipif(why_not_deviceless() is not None, reason=f"cuDNN cannot be asked: {why_not_deviceless()}")
@pytest.mark.parametrize("target", ["sm_90", "RTX 4090"])
def test_plans_of_the_real_cudnn_are_in_the_file_and_load_again(path, target):
    x, w = T.tensor4("x", "float16"), T.tensor4("w", "float16")
    with config.change(dnn__enabled=True):
        function = sc.compile([x, w], relu(conv2d(x, w, border_mode=1, filter_flip=False)), device="cuda", target=target)
        function.prepare((2, 16, 9, 9), (32, 16, 3, 3))
    function.save(path)
    with zipfile.ZipFile(path) as archive:
        code = json.loads(archive.read("function.json"))["machine_code"]
        ((key, (number, _)),) = code["plans"].items()
        data = archive.read(f"code/{number}.bin")
    assert code["cudnn"].startswith("9")
    assert "+relu operands none" in key
    gpu = known_device(target)
    plan, graph = load_plan(data, gpu)
    assert plan.device == str(gpu)
    assert graph.get_workspace_size() == plan.workspace_bytes
