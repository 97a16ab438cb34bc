"""The house rules: import directions, sizes, who imports the heavy packages, what importing costs."""
from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "symconv"
FILES = sorted(ROOT.rglob("*.py"))
BASE = {"errors", "config", "dtypes"}
MAY_IMPORT = {
    "graph": BASE | {"graph"},
    "ops": BASE | {"graph", "ops"},
    "tensor": BASE | {"graph", "ops", "tensor"},
    "rewrites": BASE | {"graph", "ops", "rewrites", "target"},
    "codegen": BASE | {"graph", "ops", "codegen", "target"},
    "runtime": BASE | {"graph", "ops", "rewrites", "codegen", "runtime", "target", "printing"},
}


def imported_modules(path: Path):
    """(full module name, line) of every import in a file, relative ones resolved."""
    package = path.relative_to(ROOT.parent).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[:len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            if not node.module:
                yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_import_directions(folder):
    wrong = []
    for path in (ROOT / folder).rglob("*.py"):
        for module, line in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "symconv" and len(parts) > 1 and parts[1] not in MAY_IMPORT[folder]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong


def test_only_what_comes_after_rewriting_knows_lowered_operations():
    before = [path for folder in ("graph", "ops", "tensor") for path in (ROOT / folder).rglob("*.py")
              if ROOT / "ops" / "lowered" not in path.parents]
    wrong = [f"{path.relative_to(ROOT)}:{line} imports {module}" for path in before for module, line in imported_modules(path)
             if module.startswith("symconv.ops.lowered")]
    assert not wrong


def test_jinja2_is_imported_in_one_file():
    importers = {path.name for path in FILES for module, _ in imported_modules(path) if module.split(".")[0] == "jinja2"}
    assert importers == {"templates.py"}


def test_files_and_functions_keep_their_sizes():
    large = []
    for path in FILES:
        text = path.read_text()
        if text.count("\n") > 500:
            large.append(f"{path.relative_to(ROOT)} has {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno > 80:
                large.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not large


def test_importing_loads_nothing_heavy_and_touches_no_cache(tmp_path):
    code = ("import sys, json, symconv; print(json.dumps([name for name in "
            "('jinja2', 'networkx', 'PIL', 'tqdm', 'cupy', 'cudnn', 'graphviz', 'scipy') if name in sys.modules]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent,
                          env={"SYMCONV_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""})
    assert json.loads(done.stdout) == []
    assert not (tmp_path / "cache").exists()


def test_the_version_is_told_once():
    import tomllib

    import symconv

    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["project"]
    assert symconv.__version__ == project["version"]
