"""The machine's ceilings: measured once, kept on disk for this machine, checked, and defaults where measuring fails."""
from __future__ import annotations

import json
import logging
import math
import time

import numpy as np
import pytest

import symconv as sc
from symconv.codegen import ceilings, notes
from symconv.errors import BackendError
from symconv.target import DEFAULT_CEILINGS, Ceilings, Rates, Target

GOOD = Ceilings(Rates(5e9, 9e9, 2e10, 4e10), Rates(9e9, 1.5e10, 4e10, 8e10), 2, 1 << 19, 1 << 25, "")


@pytest.fixture
def folder(tmp_path):
    """An empty cache; nothing is remembered from another."""
    ceilings._ceilings.cache_clear()
    with sc.config.change(cache_dir=str(tmp_path / "kernels")):
        yield tmp_path / "kernels"
    ceilings._ceilings.cache_clear()


@pytest.fixture
def counted(monkeypatch):
    """Measuring is not done but counted."""
    calls = []
    monkeypatch.setattr(ceilings, "_measured", lambda *facts: calls.append(facts) or GOOD)
    return calls


def again(vector_bytes=32):
    """As another process would ask."""
    ceilings._ceilings.cache_clear()
    return ceilings.machine_ceilings(vector_bytes)


def note(folder):
    (path,) = (folder / ceilings.CEILINGS).iterdir()
    return path


def test_what_is_measured_is_what_a_processor_can_do():
    start = time.perf_counter()
    found = ceilings._measured(16, 2)
    assert time.perf_counter() - start < 20  # a third of a second where nothing else runs
    assert ceilings._implausible(found) == ""
    assert found.reason == ""
    # An independent yardstick: a copy by NumPy cannot be ten times as fast, nor a hundred times as slow.
    source = np.ones(8 << 20, np.float32)
    result = np.empty_like(source)
    result[...] = source
    took = min(timed_copy(result, source) for _ in range(3))
    numpy_rate = 2 * source.nbytes / took
    assert found.one.memory / 10 < numpy_rate < found.one.memory * 100


def timed_copy(result, source):
    start = time.perf_counter()
    np.copyto(result, source)
    return time.perf_counter() - start


def test_measured_once_and_read_by_the_next_process(folder, counted):
    assert again() == GOOD
    assert again() == GOOD
    assert len(counted) == 1
    assert again(64) == GOOD  # another vector width is another machine
    assert len(counted) == 2
    assert len(list((folder / ceilings.CEILINGS).iterdir())) == 2
    assert (folder / ceilings.CEILINGS).stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("harm", ["cut", "bytes", "changed", "foreign", "impossible", "fields"])
def test_a_note_that_cannot_be_believed_is_logged_and_made_anew(folder, counted, caplog, harm):
    again()
    path = note(folder)
    text = path.read_text()
    values = json.loads(text)
    if harm == "cut":
        path.write_text(text[:len(text) // 2])
    elif harm == "bytes":
        path.write_bytes(b"\xff\xfe\x00")
    elif harm == "changed":
        values["values"]["one"]["fmas"] = 7e9
        path.write_text(json.dumps(values))
    elif harm == "foreign":
        values["facts"]["processor"] = "another"
        path.write_text(json.dumps(values))
    else:
        wrong = {"impossible": {**values["values"], "l2_bytes": 0}, "fields": {"speed": 1.0}}[harm]
        notes.write_note(ceilings.CEILINGS, values["facts"], wrong)
    with caplog.at_level(logging.WARNING):
        assert again() == GOOD
    assert len(counted) == 2
    assert "again" in caplog.text
    caplog.clear()
    assert again() == GOOD  # the note is whole again
    assert len(counted) == 2
    assert not caplog.text


@pytest.mark.parametrize("failure", [BackendError("the compiler says no\n  found: much"), OSError("no room"), MemoryError()])
def test_where_measuring_fails_the_defaults_say_so(folder, monkeypatch, caplog, failure):
    def fail(*_):
        raise failure

    monkeypatch.setattr(ceilings, "_measured", fail)
    found = again()
    assert (found.one, found.team) == (DEFAULT_CEILINGS.one, DEFAULT_CEILINGS.team)
    assert "measuring them failed" in found.reason
    assert "default ceilings" in caplog.text
    assert not (folder / ceilings.CEILINGS).exists()


@pytest.mark.parametrize("wrong", [Rates(math.nan, 1e10, 1e10, 1e10), Rates(5e9, 0.0, 1e10, 1e10), Rates(1.0, 1e10, 1e10, 1e10)])
def test_what_cannot_be_right_is_not_used(folder, monkeypatch, wrong):
    monkeypatch.setattr(ceilings, "_measured", lambda *_: Ceilings(wrong, wrong, 1, 1, 1, ""))
    assert "cannot be right" in again().reason
    assert again().one == DEFAULT_CEILINGS.one


def test_deterministic_takes_the_defaults(folder, counted):
    with sc.config.change(deterministic=True):
        assert again().one == DEFAULT_CEILINGS.one
        assert "deterministic" in again().reason
    assert not counted


def test_rates_of_a_team():
    assert GOOD.rates(1) == GOOD.one
    assert GOOD.rates(2) == GOOD.rates(7) == GOOD.team
    assert DEFAULT_CEILINGS.rates(4).fmas == 4 * DEFAULT_CEILINGS.one.fmas
    three = Ceilings(Rates(1e9, 1e9, 1e9, 1e9), Rates(2e9, 2e9, 2e9, 2e9), 5)
    assert three.rates(3) == Rates(1.5e9, 1.5e9, 1.5e9, 1.5e9)


def test_a_target_reckons_with_the_ceilings():
    target = Target(threads=2, find_ceilings=lambda: GOOD)
    assert target.peak_flops("float32") == 2 * 8 * 9e9
    assert target.peak_flops("float64", 1) == 2 * 4 * 5e9
    assert target.copy_seconds(3e9) == pytest.approx(0.2)
    assert target.copy_seconds(4e9, threads=1, working_set=1 << 19) == pytest.approx(0.1)
    assert target.copy_seconds(4e9, working_set=1 << 22) == pytest.approx(0.1)
    assert target == Target(threads=2)  # ceilings change no kernel


def test_explain_says_what_it_reckons_with(folder, monkeypatch):
    import symconv.tensor as T
    from symconv.tensor import nnet

    monkeypatch.setattr(ceilings, "_measured", lambda *_: Ceilings(Rates(0, 0, 0, 0)))
    x = T.tensor4("x", "float32")
    function = sc.compile([x], nnet.conv2d(x, np.ones((2, 2, 3, 3), np.float32)))
    function.prepare((1, 2, 8, 8))
    text = function.explain()
    assert "stated defaults: what was measured cannot be right" in text
    assert "% of the peak" in text
    machine = function.explain(format="dict")["machine"]
    assert machine["memory"] == DEFAULT_CEILINGS.rates(machine["threads"]).memory
    assert "cannot be right" in machine["reason"]


def test_notes_are_listed_checked_and_cleared_with_the_cache(folder, counted):
    from symconv.codegen.cache import current_cache
    from symconv.codegen.cache_contents import broken_entries, cache_summary, clear_cache

    again()
    assert "1 ceilings" in cache_summary(current_cache())
    assert broken_entries(current_cache()) == []
    note(folder).write_text(note(folder).read_text().replace("fmas", "fmax"))
    assert [entry.path for entry in broken_entries(current_cache())] == [note(folder)]
    clear_cache(current_cache())
    assert cache_summary(current_cache()) == "empty"
