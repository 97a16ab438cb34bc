"""Every text form against a file that people have read. `pytest tests/printing --update-golden` writes them anew."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
from printing.graphs import arithmetic, classifier, classify, counter, hostile

import symconv as sc
from symconv.runtime import targets

ROOT = str(Path(__file__).parent.parent.parent)
FORMS = {"tree": lambda obj: sc.debugprint(obj, file="str", print_type=True), "mathematics": sc.pprint, "dot": sc.to_dot}


@pytest.fixture(autouse=True)
def fixed_machine(monkeypatch):
    """The same kernels on every machine: AVX2, one thread, one convolution kernel."""
    monkeypatch.setattr(targets, "_vector_bytes", lambda: 32)
    with sc.config.change(threads=1, conv__implementation="conv_gemm"):
        yield


def portable(text: str) -> str:
    """Without the folder of the checkout and without expected times and workspaces, which are the kernels' own affair."""
    text = text.replace(ROOT, "ROOT")
    text = re.sub(r"\d+(\.\d)? [KM]?i?B\b|\d+ bytes", "# bytes", text)
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
