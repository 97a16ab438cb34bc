"""Every text form against a file that people have read. `pytest tests/printing --update-golden` writes them anew."""
from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from printing.graphs import (
    arithmetic,
    blocked,
    classifier,
    classify,
    counter,
    first_nan,
    hostile,
    softplus_of_hostile,
    wrong_index,
)

import symconv as sc
from symconv.runtime import targets
from symconv.runtime.doctor import Finding, report
from symconv.runtime.trace import trace_of

ROOT = str(Path(__file__).parent.parent.parent)
FORMS = {"tree": lambda obj: sc.debugprint(obj, file="str", print_type=True), "mathematics": sc.pprint, "dot": sc.to_dot}


@pytest.fixture(autouse=True)
def fixed_machine(monkeypatch):
    """The same kernels on every machine: AVX2, one thread, one convolution kernel."""
    monkeypatch.setattr(targets, "_vectors", lambda compiler: (32, 16))
    with sc.config.change(threads=1, conv__implementation="conv_gemm"):
        yield


def portable(text: str) -> str:
    """Without the folder of the checkout and without expected times and workspaces, which are the kernels' own affair."""
    text = text.replace(ROOT, "ROOT")
    text = re.sub(r"\d+(\.\d)? [KM]?i?B\b|\d+ bytes", "# bytes", text)
    text = re.sub(r'("(arena_bytes|lower_bound_bytes|live_bytes|bytes|roofline|gbytes)": )[\d.e-]+', r"\1#", text)
    text = re.sub(r"save -?[\d.e-]+ ms, for [\d.e-]+ ms", "save # ms, for # ms", text)
    text = re.sub(r"with \d+ GFLOP.*|these are (measured|stated).*", "#", text)
    return re.sub(r"expected [\d.e-]+ ms(, [\d.]+ GFLOP/s)?(, \d+% of the peak)?", "expected # ms", text)


@pytest.mark.parametrize("form", FORMS)
def test_expression(form, golden):
    golden(f"arithmetic_{form}", FORMS[form](arithmetic()))


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names(form, golden):
    golden(f"hostile_{form}", FORMS[form](hostile()[1]))


@pytest.mark.parametrize("form", FORMS)
def test_function_before_and_after_its_first_program(form, golden):
    function = classify()
    golden(f"classifier_before_{form}", portable(FORMS[form](function)))
    function.prepare((2, 1, 6, 6))
    golden(f"classifier_after_{form}", portable(FORMS[form](function)))


@pytest.mark.parametrize("form", FORMS)
def test_copies_and_updates(form, golden):
    golden(f"counter_{form}", portable(FORMS[form](counter())))


def test_describe(golden):
    golden("counter_describe", counter().programs[-1].describe())
    images, _, _, sums = classifier()
    golden("classifier_describe", portable(sc.compile([images], sums, name="classify").programs[-1].describe()))


def test_explain(golden):
    function = classify()
    golden("classifier_explain_before", portable(function.explain()))
    function.prepare((2, 1, 6, 6))
    golden("classifier_explain", portable(function.explain()))
    golden("counter_explain", portable(counter().explain()))


def test_explain_in_reference_mode(golden):
    images, _, _, sums = classifier()
    golden("classifier_explain_reference", portable(sc.compile([images], sums, mode="reference", name="classify").explain()))


@pytest.fixture
def profiled():
    """The classifier with times that are told, not taken, on a machine of the stated default speed."""
    with sc.config.change(deterministic=True):
        function = classify()
        function.prepare((2, 1, 6, 6))
        program = function.programs[-1]
        function.profile.making_seconds = 0.25
        for call in range(2):
            function.profile.note(program, 8e-4, np.array([4e-4, 2e-4, 1e-4]))
            function.profile.note_call(function.profile.calls[-1].start, 0.0)
            entry = function.profile.entries[0]
            entry.call_seconds = 1e-3 * (call + 1)
            noted = function.profile.calls[-1]
            noted.start, noted.end, noted.program_start = call * 2e-3, call * 2e-3 + 1e-3, call * 2e-3 + 1e-4
        yield function


