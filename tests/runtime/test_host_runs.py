"""What has no kernel and no reference on a device: on the host with a warning, or an error; never in silence."""
from __future__ import annotations

import logging
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from device_arrays import Array

from symconv.config import config
from symconv.errors import BackendError
from symconv.graph import Op, TensorType, Variable
from symconv.graph.node import make_apply
from symconv.runtime.device_program import DeviceProgram


@dataclass(frozen=True, slots=True)
class _Doubled(Op):
    """Twice x; `how` says what its reference asks of an array that a device's package has not."""

    how: str

    def infer(self, x):
        return (x,)

    def reference(self, x):
        if self.how == "converts":
            return (np.asarray(x) * 2,)
        if self.how == "asks for a method":
            return (x.newbyteorder() * 2,) if not isinstance(x, np.ndarray) else (x * 2,)
        return (x * 2,)


def results(how: str):
    """What a program makes of the op on a device's array."""
    program = DeviceProgram.__new__(DeviceProgram)
    program.device = SimpleNamespace(name="cuda:0", to_array=Array)
    node = make_apply(_Doubled(how), [Variable(TensorType("float32", (3,)))])
    return program._reference_results(node, [Array(np.ones(3, np.float32))])


@pytest.mark.parametrize("how", ["converts", "asks for a method"])
def test_a_run_on_the_host_is_told_and_comes_back_to_the_device(how, caplog):
    with caplog.at_level(logging.WARNING, logger="symconv"):
        (found,) = results(how)
    assert isinstance(found, Array)
    np.testing.assert_array_equal(found.get(), 2)
    assert "it runs on the host" in caplog.text
    assert "_Doubled" in caplog.text


@pytest.mark.parametrize("how", ["converts", "asks for a method"])
def test_the_setting_makes_it_an_error(how, monkeypatch):
    monkeypatch.setattr(config, "assert_no_host_op", True)
    with pytest.raises(BackendError, match="its reference does not run there"):
        results(how)


def test_what_runs_on_the_device_is_not_told(caplog, monkeypatch):
    monkeypatch.setattr(config, "assert_no_host_op", True)
    with caplog.at_level(logging.DEBUG, logger="symconv"):
        (found,) = results("multiplies")
    assert isinstance(found, Array)
    assert not caplog.text
