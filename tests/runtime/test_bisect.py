"""python -m symconv bisect finds a planted wrong rewrite, and says so where no rewrite is to blame."""
from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

import symconv
from symconv.cli import main
from symconv.config import config
from symconv.rewrites.fuel import Fuel

PLANTED = """
    import numpy as np
    import symconv as sc, symconv.tensor as T
    from symconv.ops.elementwise import Elementwise
    from symconv.rewrites import pipeline
    from symconv.rewrites.rule import Phase, rule

    @rule(Elementwise, scalar="tanh")
    def half_instead_of_tanh(node, context):
        return node.inputs[0] * 0.5

    pipeline.BOUND = (Phase("planted", (half_instead_of_tanh,)), *pipeline.BOUND)
    pipeline.PIPELINE = pipeline.SYMBOLIC + pipeline.BOUND
"""
PROGRAM = """
    import numpy as np
    import symconv as sc, symconv.tensor as T
    x = T.vector("x")
    y = T.exp(T.tanh(x) * 1 + 0) - 0
    function = sc.compile([x], [y, (x * 2) / 2 + 0])
    assert abs(function(np.ones(3, np.float32))[0][0] - {wanted}) < 1e-3, "the answer is wrong"
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Writes a script that finds symconv where this process found it."""
    home = str(Path(symconv.__file__).parent.parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH", "")))))

    def write(text, **values):
        path = tmp_path / "script.py"
        path.write_text("\n".join(textwrap.dedent(each) for each in text).format(**values) if values else
                        "\n".join(textwrap.dedent(each) for each in text))
        return str(path)

    return write


def test_a_planted_rewrite_is_found(script, capsys):
    assert main(["bisect", script([PLANTED, PROGRAM], wanted=2.1416)]) == 0
    text = capsys.readouterr().out
    assert "changes the answer: the rule half_instead_of_tanh (phase planted)" in text
    assert "script.py" in text
    assert "the answer is wrong" in text


def test_a_script_that_succeeds_or_always_fails_is_told(script, capsys):
    assert main(["bisect", script([PROGRAM], wanted=2.1416)]) == 2
    assert "succeeds with all rewrites" in capsys.readouterr().out
    assert main(["bisect", script([PROGRAM], wanted=7)]) == 2
    assert "fails without any rewrite too" in capsys.readouterr().out
    assert main(["bisect", "no such script.py"]) == 2
    assert "there is no script" in capsys.readouterr().out


def test_fuel_is_for_the_whole_process_and_starts_anew_when_set():
    fuel = Fuel()
    with config.change(fuel=3):
        assert fuel.left == 3
        fuel.spent += 2
        assert fuel.left == 1
        fuel.spent += 2
        assert fuel.left == 0
    with config.change(fuel=5):
        assert fuel.left == 5
    assert fuel.left == -1