def test_a_profiled_tree(golden, profiled):
    golden("classifier_profiled_tree", portable(sc.debugprint(profiled, file="str")))


def test_the_table_of_a_profile(golden, profiled):
    golden("classifier_profile", re.sub(" +", " ", portable(str(profiled.profile))))


def test_a_profile_as_data_and_as_trace(golden, profiled):
    golden("classifier_profile_data", portable(json.dumps(profiled.profile.as_dict(), indent=1)))
    golden("classifier_trace", portable(json.dumps(trace_of(profiled.profile), indent=1)))


@pytest.mark.parametrize("options", [{"id_type": "int", "print_shape": True}, {"ascii": True}, {"depth": 1, "id_type": ""},
                                     {"print_type": True, "stop_on_name": True}], ids=["int", "ascii", "shallow", "stop"])
def test_options_of_the_tree(golden, options, request):
    golden(f"arithmetic_tree_{request.node.callspec.id}", sc.debugprint(arithmetic(), file="str", **options))


def test_memory_of_a_program(golden):
    golden("counter_memory", sc.debugprint(counter(), file="str", print_memory=True))
    function = classify()
    golden("classifier_before_memory", sc.debugprint(function, file="str", print_memory=True))
    function.prepare((2, 1, 6, 6))
    golden("classifier_after_memory", re.sub(r"at \d+ in", "at # in", sc.debugprint(function, file="str", print_memory=True)))


def test_blocks_of_channels(golden):
    with sc.config.change(layout="always", conv__implementation="", conv__winograd="off", deterministic=True):
        function = blocked()
        golden("blocks_tree", portable(sc.debugprint(function, file="str")))
        golden("blocks_explain", portable(function.explain()))


def test_rewrites_and_kernels(golden):
    function = classify()
    function.prepare((2, 1, 6, 6))
    golden("classifier_rewrites", portable(str(function.rewrites)))
    golden("classifier_kernels", "\n".join(function.sources()))


def test_rewrites_of_hostile_names(golden):
    text = portable(repr(softplus_of_hostile().rewrites))
    assert all(line.isprintable() for line in text.split("\n"))
    golden("hostile_rewrites", text)


def test_an_error_at_run_time(golden):
    for verbosity in ("low", "high"):
        with sc.config.change(exception_verbosity=verbosity), pytest.raises(sc.errors.IndexRangeError) as caught:
            wrong_index()
        golden(f"error_{verbosity}", portable(str(caught.value)))


def test_what_the_doctor_says(golden):
    findings = [Finding("python", "Python", "3.11.7 on Linux x86_64"),
                Finding("python", "jinja2", "not installed", False, "pip install jinja2"),
                Finding("CUDA", "CuPy", "not installed", None, "pip install 'symconv[cuda13]'"), Finding("CUDA", "NVRTC", "13.0")]
    golden("doctor", f"{report(findings)}\n\n{report(findings[:1])}")


def test_the_first_nan(golden):
    for verbosity in ("low", "high"):
        with sc.config.change(exception_verbosity=verbosity), pytest.raises(sc.errors.NumericalError) as caught:
            first_nan()
        golden("error_nan", portable(str(caught.value)))


def test_settings(golden):
    with sc.config.change(cache_dir="/a/folder/with/a/name/that/is/longer/than/its/column", compiler="cc"):
        lines = sc.config.describe().split("\n")
    columns = {line.index("SYMCONV_") for line in lines if "SYMCONV_" in line and "/a/folder" not in line}
    assert len(columns) == 1
    assert max(map(len, lines)) <= 180
    start = next(place for place, line in enumerate(lines) if "/a/folder" in line)
    golden("settings_long_value", "\n".join(lines[start - 1:start + 3]))
