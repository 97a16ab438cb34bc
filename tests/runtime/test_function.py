"""compile and Function: forms of outputs, updates, givens, shared state, arguments, threads, pickling."""
from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.errors import FunctionError, IndexRangeError, InputTypeError, ShapeError


def f32(*values):
    return np.array(values, "float32")


@pytest.fixture(params=["fast_run", "fast_compile", "reference"])
def mode(request):
    return request.param


def test_outputs_come_back_in_the_form_they_were_given(mode):
    x = T.vector("x")
    one = sc.compile([x], x + 1, mode=mode)(f32(1))
    assert isinstance(one, np.ndarray)
    assert one.tolist() == [2]
    several = sc.compile([x], [x + 1, x * 5], mode=mode)(f32(1))
    assert [each.tolist() for each in several] == [[2], [5]]
    assert isinstance(sc.compile([x], (x,), mode=mode)(f32(1)), tuple)
    named = sc.compile([x], {"more": x + 1, "less": x - 1}, mode=mode)(f32(1))
    assert {key: each.tolist() for key, each in named.items()} == {"more": [2], "less": [0]}
    state = sc.shared(f32(0))
    assert sc.compile([x], None, updates=[(state, x)], mode=mode)(f32(7)) is None
    assert state.get_value() == 7
    assert sc.compile([x], x + state, updates=None, givens=None, mode=mode)(f32(1)) == 8


def test_the_same_variable_may_be_several_outputs_and_an_input(mode):
    x = T.vector("x")
    y = x * 2
    first, second, third = sc.compile([x], [y, y, x], mode=mode)(f32(1, 2))
    first[0] = 99
    assert second.tolist() == [2, 4]
    assert third.tolist() == [1, 2]


def test_outputs_never_alias_inputs_state_or_earlier_outputs(mode):
    x, state = T.matrix("x"), sc.shared(f32(1, 2))
    f = sc.compile([x], [x.T, state, x[0], x + 0 * state], updates=[(state, state + 1)], mode=mode)
    array = np.ones((2, 2), "float32")
    first = f(array)
    kept = [each.copy() for each in first]
    for each in first:
        assert not np.shares_memory(each, array)
        assert not np.shares_memory(each, state.get_value(borrow=True))
    f(array * 3)
    for each, before in zip(first, kept, strict=True):
        np.testing.assert_array_equal(each, before)


def test_all_updates_read_the_old_values(mode):
    a, b = sc.shared(f32(1, 1), "a"), sc.shared(f32(2, 2), "b")
    swap = sc.compile([], [a, b], updates=[(a, b), (b, a)], mode=mode)
    before = swap()
    assert [each.tolist() for each in before] == [[1, 1], [2, 2]]
    assert a.get_value().tolist() == [2, 2]
    assert b.get_value().tolist() == [1, 1]
    chain = sc.compile([], None, updates=[(a, a + b), (b, a * 10)], mode=mode)
    chain()
    assert a.get_value().tolist() == [3, 3]
    assert b.get_value().tolist() == [20, 20]


def test_three_variables_rotate(mode):
    state = [sc.shared(f32(number)) for number in range(3)]
    sc.compile([], None, updates=[(state[number], state[(number + 1) % 3]) for number in range(3)], mode=mode)()
    assert [float(each.get_value()[0]) for each in state] == [1, 2, 0]


def test_an_update_may_change_the_shape(mode):
    state = sc.shared(f32(1, 2))
    grow = sc.compile([], state.sum(), updates=[(state, T.concatenate([state, state]))], mode=mode)
    assert [float(grow()) for _ in range(3)] == [3, 6, 12]
    assert state.get_value().shape == (16,)


def test_functions_share_state_and_set_value_is_seen_without_compiling(mode):
    weights = sc.shared(f32(1, 2), "weights")
    read, write = sc.compile([], weights * 10, mode=mode), sc.compile([], None, updates=[(weights, weights + 1)], mode=mode)
    write()
    assert read().tolist() == [20, 30]
    weights.set_value(f32(5, 5))
    assert read().tolist() == [50, 50]
    assert len(read.programs) == 1


