"""The README's programs run as they stand, and what it claims and can be checked cheaply is so."""
from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def claimed(sentence: str) -> None:
    """The README still says this (line breaks aside), so that the check below it is of something it says."""
    assert sentence in " ".join(README.split()), f"the README does not say any more: {sentence}"


def test_the_programs_run(tmp_path: Path) -> None:
    """In a new process with an empty kernel cache, as on a machine that never ran symconv."""
    programs = blocks(README, "python")
    assert programs
    for number, program in enumerate(programs):
        path = tmp_path / f"program_{number}.py"
        path.write_text(program, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SYMCONV_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True, cwd=tmp_path,
                              env=environment, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        loss = re.match(r"loss (\d\.\d{3})\n", done.stdout)
        assert loss, done.stdout
        assert float(loss[1]) < 0.1, "a fair coin has a loss of 0.693"
        assert "kernel sc_conv_" in done.stdout, "explain() names the kernels"


def test_the_commands() -> None:
    (commands,) = (block for block in blocks(README, "") if "pip install" in block)
    assert commands.splitlines() == ["python -m pip install . && python -m symconv demo",
                                     "python -m pip install '.[test]' && python -m pytest -n logical"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "test" in project["optional-dependencies"]


def test_every_file_it_names_is_there() -> None:
    for name in re.findall(r"`([\w/]+(?:/|\.md))`", README):
        assert (ROOT / name).exists(), name


def test_every_file_of_the_module_lists_is_there() -> None:
    """symconv/README.md: names stand relative to the folder of their heading, or to symconv/."""
    package, missing, seen = ROOT / "symconv", [], 0
    text = (package / "README.md").read_text(encoding="utf-8")
    lists = text[text.index("## Folders and import directions"):text.index("## How to add an op")]
    for section in lists.split("\n### ")[1:]:
        heading = re.match(r"`(\w+)/`", section)
        folders = [package, *([package / heading[1]] if heading else [])]
        for line in re.split(r"\n(?=\s*- )", section):
            nested = [each / name for each in folders for name in re.findall(r"`([\w/]+)/`", line)]
            within = [*folders, *nested, *([folders[-1] / "lowered"] if line.startswith("  - ") else [])]
            for name in re.findall(r"`([\w/*]+\.(?:py|js|j2|c\.j2|h\.j2))`", line):
                seen += 1
                if not any(list(folder.glob(name)) for folder in within if folder.is_dir()):
                    missing.append(f"{section.splitlines()[0]}: {name}")
    assert seen > 80
    assert not missing


def test_every_name_of_the_library_is_there() -> None:
    for module, name in re.findall(r"\b(sc|nnet|T)\.(\w+)", README):
        holder = {"sc": sc, "nnet": nnet, "T": T}[module]
        assert hasattr(holder, name), f"{module}.{name}"


def test_devices() -> None:
    claimed('`device="cuda"` has not met a GPU yet')
    claimed("the same CUDA kernels run on the CPU thread by thread, every access watched")
    assert sc.compile([], T.constant(1.0) * 2, device="emulator")() == 2
    if importlib.util.find_spec("cupy") is None:
        with pytest.raises(sc.BackendError, match=r"symconv\[cuda13\]"):
            sc.compile([], T.constant(1.0), device="cuda")


def test_files(tmp_path: Path) -> None:
    claimed('`fn.save("step.symconv")` and `sc.load("step.symconv")`')
    x = T.vector("x")
    sc.compile([x], x * 2).save(tmp_path / "step.symconv")
    assert sc.load(tmp_path / "step.symconv")(np.ones(2, "float32")).tolist() == [2, 2]


def test_kinds_of_convolution() -> None:
    claimed("`nnet.conv2d` is a true convolution (it flips the filters, Theano's rule; `filter_flip=False` does not)")
    image, filters = np.zeros((1, 1, 3, 3)), np.arange(9.0).reshape(1, 1, 3, 3)
    image[0, 0, 0, 0] = 1
    assert nnet.conv2d(image, filters).eval().item() == 8
    assert nnet.conv2d(image, filters, filter_flip=False).eval().item() == 0
    claimed("use cuDNN's words and do not flip")
    assert nnet.conv_fprop(image, filters).eval().item() == 0


def test_state() -> None:
    claimed("`get_value()` and `set_value()` copy unless `borrow=True`")
    array = np.zeros(2)
    state = sc.shared(array)
    array[:] = 1
    state.get_value()[:] = 1
    assert state.get_value().tolist() == [0, 0]
    state.set_value(array)
    array[:] = 2
    assert state.get_value().tolist() == [1, 1]
    borrowed = state.get_value(borrow=True)
    borrowed[:] = 5
    assert state.get_value().tolist() == [5, 5]
    claimed("change it after a call, all at once")
    one, two = sc.shared(np.float64(1)), sc.shared(np.float64(2))
    sc.compile([], updates=[(one, two), (two, one)])()
    assert (one.get_value(), two.get_value()) == (2, 1)


def test_floats_keep_their_type() -> None:
    claimed("float32 with a Python float or with an integer stays float32")
    x = T.vector("x", dtype="float32")
    assert (x * 1.5).dtype == "float32"
    assert (x * T.lvector("n")).dtype == "float32"


def test_both_names_of_compile() -> None:
    claimed("`sc.compile` and `sc.function` are the same")
    assert sc.compile is sc.function


def test_errors_name_the_line() -> None:
    claimed("with the sizes and with your own file and line")
    with pytest.raises(sc.UserError) as caught:
        nnet.conv2d(np.zeros((1, 3, 8, 8)), np.zeros((4, 2, 3, 3)))
    text = str(caught.value)
    assert Path(__file__).name in text
    assert "(1, 3, 8, 8)" in text or "[1,3,8,8]" in text


def test_new_batch_sizes_compile_nothing(tmp_path: Path) -> None:
    claimed("A new batch size usually needs planning only")
    with sc.config.change(cache_dir=str(tmp_path)):
        x = T.matrix("x", dtype="float32")
        f = sc.compile([x], T.exp(x) * 2)
        np.testing.assert_allclose(f(np.ones((64, 16), np.float32)), 2 * np.e, rtol=1e-6)
        built = {path.name for path in tmp_path.rglob("*.so")}
        for batch in (63, 128, 7):
            np.testing.assert_allclose(f(np.ones((batch, 16), np.float32)), 2 * np.e, rtol=1e-6)
        assert {path.name for path in tmp_path.rglob("*.so")} == built


def test_printed_forms() -> None:
    claimed("`sc.debugprint(x)` prints an expression or a compiled function")
    claimed("`sc.pprint` writes mathematics")
    x = T.vector("x")
    f = sc.compile([x], T.exp(x) + 1, name="f")
    f([1.0])
    assert "exp" in sc.pprint(T.exp(x) + 1)
    assert "\n" not in sc.pprint(T.exp(x) + 1)
    assert "elementwise" in f.explain()


def test_a_profile_has_times() -> None:
    claimed("`fn.profile` (compile with `profile=True`) has the time of every step")
    x = T.vector("x")
    f = sc.compile([x], T.exp(x) + 1, profile=True)
    f([1.0, 2.0])
    (program,) = f.profile.as_dict()["programs"]
    assert program["calls"] == 1
    assert len(program["steps"]) == len(f.programs[0].steps) > 0
    assert program["seconds"] > 0
