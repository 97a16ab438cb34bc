"""Functions saved to files and loaded: the same answers, state, options; nothing runs; damaged files are one error."""
from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from op_cases import OTHERS, cases
from random_graphs import RandomGraph
from test_every_gradient import CASES

import symconv as sc
import symconv.tensor as T
from symconv.errors import ArgumentError, InternalError
from symconv.runtime.encoding import _classes


def vector(*values):
    return np.array(values, np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "function.symconv"


def reloaded(function, path, **options):
    function.save(path)
    return sc.load(path, **options)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed, path):
    graph = RandomGraph(seed)
    function = reloaded(sc.compile(list(graph.inputs), graph.outputs, mode="reference", on_unused_input="ignore"), path)
    for found, wanted in zip(function(*graph.inputs.values()), graph.expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_every_op(name, path):
    build, points = CASES[name]
    inputs = [T.tensor(f"x{number}", "float64", point.shape) for number, point in enumerate(points)]
    function = sc.compile(inputs, build(*inputs), mode="reference")
    np.testing.assert_array_equal(reloaded(function, path)(*points), function(*points))


@pytest.mark.parametrize("name", OTHERS)
def test_every_op_without_a_gradient(name, path):
    case = cases()[name]()
    function = sc.compile(list(case.inputs), list(case.outputs), mode="reference", on_unused_input="ignore")
    for found, wanted in zip(reloaded(function, path)(*case.arrays), function(*case.arrays), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_two_classes_of_one_name_are_an_error(monkeypatch):
    twin = dataclass(type("Softmax", (), {"__module__": "symconv.ops.pooling"}))
    monkeypatch.setattr("symconv.ops.pooling.Softmax", twin, raising=False)
    with pytest.raises(InternalError, match=r"symconv\.ops\.pooling\.Softmax from symconv\.ops\.softmax\.Softmax"):
        _classes.__wrapped__()


def test_state_updates_givens_defaults_and_forms(path):
    x, factor, other = T.vector("x"), T.scalar("factor"), T.vector("other")
    state = sc.shared(vector(1, 2), name="state")
    counter = sc.shared(0, name="counter")
    counter.default_update = counter + 1
    outputs = {"sum": (x * factor + state).sum(), "pair": [other, counter]}
    function = sc.compile([x, sc.In(factor, value=np.float32(3))], outputs["sum"], updates=[(state, state + x)],
                          givens=[(other, x * 2)], name="step")
    function(vector(1, 1))
    again = reloaded(function, path)
    assert again.name == "step"
    assert float(again(vector(0, 1))) == float(function(vector(0, 1))) == 8.0
    mine = {each.name: each for each in again.shared_variables}
    np.testing.assert_array_equal(mine["state"].get_value(), state.get_value())
    assert mine["state"] is not state


@pytest.mark.parametrize("form", ["none", "single", "list", "tuple", "dict"])
def test_forms_of_outputs(form, path):
    x = T.vector("x")
    outputs = {"none": None, "single": x * 2, "list": [x * 2, sc.Out(x)], "tuple": (x,), "dict": {"a": x, "b": x + 1}}[form]
    function = sc.compile([x], outputs, on_unused_input="ignore")
    found, wanted = reloaded(function, path)(vector(1, 2)), function(vector(1, 2))
    assert type(found) is type(wanted)
    assert str(found) == str(wanted)


def test_default_updates_come_along(path):
    counter = sc.shared(np.float32(5), name="counter")
    counter.default_update = counter + 1
    function = reloaded(sc.compile([], counter * 1), path)
    assert [float(function()) for _ in range(3)] == [5, 6, 7]


def test_modes_and_devices(path):
    x = T.vector("x")
    function = sc.compile([x], T.tanh(x) * 2, mode=sc.Mode("mine", exclude=("fuse_elementwise",)))
    again = reloaded(function, path, device="emulator")
    assert again.mode == function.mode
    assert again.device == "emulator"
    np.testing.assert_allclose(again(vector(1, 2)), function(vector(1, 2)), rtol=1e-6)


def test_a_long_chain(path):
    x = T.vector("x")
    value = x
    for _ in range(3000):
        value = value + 1
    assert reloaded(sc.compile([x], value, mode="fast_compile"), path)(vector(1))[0] == 3001


def test_saving_fails_as_a_whole(path, monkeypatch):
    x = T.vector("x")
    sc.compile([x], x * 2).save(path)
    before = path.read_bytes()
    monkeypatch.setattr("symconv.runtime.saving._write", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    with pytest.raises(OSError, match="the disk is full"):
        sc.compile([x], x * 3).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


class Boom:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("code of the file ran",)


def test_nothing_in_a_file_is_run(path, tmp_path):
    x = T.vector("x")
    sc.compile([x], x * np.arange(3, dtype=np.float32)).save(path)
    evil = tmp_path / "evil.symconv"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(evil, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".npy"):
                array = tmp_path / "array.npy"
                np.save(array, np.array([Boom()], object), allow_pickle=True)
                data = array.read_bytes()
            new.writestr(name, data)
    with pytest.raises(ArgumentError, match="no whole file"):
        sc.load(evil)
    (tmp_path / "pickle").write_bytes(pickle.dumps(Boom()))
    with pytest.raises(ArgumentError, match="no whole file"):
        sc.load(tmp_path / "pickle")


def changed(path, change):
    """The same file with its document changed."""
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist()}
    document = json.loads(files["function.json"])
    change(document)
    files["function.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as new:
        for name, data in files.items():
            new.writestr(name, data)


@pytest.mark.parametrize("change", [
    lambda document: document.update(format=99),
    lambda document: document["graph"][-1].update(op={"class": "Popen", "fields": {}}),
    lambda document: document["graph"][-1].update(op={"class": "ConvSpec", "fields": {}}),
    lambda document: document["graph"][-1].update(inputs=[0, 900]),
    lambda document: document["graph"][-1]["outputs"][0].update(type=["float64", [None]]),
    lambda document: document["graph"][0].update(type=["float999", [None]]),
    lambda document: document.pop("outputs"),
    lambda document: document.update(updates=[[0, 0]]),
    lambda document: document["graph"][-1].update(inputs=[-1]),
    lambda document: document["graph"][-1].update(inputs=[False]),
    lambda document: document["graph"][0].update(name={"a": 1}),
    lambda document: document["graph"][0].update(type=["float32", [-3]]),
    lambda document: document["options"].update(device=5),
    lambda document: document["options"].pop("name"),
    lambda document: document["options"].update(mode={"name": "x", "include": None, "exclude": [], "reference": False,
                                                      "check": "z"}),
    lambda document: document["inputs"].append(document["inputs"][0]),
])
def test_changed_files_are_one_error(change, path):
    x = T.vector("x")
    sc.compile([x], T.tanh(x)).save(path)
    changed(path, change)
    with pytest.raises(sc.UserError):
        sc.load(path)


def test_damaged_files_are_one_error(path):
    x = T.vector("x")
    sc.compile([x], T.tanh(x) * np.arange(50, dtype=np.float32)).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            sc.load(path)
        except sc.UserError:
            continue
    path.write_bytes(whole[:-30])
    with pytest.raises(ArgumentError):
        sc.load(path)


def test_deep_documents_are_one_error(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("function.json", "[" * 100_000)
    with pytest.raises(ArgumentError):
        sc.load(path)
    with pytest.raises(FileNotFoundError):
        sc.load(path.with_name("none"))


def test_saved_files_have_the_modes_of_other_files(path):
    x = T.vector("x")
    sc.compile([x], x * 2).save(path)
    plain = path.with_name("plain")
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode
