"""Without any C compiler functions run on the NumPy references: the right numbers, state and one warning."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import importlib.util, sys, warnings
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "ziglang" else find(name, *rest)
import numpy as np, symconv as sc, symconv.tensor as T
from symconv.tensor import nnet
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x, w = T.tensor4("x"), sc.shared(np.ones((2, 3, 3, 3), "float32"))
    loss = T.relu(nnet.conv2d(x, w)).sum()
    train = sc.compile([x], [loss, x.T + 1], updates=[(w, w - sc.grad(loss, w) / 8)], mode=sys.argv[1])
    first, moved = train(np.ones((1, 3, 5, 5), "float32"))
    again = sc.compile([x], x.T, mode=sys.argv[1])
    again(np.ones((1, 3, 5, 5), "float32"))
assert moved.shape == (5, 5, 3, 1) and moved.max() == 2
assert w.get_value().tolist() == np.full((2, 3, 3, 3), 1 - 9 / 8).tolist()
print(float(first), sum("there is no C compiler" in str(each.message) for each in caught))
"""


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile", "reference"])
def test_training_without_a_compiler(mode, tmp_path):
    environment = {**os.environ, "PATH": "", "CC": "", "SYMCONV_CACHE_DIR": str(tmp_path / "cache"),
                   "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run([sys.executable, "-c", PROGRAM, mode], env=environment, capture_output=True, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["486.0", "1"]
