"""Functions on a device with memory of its own, proven on the emulator: values, state, errors, what stays on the device."""
from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from random_graphs import RandomGraph

import symconv as sc
import symconv.tensor as T
from symconv.config import config
from symconv.errors import ArgumentError, BackendError, IndexRangeError
from symconv.runtime.container import Container
from symconv.runtime.devices.find import find_device

EMULATOR = "emulator"


def vector(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_give_what_numpy_gives(seed, device):
    graph = RandomGraph(seed)
    function = sc.compile(list(graph.inputs), graph.outputs, device=device, on_unused_input="ignore")
    for is_watched in (True, False):
        with config.change(emulator__checked=is_watched):
            results = function(*graph.inputs.values())
        for found, wanted in zip(results, graph.expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_state_stays_on_the_device_and_is_fetched_when_asked_for(monkeypatch, device):
    fetched = []
    place = find_device(device)
    download = type(place).download
    monkeypatch.setattr(type(place), "download",
                        lambda self, buffer, array: (fetched.append(array.shape), download(self, buffer, array)))
    state = sc.shared(np.zeros((3, 5), np.float32), name="state")
    x = T.scalar("x")
    step = sc.compile([x], [], updates=[(state, state + x)], device=device)
    for number in range(4):
        step(np.float32(number))
    assert (3, 5) not in fetched
    np.testing.assert_array_equal(state.get_value(), 6.0)
    state.get_value()
    assert fetched.count((3, 5)) == 1


def test_updates_read_old_values_and_swap(device):
    a, b = sc.shared(vector(1, 2), name="a"), sc.shared(vector(3, 4), name="b")
    swap = sc.compile([], [a + 0, b + 0], updates=[(a, b), (b, a)], device=device)
    for before in ([[1, 2], [3, 4]], [[3, 4], [1, 2]], [[1, 2], [3, 4]]):
        np.testing.assert_array_equal(np.stack(swap()), before)


def test_a_new_value_of_another_shape(device):
    state = sc.shared(vector(1, 2), name="state")
    grow = sc.compile([], state.sum(), updates=[(state, T.concatenate([state, state]))], device=device)
    assert [float(grow()) for _ in range(4)] == [3, 6, 12, 24]
    assert state.get_value().shape == (32,)


def test_set_value_zero_and_borrowed_arrays_reach_the_device(device):
    state = sc.shared(vector(1, 2), name="state")
    total = sc.compile([], (state * 2).sum(), device=device)
    assert float(total()) == 6
    state.set_value(vector(5, 6))
    assert float(total()) == 22
    state.set_value(vector(1, 1, 1))
    assert float(total()) == 6
    state.get_value(borrow=True)[:] = 4
    assert float(total()) == 24
    state.zero()
    assert float(total()) == 0


def test_the_cpu_and_the_device_share_state(device):
    state = sc.shared(vector(1, 2), name="state")
    on_device = sc.compile([], [], updates=[(state, state * 10)], device=device)
    on_cpu = sc.compile([], [], updates=[(state, state + 1)], device="cpu")
    for function in (on_device, on_cpu, on_device, on_cpu):
        function()
    np.testing.assert_array_equal(state.get_value(), [111, 211])


def test_an_array_lent_before_an_update_keeps_its_values(device):
    state = sc.shared(vector(1, 2), name="state")
    lent = state.get_value(borrow=True)
    step = sc.compile([], [], updates=[(state, state * 10)], device=device)
    step()
    np.testing.assert_array_equal(state.get_value(), [10, 20])
    np.testing.assert_array_equal(lent, [1, 2])  # also once the new value was fetched


def test_an_error_at_run_time_leaves_state_as_it_was(device):
    x, index = T.vector("x"), T.lscalar("index")
    state = sc.shared(vector(1, 2), name="state")
    step = sc.compile([x, index], x[T.stack([index])], updates=[(state, state + 1)], device=device)
    with pytest.raises(IndexRangeError):
        step(vector(1, 2, 3), 7)
    np.testing.assert_array_equal(state.get_value(), [1, 2])
    np.testing.assert_array_equal(step(vector(1, 2, 3), 1), [2])
    np.testing.assert_array_equal(state.get_value(), [2, 3])


def test_inputs_may_change_shape_and_need_not_be_contiguous(device):
    x = T.matrix("x")
    function = sc.compile([x], (x * 2).sum(axis=0), device=device)
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    for each in (values, values[:, ::-1], values.T, values[:0], values[:, :0]):
        np.testing.assert_array_equal(function(each), each.sum(axis=0) * 2)


def test_pickled_functions_and_threads(device):
    x = T.vector("x")
    state = sc.shared(vector(0, 0), name="state")
    step = pickle.loads(pickle.dumps(sc.compile([x], state + x, updates=[(state, state + x)], device=device)))
    workers = [threading.Thread(target=lambda: [step(vector(1, 2)) for _ in range(5)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(step(vector(0, 0)), [20, 40])


def test_profile_and_explain(device):
    x = T.vector("x")
    function = sc.compile([x], T.exp(x).sum(), device=device, profile=True)
    function(vector(1, 2, 3))
    assert "1 call" in str(function.profile)
    assert f"on {device}" in function.explain()


def test_memory_is_given_back_with_the_function(device):
    x = T.vector("x")
    function = sc.compile([x], x * 2, device=device)
    function(vector(1, 2))
    gone = weakref.ref(function.programs[0])
    del function
    gc.collect()
    assert gone() is None


def test_a_container_knows_who_has_the_value(device):
    place = find_device(device)
    container = Container(vector(1, 2))
    buffer = container.on(place)
    assert container.on(place) is buffer
    place.upload(buffer, vector(7, 8))
    container.note_written_on(place)
    np.testing.assert_array_equal(container.array, [7, 8])
    container.replace(vector(3, 4))
    assert container.on(place) is buffer
    fetched = np.zeros(2, np.float32)
    place.download(buffer, fetched)
    np.testing.assert_array_equal(fetched, [3, 4])


def test_names_of_devices():
    x = T.vector("x")
    with pytest.raises(ArgumentError, match=r"there is no device 'gpu'.*(?s:.*)\"cuda\""):
        sc.compile([x], x, device="gpu")


def test_cuda_without_a_gpu_is_one_error_that_says_what_was_looked_for():
    pytest.importorskip("cupy", reason="CuPy is not installed")
    from symconv.runtime.devices.cupy_device import import_cupy

    cupy = import_cupy()
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        x = T.vector("x")
        with pytest.raises(BackendError, match=r"finds no usable GPU(?s:.*)NVIDIA driver"):
            sc.compile([x], x, device="cuda")
    else:
        pytest.skip("there is a GPU")


def test_cuda_without_cupy_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    find_device.__globals__["_device"].cache_clear()
    x = T.vector("x")
    with pytest.raises(BackendError, match=r"needs CuPy(?s:.*)symconv\[cuda13\]"):
        sc.compile([x], x, device="cuda")


def test_unchecked_emulation_gives_the_same(device):
    x = T.vector("x")
    function = sc.compile([x], T.tanh(x) * 2, device=device)
    with config.change(emulator__checked=False):
        fast = function(vector(1, 2, 3))
    np.testing.assert_array_equal(fast, function(vector(1, 2, 3)))


@pytest.mark.parametrize("device", ["cpu", EMULATOR])
def test_an_interrupt_behind_the_run_leaves_no_stale_value(device, monkeypatch):
    from symconv.runtime.device_program import DeviceProgram
    from symconv.runtime.program import Program

    state = sc.shared(vector(1, 2), name="state")
    step = sc.compile([], [], updates=[(state, state + 1)], device=device)
    step()
    kind = Program if device == "cpu" else DeviceProgram
    run = kind.run

    def interrupted(self, *args, **kwargs):
        run(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step()
    monkeypatch.undo()
    np.testing.assert_array_equal(state.get_value(), [3, 4])
    step()
    np.testing.assert_array_equal(state.get_value(), [4, 5])


def test_an_array_lent_after_an_update_on_a_device_is_the_value(device):
    state = sc.shared(vector(0, 0), name="state")
    sc.compile([], [], updates=[(state, state + 1)], device=device)()
    lent = state.get_value(borrow=True)
    on_cpu, on_device = sc.compile([], T.exp(state)), sc.compile([], T.exp(state), device=device)
    on_cpu(), on_device()
    lent[:] = 0
    np.testing.assert_array_equal(on_cpu(), 1)
    np.testing.assert_array_equal(on_device(), 1)


def test_no_memory_for_a_new_value_changes_no_state(monkeypatch, device):
    a, b = sc.shared(vector(1, 2), name="a"), sc.shared(vector(3,), name="b")
    grow = sc.compile([], [], updates=[(each, T.concatenate([each, each])) for each in (a, b)], device=device)
    grow()
    place = find_device(device)
    grow.prepare()  # the program of these shapes, so that only the new values ask for memory
    allocate, asked = place.allocate, []

    def fails(nbytes):
        asked.append(nbytes)
        if len(asked) == 2:
            raise BackendError("no memory")
        return allocate(nbytes)

    monkeypatch.setattr(place, "allocate", fails, raising=False)
    with pytest.raises(BackendError):
        grow()
    assert [each.get_value().shape for each in (a, b)] == [(4,), (2,)]


def test_forms_of_outputs_on_a_device():
    import types
    from collections import namedtuple

    pair = namedtuple("pair", "one two")
    x = T.vector("x")
    for device in ("cpu", "emulator"):
        found = sc.compile([x], pair(x * 2, x + 1), device=device)(vector(1))
        assert (type(found), found.one[0], found.two[0]) == (pair, 2, 2)
        mapped = sc.compile([x], types.MappingProxyType({"y": x * 2}), device=device)(vector(1))
        assert mapped["y"][0] == 2