def test_get_and_set_value_copy_unless_borrowed():
    array = f32(1, 2)
    copied, borrowed = sc.shared(array), sc.shared(array, borrow=True)
    array[0] = 9
    assert copied.get_value().tolist() == [1, 2]
    assert borrowed.get_value().tolist() == [9, 2]
    copied.get_value()[0] = 50
    assert copied.get_value().tolist() == [1, 2]
    copied.get_value(borrow=True)[0] = 50
    assert copied.get_value().tolist() == [50, 2]
    copied.zero()
    assert copied.get_value().tolist() == [0, 0]


def test_a_borrowed_array_is_not_written_by_updates(mode):
    array = f32(1, 2)
    state = sc.shared(array, borrow=True)
    other = sc.shared(array, borrow=True)
    step = sc.compile([], None, updates=[(state, state * 2), (other, other + state)], mode=mode)
    step()
    assert array.tolist() == [1, 2]
    assert state.get_value().tolist() == [2, 4]
    assert other.get_value().tolist() == [2, 4]
    held = state.get_value(borrow=True)
    step()
    assert held.tolist() == [2, 4]


def test_an_input_may_be_the_state_itself(mode):
    x, state = T.vector("x"), sc.shared(f32(1, 2))
    step = sc.compile([x], [x + state], updates=[(state, state * 3)], mode=mode)
    (result,) = step(state.get_value(borrow=True))
    assert result.tolist() == [2, 4]
    assert state.get_value().tolist() == [3, 6]


def test_a_failing_call_leaves_no_half_update():
    a, b = sc.shared(f32(1), "a"), sc.shared(f32(1), "b")
    table, index = T.vector("table"), T.lvector("index")
    f = sc.compile([table, index], table[index].sum(), updates=[(a, a + 1), (b, b + table[index].sum())])
    with pytest.raises(IndexRangeError):
        f(f32(1, 2), np.array([5]))
    assert a.get_value() == b.get_value() == 1
    f(f32(1, 2), np.array([1]))
    assert a.get_value() == 2
    assert b.get_value() == 3


def test_default_updates_run_unless_left_out(mode):
    counter = sc.shared(np.int64(0), "counter")
    counter.default_update = counter + 1
    count = sc.compile([], counter, mode=mode)
    assert [int(count()) for _ in range(3)] == [0, 1, 2]
    assert sc.compile([], counter, no_default_updates=True, mode=mode)() == 3
    sc.compile([], counter, no_default_updates=[counter], mode=mode)()
    assert counter.get_value() == 3
    sc.compile([], counter, updates=[(counter, counter * 10)], mode=mode)()
    assert counter.get_value() == 30


def test_givens_replace_inputs_and_state(mode):
    x, w = T.vector("x"), sc.shared(f32(2), "w")
    y = x * w
    assert sc.compile([w_in := T.vector("w_in")], y, givens=[(x, f32(3)), (w, w_in)], mode=mode)(f32(10)) == 30
    data, index = sc.shared(f32(1, 2, 3, 4, 5)), T.lscalar("index")
    batch = sc.compile([index], x.sum(), givens={x: data[index * 2:(index + 1) * 2]}, mode=mode)
    assert [float(batch(number)) for number in range(3)] == [3, 7, 5]
    assert len(batch.programs) == 2  # two batches of two and the shorter last one


def test_keyword_arguments_and_defaults(mode):
    x, y = T.scalars("x", "y")
    f = sc.compile([x, sc.In(y, value=3)], x - y, mode=mode)
    assert f(10) == 7
    assert f(10, 1) == 9
    assert f(y=1, x=2) == 1
    assert f(10, y=4) == 6


def test_python_numbers_and_lists_are_taken(mode):
    x, n = T.matrix("x"), T.lscalar("n")
    assert sc.compile([x, n], x * n, mode=mode)([[1, 2.5]], 2).tolist() == [[2, 5]]


