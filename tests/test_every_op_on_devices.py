"""Every op class runs on devices of its own memory and gives what NumPy gives; gradients too. A new op without a case here fails.

The device's name is a parameter: the emulator runs everywhere, `cuda` where `pytest -m gpu` finds a GPU.
"""
from __future__ import annotations

import numpy as np
import pytest
from op_cases import cases
from support import evaluate
from test_every_gradient import op_classes

import symconv as sc
from symconv.config import config

CHECKED = ("Conv depthwise", "Conv of one channel", "ScatterAdd", "Reduce sum", "Softmax", "Pool max", "Concatenate")
"""Run with every access watched, which is slow."""
TOLERANCE = {"float64": 1e-10, "float32": 2e-6, "float16": 2e-3}
_makers = cases()


def test_every_op_has_a_case():
    used = set().union(*(make().op_names for make in _makers.values()))
    assert op_classes() - used == set(), "ops without a case in op_cases.py"


def _check(name, device):
    case = _makers[name]()
    wanted = evaluate(case.outputs, dict(zip(case.inputs, case.arrays, strict=True)))
    function = sc.compile(list(case.inputs), list(case.outputs), device=device, on_unused_input="ignore")
    for found, expected in zip(function(*case.arrays), wanted, strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        tolerance = TOLERANCE.get(expected.dtype.name, 0)
        scale = np.abs(expected[np.isfinite(expected)], dtype=np.float64).max(initial=0) if tolerance else 0
        np.testing.assert_allclose(np.float64(found), np.float64(expected), rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", _makers)
def test_values(name, device):
    with config.change(assert_no_host_op=True):
        _check(name, device)


@pytest.mark.parametrize("name", CHECKED)
def test_values_with_every_access_watched(name):
    with config.change(emulator__checked=True):
        _check(name, "emulator")
