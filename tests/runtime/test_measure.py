"""Selection by measured times: what is timed, what is kept, what is not believed, what is never timed twice."""
from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.codegen.implementation import Implementation
from symconv.codegen.kernel import Operand, Problem
from symconv.ops.conv_problem import ConvProblem
from symconv.ops.convolution import Conv
from symconv.ops.linalg import MatMul
from symconv.runtime import measure, select
from symconv.runtime.measure import Entrant
from symconv.target import Target
from symconv.tensor import nnet

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A kernel cache of its own with nothing measured, and short timing."""
    monkeypatch.setattr(measure, "_SECONDS", 0.002)
    monkeypatch.setattr(measure, "_known", {})
    with sc.config.change(cache_dir=str(tmp_path / "kernels"), selection="measure"):
        yield tmp_path / "kernels" / measure.MEASURED


@pytest.fixture
def timed(monkeypatch):
    """Counts what is timed; the times are made up, the last candidate the fastest."""
    calls = []

    def time_entrants(asked, entrants, target, still):
        calls.append((measure.problem_text(asked), still))
        return {each.implementation.name: 1.0 / (1 + number) for number, each in enumerate(entrants)}

    monkeypatch.setattr(measure, "time_entrants", time_entrants)
    return calls


def forget():
    """As a new process would begin."""
    measure._known.clear()


def operands(conv: ConvProblem) -> tuple[Conv, tuple[Operand, ...], tuple[Operand, ...]]:
    inputs = (Operand.contiguous(conv.dtype, conv.x_shape), Operand.contiguous(conv.dtype, conv.w_shape))
    return Conv(conv.kind, conv.spec), inputs, (Operand.contiguous(conv.dtype, conv.y_shape),)


def choose(text="fprop n1 c4 h8 w8 k8 r3 s3 p1 f32", threads=1, still=frozenset()):
    return select.choose(*operands(ConvProblem.parse(text)), Target(threads=threads), still=still)


def test_the_fastest_is_chosen_and_every_time_is_told(timed):
    choice = choose()
    measured = {each.name: each.measured for each in choice.candidates if each.refusal is None}
    assert len(measured) > 1
    assert choice.name == min(measured, key=measured.__getitem__)
    assert all(each.estimate for each in choice.candidates if each.refusal is None)
    with sc.config.change(selection="heuristic"):
        assert choose().name != choice.name
        assert all(each.measured is None for each in choose().candidates)


def test_alternating_shapes_are_timed_once_in_a_process_and_never_in_the_next(timed):
    one, two = "fprop n1 c4 h8 w8 k8 r3 s3 p1 f32", "fprop n2 c4 h8 w8 k8 r3 s3 p1 f32"
    for _ in range(3):
        first, second = choose(one), choose(two)
    assert len(timed) == 2
    forget()
    assert (choose(one), choose(two)) == (first, second)
    assert len(timed) == 2


def test_what_an_answer_holds_for(timed):
    choose()
    choose(threads=2)
    choose(still=frozenset({1}))
    with sc.config.change(conv__winograd="off"):
        choose()  # fewer candidates
    assert len(timed) == 4
    column = Operand.contiguous("float32", (64, 1))
    for strides in ((64, 1), (1, 64), (-64, 1)):
        select.choose(MatMul(), (Operand("float32", (64, 64), strides), column), (column,), Target())
    assert len(timed) == 7
    assert len({text for text, _ in timed[4:]}) == 3


def test_a_changed_kernel_is_timed_anew(timed, monkeypatch):
    choose()
    forget()
    monkeypatch.setattr(measure, "_kernels_digest", lambda: "another")
    choose()
    assert len(timed) == 2


@pytest.mark.parametrize("harm", ["cut", "foreign", "changed", "names", "infinite"])
def test_a_note_that_cannot_be_believed_is_logged_and_made_anew(timed, folder, caplog, harm):
    expected = choose()
    (path,) = folder.iterdir()
    note = json.loads(path.read_text())
    names = list(note["values"])
    if harm == "cut":
        path.write_text(path.read_text()[:-40])
    elif harm == "foreign":
        path.write_text(json.dumps({**note, "facts": {**note["facts"], "problem": "another"}}))
    elif harm == "changed":
        path.write_text(json.dumps({**note, "values": {**note["values"], names[0]: 1e-9}}))
    else:
        values = {"names": {"another": 1.0}, "infinite": {name: float("inf") for name in names}}[harm]
        measure.write_note(measure.MEASURED, note["facts"], values)
    forget()
    with caplog.at_level(logging.WARNING):
        assert choose() == expected
    assert len(timed) == 2
    assert "again" in caplog.text
    forget()
    assert choose() == expected
    assert len(timed) == 2


def test_notes_are_the_users_alone_and_moved_into_place(timed, folder):
    choose()
    assert folder.stat().st_mode & 0o77 == 0
    assert folder.parent.stat().st_mode & 0o77 == 0
    assert [path.suffix for path in folder.iterdir()] == [".json"]
    assert not list(folder.parent.glob("scratch-*"))


def test_deterministic_measures_nothing_and_says_so(timed):
    with sc.config.change(deterministic=True):
        choice = choose()
        with sc.config.change(selection="heuristic"):
            assert choose().name == choice.name
    assert not timed
    assert "deterministic" in choice.why


def test_an_only_candidate_and_empty_results_are_not_timed(timed):
    assert choose("fprop n0 c4 h8 w8 k8 r3 s3 p1 f32").why == "there is nothing to compute"
    with sc.config.change(conv__implementation="conv_gemm"):
        assert choose().name == "conv_gemm"
    assert not timed


def test_no_memory_for_the_arrays_leaves_the_estimates(monkeypatch, caplog):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(measure, "time_entrants", full)
    choice = choose()
    with sc.config.change(selection="heuristic"):
        assert choose().name == choice.name
    assert "no memory" in choice.why
    assert "no memory" in caplog.text


class Sleepy(Implementation):
    """An implementation whose kernel takes at least so long; it wants its second input copied by a kernel that takes longer."""

    def __init__(self, name, seconds, before=0.0):
        self.name, self.seconds, self.before = name, seconds, before

    def kernel(self, name, seconds):
        from symconv.codegen.kernel import Kernel

        source = (f"#define _GNU_SOURCE\n#include <stdint.h>\n#include <time.h>\n"
                  f"int {name}(void *const *buffers, const int64_t *sizes) {{ (void)buffers; (void)sizes;\n"
                  f"struct timespec nap = {{0, {int(seconds * 1e9)}}}; nanosleep(&nap, 0); return 0; }}\n")
        return Kernel(name, source)

    def prepare(self, problem, target):
        from symconv.codegen.kernel import Preparation

        if not self.before:
            return ()
        return (Preparation(1, self.kernel(f"{self.name}_before", self.before), problem.inputs[1]),)

    def build(self, problem, target):
        return self.kernel(self.name, self.seconds)


def test_times_are_those_of_the_kernels_and_preparations_count_only_where_they_run_on_every_call():
    op, inputs, outputs = operands(ConvProblem.parse("fprop n1 c4 h8 w8 k8 r3 s3 p1 f32"))
    asked = Problem(op, inputs, outputs)
    entrants = [Entrant(Sleepy("plain", 4e-3), asked, ()), Entrant(Sleepy("prepared", 2e-3, 4e-3), asked, ())]
    every = measure.time_entrants(asked, entrants, Target(), frozenset())
    assert every["plain"] >= 4e-3
    assert every["prepared"] >= 6e-3
    still = measure.time_entrants(asked, entrants, Target(), frozenset({1}))
    assert 2e-3 <= still["prepared"] < still["plain"]


def test_expected_seconds_count_preparations_only_where_they_run_on_every_call():
    """F(4x4, 3x3) writes 36 transformed values for 9 weights: far more than the products of a single image."""
    with sc.config.change(selection="heuristic"):
        choices = [choose("fprop n1 c512 h7 w7 k512 r3 s3 p1 f32", 2, still) for still in (frozenset({1}), frozenset())]
    still, changing = ({each.name: each.estimate for each in choice.candidates if each.estimate} for choice in choices)
    nbytes = 4 * 512 * 512 * (9 + 36)
    assert changing["conv_winograd_4x4"] - still["conv_winograd_4x4"] >= 0.9 * nbytes / 20e9
    assert changing["conv_direct"] == still["conv_direct"]


@pytest.mark.parametrize("strides", [(1, 40), (-50, 2), (0, 1)])
def test_real_candidates_on_strided_arrays(strides):
    a, b = Operand("float32", (40, 50), strides), Operand.contiguous("float32", (50, 1))
    asked = Problem(MatMul(), (a, b), (Operand.contiguous("float32", (40, 1)),))
    choice = select.choose(MatMul(), asked.inputs, asked.outputs, Target(threads=2))
    taken = [each for each in choice.candidates if each.refusal is None]
    assert len(taken) > 1
    assert all(0 < each.measured < 1 for each in taken)


def test_a_function_selects_by_measuring_and_explains(folder):
    x = T.tensor4("x", "float32")
    w = sc.shared(np.random.default_rng(0).standard_normal((8, 4, 3, 3)).astype("float32"), "w")
    images = np.random.default_rng(1).standard_normal((2, 4, 9, 9)).astype("float32")
    function = sc.compile([x], nnet.conv2d(x, w, border_mode=1))
    found = function(images)
    with sc.config.change(selection="heuristic"):
        expected = sc.compile([x], nnet.conv2d(x, w, border_mode=1))(images)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    text = function.explain()
    assert "(measured " in text
    candidates = next(step["candidates"] for step in function.explain(format="dict")["steps"] if step["problem"])
    taken = [each for each in candidates if each["refusal"] is None]
    assert all(each["measured"] for each in taken)
    assert min(taken, key=lambda each: each["seconds"])["chosen"]
    facts = json.loads(next(iter(folder.iterdir())).read_text())["facts"]
    assert facts["state"] == "i1"


def test_another_process_reads_the_answers(folder):
    code = ("import logging, symconv as sc, symconv.tensor as T, numpy as np\n"
            "from symconv.runtime import measure\n"
            "logging.basicConfig(level=logging.INFO)\n"
            "measure._SECONDS = 0.002\n"
            "a = T.matrix('a', 'float32', shape=(30, 40)); b = T.matrix('b', 'float32', shape=(40, 1))\n"
            "f = sc.compile([a, b], T.dot(a, b))\n"
            "print([each.measured for step in f.programs[0].steps for each in step.choice.candidates if each.measured])\n")
    environment = {**os.environ, "SYMCONV_CACHE_DIR": str(folder.parent), "SYMCONV_SELECTION": "measure", "PYTHONPATH": str(ROOT)}
    runs = [subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
            for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout
    assert len(json.loads(runs[0].stdout)) > 1
    assert [run.stderr.count("INFO:symconv.runtime:measured") for run in runs] == [1, 0]