def test_strict_and_downcast_options():
    x = T.vector("x")
    with pytest.raises(InputTypeError, match="float64, which would lose precision"):
        sc.compile([x], x)(np.array([0.1]))
    assert sc.compile([x], x, allow_input_downcast=True)(np.array([0.5])) == 0.5
    with pytest.raises(InputTypeError, match="would lose"):
        sc.compile([sc.In(x, allow_downcast=False)], x)(0.1 * np.ones(1))
    with pytest.raises(InputTypeError, match="strict"):
        sc.compile([sc.In(x, strict=True)], x)(np.array([1], "int8"))
    assert sc.compile([x], x)(np.array([1], "int8")) == 1


@pytest.mark.parametrize("array", [np.arange(12, dtype="float32").reshape(3, 4)[:, ::2],
                                   np.arange(6, dtype="float32").reshape(2, 3).T,
                                   np.arange(6, dtype="float32").reshape(3, 2)[::-1, ::-1],
                                   np.frombuffer(b"\0" + np.arange(6, dtype="float32").tobytes(), "float32", offset=1)
                                   .reshape(3, 2),
                                   np.arange(6, dtype=">f4").reshape(3, 2)],
                         ids=["strided", "transposed", "reversed", "unaligned", "byte-swapped"])
def test_arrays_of_any_layout_are_taken(array, mode):
    x = T.matrix("x")
    expected = np.array(array, "float64") * 2 + 1
    np.testing.assert_array_equal(sc.compile([x], x * 2 + 1, mode=mode)(array), expected)


def test_programs_are_kept_by_shape(mode):
    x = T.matrix("x")
    f = sc.compile([x], (x * 2).sum(axis=0), mode=mode)
    for shape in [(2, 3), (4, 3), (2, 3), (4, 3), (0, 3)]:
        assert f(np.ones(shape, "float32")).tolist() == [2.0 * shape[0]] * 3
    assert len(f.programs) == 3
    f.free()
    assert f(np.ones((2, 3), "float32")).tolist() == [4, 4, 4]


def test_run_time_sizes_of_one_broadcast(mode):
    x, y = T.matrices("x", "y")
    f = sc.compile([x, y], [x + y, *sc.grad((x * y).sum(), [x, y])], mode=mode)
    a, b = np.arange(3, dtype="float32").reshape(3, 1), np.arange(4, dtype="float32").reshape(1, 4)
    total, ga, gb = f(a, b)
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(ga, np.full((3, 1), b.sum()))
    np.testing.assert_array_equal(gb, np.full((1, 4), a.sum()))


def test_a_run_time_shape_clash_inside_a_fused_kernel_names_the_line_and_sizes():
    x, y = T.vectors("x", "y")
    z = T.exp(x * 2 + y) - 1  # the line to be named
    f = sc.compile([x, y], z)
    with pytest.raises(ShapeError) as caught:
        f(f32(1, 2, 3), f32(1, 2))
    text = str(caught.value)
    assert "z = T.exp(x * 2 + y) - 1" in text
    assert "3" in text
    assert "(2,)" in text or "2" in text
    assert f(f32(1, 2), f32(1, 2)).shape == (2,)


def test_static_sizes_are_checked_on_call():
    x = T.matrix("x", shape=(None, 3))
    with pytest.raises(ShapeError, match=r"'x'.*size 3 on axis 1"):
        sc.compile([x], x)(np.ones((2, 4), "float32"))


@pytest.mark.parametrize("duplicate", [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy], ids=["pickle", "deepcopy"])
def test_functions_pickle_with_their_state_and_still_share_it(duplicate):
    x, w = T.vector("x"), sc.shared(f32(1, 2), "w")
    train, read = sc.compile([x], x.sum(), updates=[(w, w + x)]), sc.compile([], w)
    train(f32(1, 1))
    train2, read2 = duplicate((train, read))
    train2(f32(10, 10))
    assert read2().tolist() == [12, 13]
    assert read().tolist() == [2, 3]
    assert train2.name == train.name


