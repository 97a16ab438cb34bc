"""Every CUDA template at its default configurations, compiled by NVRTC for every architecture: none spills, and what each needs
of a multiprocessor is a committed table (`resources.txt`; pytest --update-golden writes it)."""
from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import pytest
from cuda_resources import launches

from symconv.codegen.cuda.cubin import Resources, read_resources
from symconv.codegen.cuda.kernel import ARCHITECTURES
from symconv.codegen.cuda.nvrtc import compile_kernel, spilled_bytes
from symconv.codegen.cuda.nvrtc_library import find_nvrtc, missing_nvrtc_error

TABLE = Path(__file__).parent / "resources.txt"
pytestmark = pytest.mark.skipif(find_nvrtc() is None, reason=f"CUDA kernels cannot be compiled: {missing_nvrtc_error()}")


def _kernels(arch: int) -> dict[str, str]:
    """The source of every kernel, by name; where two have one name (for other dtypes of constants, say) the later is numbered."""
    found: dict[str, str] = {}
    for kernel in launches(arch):
        names = [kernel.name, *(f"{kernel.name}#{number}" for number in range(2, 99))]
        name = next(name for name in names if found.get(name, kernel.source) == kernel.source)
        found[name] = kernel.source
    return found


@pytest.fixture(scope="module")
def sources() -> dict[tuple[str, int], str]:
    """The source of every kernel for every architecture that it is for."""
    return {(name, arch): source for arch in ARCHITECTURES for name, source in _kernels(arch).items()}


@pytest.fixture(scope="module")
def resources(sources) -> dict[tuple[str, int], Resources]:
    """What every kernel needs on every architecture."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cubins = pool.map(lambda item: compile_kernel(item[1], item[0][1]), sources.items())
        return {key: read_resources(cubin)[key[0].split("#")[0]] for key, cubin in zip(sources, cubins, strict=True)}


def _table(resources: dict[tuple[str, int], Resources]) -> str:
    nvrtc = find_nvrtc()
    assert nvrtc is not None
    names = sorted({name for name, _ in resources})
    width = max(map(len, names))
    lines = [f"NVRTC {nvrtc.version[0]}.{nvrtc.version[1]}: registers/bytes of shared memory (from sm_90 on 1024 of them are the "
             "system's)+bytes of local memory",
             " ".join([" " * width, *(f"{f'sm_{arch}':>9}" for arch in ARCHITECTURES)])]
    for name in names:
        cells = [resources.get((name, arch)) for arch in ARCHITECTURES]
        lines.append(" ".join([f"{name:{width}}", *(f"{_cell(cell) if cell else '-':>9}" for cell in cells)]))
    return "\n".join(lines) + "\n"


def _cell(found: Resources) -> str:
    return f"{found.registers}/{found.shared_bytes}" + (f"+{found.local_bytes}" if found.local_bytes else "")


def test_no_default_configuration_spills(resources, sources):
    """Frames in local memory may hold arrays, and what CUDA's sine keeps there, but no registers."""
    framed = [key for key, found in resources.items() if found.local_bytes]
    assert not [key for key in framed if spilled_bytes(sources[key], key[1])]


def test_the_table_is_as_compiled(resources, request):
    text = _table(resources)
    if request.config.getoption("--update-golden"):
        TABLE.write_text(text)
    written = TABLE.read_text()
    if written.split(":")[0] != text.split(":")[0]:
        pytest.skip(f"the table was made with {written.split(':')[0]}, here is {text.split(':')[0]}")
    assert text == written


def test_every_template_has_a_case():
    """A template is used if one of its own lines, which no other template has, stands in a kernel but for what is filled in."""
    folder = Path(str(files("symconv.codegen") / "templates" / "cuda"))
    lines = {path.name: {tuple(_fixed(line)) for line in path.read_text().splitlines() if len("".join(_fixed(line))) > 12}
             for path in folder.glob("*.cu.j2") if "__global__" in path.read_text()}
    sources = [line for source in _kernels(90).values() for line in source.splitlines()]
    for name, own in lines.items():
        only = own - set().union(*(other for each, other in lines.items() if each != name))
        patterns = re.compile("|".join(".*".join(map(re.escape, parts)) for parts in only))
        assert any(patterns.fullmatch(line.strip()) for line in sources), f"{name} has no case in cuda_resources.py"


def _fixed(line: str) -> list[str]:
    """The parts of a template's line between what is filled in; none of a line that is a statement."""
    return [] if re.search("{[%#]", line) else re.split(r"{{.*?}}", line.strip())