def test_many_threads_may_call_one_function():
    x, count = T.vector("x"), sc.shared(np.int64(0))
    f = sc.compile([x], (x * 2 + 1).sum(), updates=[(count, count + 1)])
    wrong = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(50):
            array = generator.integers(0, 9, 1 + seed % 3).astype("float32")
            if f(array) != (array * 2 + 1).sum():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert count.get_value() == 800


def test_a_forked_child_can_call_a_function():
    x = T.matrix("x")
    f = sc.compile([x], T.exp(x).sum())
    array = np.ones((1000, 1000), "float32")
    expected = float(f(array))
    child = os.fork()
    if child == 0:
        os._exit(0 if abs(float(f(array)) - expected) < 1e-3 * expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_dropped_function_is_freed():
    x = T.vector("x")
    f = sc.compile([x], x * 2)
    f(f32(1))
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_profile_counts_calls_and_steps():
    x = T.matrix("x")
    f = sc.compile([x], T.exp(x).sum(), profile=True, name="summed")
    assert "no calls" in str(sc.compile([x], x).profile)
    for _ in range(3):
        f(np.ones((50, 50), "float32"))
    (program,) = f.profile.as_dict()["programs"]
    assert program["calls"] == 3
    assert sum(row["seconds"] for row in program["steps"]) <= program["seconds"]
    assert "summed on cpu: 3 calls" in str(f.profile)


def test_eval_compiles_once():
    x = T.scalar("x")
    y = x * 3
    assert [float(y.eval({x: value})) for value in (1, 2)] == [3, 6]
    assert len(y.tag.eval_functions) == 1


def test_a_chain_of_20000_nodes_compiles_and_runs(mode):
    x = T.vector("x", dtype="float64")
    y = x
    for _ in range(20_000):
        y = y + 1.0
    f = sc.compile([x], [y, sc.grad(y.sum(), x)], mode=mode)
    value, gradient = f(np.array([1.0, 2.0]))
    assert value.tolist() == [20_001, 20_002]
    assert gradient.tolist() == [1, 1]


def test_a_sum_of_2000_inputs_compiles_and_runs():
    inputs = [T.vector(f"x{number}") for number in range(2_000)]
    total = inputs[0]
    for each in inputs[1:]:
        total = total + each
    f = sc.compile(inputs, total)
    assert f(*(f32(1, 2) for _ in inputs)).tolist() == [2000, 4000]


def test_debug_logs_to_standard_error(tmp_path):
    import os
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text("import numpy as np, symconv as sc, symconv.tensor as T\n"
                      "x = T.vector('x')\nsc.compile([x], T.log(1 + T.exp(x)))(np.ones(3, 'float32'))\n")
    home = os.pathsep.join([os.path.dirname(os.path.dirname(sc.__file__)), os.environ.get("PYTHONPATH", "")])
    said = {}
    for level in ("0", "2"):
        done = subprocess.run([sys.executable, str(script)], env=dict(os.environ, SYMCONV_DEBUG=level, PYTHONPATH=home),
                              capture_output=True, text=True, check=True)
        said[level] = done.stderr
    assert said["0"] == ""
    assert "symbolic rewrites" in said["2"]
    assert "log_one_plus" in said["2"]


@pytest.mark.parametrize("shapes", [(), ((2,), (3,)), ([(2,)],), ((-1,),), (3,), ("ab",)])
def test_prepare_takes_one_shape_for_each_input(shapes):
    x = T.vector("x")
    function = sc.compile([x], x + 1, name="plus")
    with pytest.raises(FunctionError, match=r"plus.prepare takes one shape for each input \(x\)"):
        function.prepare(*shapes)
    function.prepare([np.int64(2)])
    assert function(np.ones(2, "float32")).tolist() == [2, 2]
