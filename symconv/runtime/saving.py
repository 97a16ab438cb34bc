"""`Function.save(path)` and `sc.load(path)`: a compiled function as a file.

The file is a zip archive: `function.json` has the expressions as they were given to `compile` and its options, `arrays/N.npy` the
constants and the values of shared variables at the time of saving.  Loading compiles again (kernels come from the cache where they
are known) and runs nothing that is in the file.  Of a function for a GPU that need not be here, `code/N.bin` has the machine code
(`machine_code.py`), which is used on that GPU instead of compiling where the user says so.
"""
from __future__ import annotations

import io
import json
import os
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..config import VERSION
from ..errors import ArgumentError, explain_error
from ..graph import Variable
from .arguments import In, Out, make_inputs
from .compile import compile_recipe
from .cross_compile import CrossFunction
from .encoding import GraphWriter, Numbered, checked_array, read_graph
from .file_places import file_place, whole_file
from .function import Function, Recipe
from .machine_code import MachineCode, decode_machine_code, encode_machine_code
from .mode import Mode
from .shared import SharedVariable, check_update

FORMAT = 1
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, EOFError, tokenize.TokenError, LookupError, ValueError, TypeError,
            AttributeError, ArithmeticError, MemoryError, RuntimeError)
"""What reading a damaged or hostile file may raise, below our own checks."""

_DOCUMENT = "function.json"


def save(function: Function, path: str | os.PathLike[str]) -> None:
    """Write a function to a file, replacing it as a whole; see the module's text."""
    target = file_place(path)
    recipe, writer = function.recipe, GraphWriter()
    document: dict[str, Any] = {"format": FORMAT, "symconv": VERSION}
    document["inputs"] = [_input(each, writer) for each in recipe.inputs]
    document["outputs"] = _structure(recipe.outputs, writer)
    document["updates"] = [writer.add(pair) for pair in recipe.updates]
    document["givens"] = [writer.add(pair) for pair in recipe.givens.items()]
    document["default_updates"] = _default_updates(writer)
    document["options"] = {**recipe.options, "mode": _mode(recipe.options["mode"])}
    document["graph"] = writer.rows
    blobs: list[bytes] = []
    if isinstance(function, CrossFunction):
        document["machine_code"], blobs = encode_machine_code(function.machine_code())
    with whole_file(target) as file:
        _write(file, document, writer.arrays, blobs)


def load(path: str | os.PathLike[str], device: str | None = None, machine_code: bool | None = None) -> Function:
    """The function of a file that `Function.save` wrote, compiled for this machine.

    Its shared variables are new ones, with the values that were saved (`function.shared_variables`).  Loading runs nothing that is
    in the file.  A function that was compiled for a GPU (`compile(…, target="sm_90")`) brings machine code; calls of the function
    run it on that GPU only if you say `machine_code=True`: say so of files from those whom you trust.

    Args:
        path: the file.
        device: where to compile it for; None: as it was saved.
        machine_code: whether to use the machine code for a GPU that the file may have; what is not for this GPU and its software is
            compiled anew, with a warning.  False: all of it is; None (default): all of it, with a warning where the file has some.

    Raises:
        ArgumentError: the file is no saved function, is damaged, or was written by another format.
        BackendError: this machine cannot run it.

    >>> import numpy as np, symconv as sc, symconv.tensor as T
    >>> x = T.vector("x")
    >>> import tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sc.compile([x], 2 * x).save(os.path.join(folder, "double.symconv"))
    ...     double = sc.load(os.path.join(folder, "double.symconv"))
    >>> double(np.ones(2, "float32")).tolist()
    [2.0, 2.0]
    """
    file = open(path, "rb")  # noqa: SIM115  closed below; that it is not there is the user's own OSError
    try:
        with file, zipfile.ZipFile(file) as archive:
            document = json.loads(archive.read(_DOCUMENT))
            if document.get("format") != FORMAT:
                raise ArgumentError(explain_error("the file has another format", f"{document.get('format')}, written by symconv "
                                                  f"{document.get('symconv')}", f"this version reads format {FORMAT}"))
            recipe = _recipe(document, archive)
            code = _machine_code(document, archive) if machine_code else None
            has_unused_code = machine_code is None and document.get("machine_code") is not None
    except _DAMAGED as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(explain_error("this is no whole file of a saved function", f"{path}: {type(error).__name__}: {error}",
                                          "save it again with Function.save")) from None
    if has_unused_code:
        warnings.warn(f"{path} holds machine code for a GPU, which is not used: everything is compiled anew; say "
                      "machine_code=True if you trust whoever wrote it, machine_code=False if not", stacklevel=2)
    if device is not None:
        recipe.options["device"] = device
    return compile_recipe(recipe, code)


def _machine_code(document: Any, archive: zipfile.ZipFile) -> MachineCode | None:
    found = document.get("machine_code")
    return None if found is None else decode_machine_code(found, lambda number: archive.read(f"code/{number}.bin"))


def _write(file: Any, document: Any, arrays: list[Any], blobs: list[bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_DOCUMENT, json.dumps(document))
        for number, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array).reshape(np.shape(array)), allow_pickle=False)
            archive.writestr(f"arrays/{number}.npy", buffer.getvalue())
        for number, blob in enumerate(blobs):
            archive.writestr(f"code/{number}.bin", blob)


def _input(each: In, writer: GraphWriter) -> Any:
    default = None
    if each.default is not None:
        default = len(writer.arrays)
        writer.arrays.append(each.default)
    return {"variable": writer.add([each.variable])[0], "name": each.name, "strict": each.strict,
            "allow_downcast": each.allow_downcast, "default": default}


def _structure(outputs: Any, writer: GraphWriter) -> Any:
    """The form of the outputs with the numbers of their variables."""
    if outputs is None:
        return None
    if isinstance(outputs, Mapping):
        return {"dict": [[key, _structure(each, writer)] for key, each in outputs.items()]}
    if isinstance(outputs, (list, tuple)):
        kind = "tuple" if isinstance(outputs, tuple) else "list"
        return {kind: [_structure(each, writer) for each in outputs]}
    if isinstance(outputs, Out):
        return {"out": writer.add([outputs.variable])[0], "on_device": outputs.on_device}
    if not isinstance(outputs, Variable):
        from ..graph.operators import meaning

        outputs = meaning("as_variable")(outputs)
    return writer.add([outputs])[0]


def _read_structure(plain: Any, variables: Numbered) -> Any:
    if plain is None or isinstance(plain, int):
        return None if plain is None else variables[plain]
    if "dict" in plain:
        return {str(key): _read_structure(each, variables) for key, each in plain["dict"]}
    if "out" in plain:
        return Out(variables[plain["out"]], on_device=bool(plain["on_device"]))
    (kind, parts), = plain.items()
    return {"list": list, "tuple": tuple}[kind](_read_structure(each, variables) for each in parts)


def _default_updates(writer: GraphWriter) -> list[list[int]]:
    """Pairs (shared variable, its default update), those that these bring in too."""
    pairs: list[list[int]] = []
    done: set[Variable] = set()
    while waiting := [each for each in writer.numbers if isinstance(each, SharedVariable) and each not in done]:
        for each in waiting:
            done.add(each)
            if each.default_update is not None:
                pairs.append(writer.add([each, each.default_update]))
    return pairs


def _mode(mode: Mode | str | None) -> Any:
    return asdict(mode) if isinstance(mode, Mode) else mode


def _recipe(document: Any, archive: zipfile.ZipFile) -> Recipe:
    def array(number: int) -> Any:
        return np.lib.format.read_array(io.BytesIO(archive.read(f"arrays/{int(number)}.npy")), allow_pickle=False)

    variables = read_graph(document["graph"], array)
    for state, new in document["default_updates"]:
        _state(variables[state]).default_update = variables[new]
    inputs = tuple(make_inputs([_read_input(each, variables, array) for each in document["inputs"]], None))
    updates = tuple((state := _state(variables[old]), check_update(state, variables[new])) for old, new in document["updates"])
    if len({state for state, _ in updates}) < len(updates):
        raise ArgumentError(explain_error("the file updates a shared variable twice"))
    givens = {variables[old]: variables[new] for old, new in document["givens"]}
    return Recipe(inputs, _read_structure(document["outputs"], variables), updates, givens, _read_options(document["options"]))


def _read_input(plain: Any, variables: Numbered, array: Any) -> In:
    variable = variables[plain["variable"]]
    default = None if plain["default"] is None else checked_array(array(plain["default"]), variable.type)
    name = _text(plain["name"], "the name of an input")
    allow_downcast = plain["allow_downcast"]
    return In(variable, name, default, plain["strict"] is True, None if allow_downcast is None else bool(allow_downcast))


def _read_options(plain: Any) -> dict[str, Any]:
    """The options of `compile` that a file may hold, each of its type."""
    options = {name: _text(plain[name], name) for name in ("device", "on_unused_input", "name")}
    return {**options, "mode": _read_mode(plain["mode"]), "profile": plain["profile"] is True, "target": None}


def _read_mode(plain: Any) -> Mode | str | None:
    if not isinstance(plain, dict):
        return _text(plain, "mode")
    names = {key: None if plain[key] is None else tuple(str(each) for each in plain[key]) for key in ("include", "exclude")}
    check = str(plain["check"])
    if check not in ("", "debug", "nan_guard"):
        raise ArgumentError(explain_error("the file asks for a check that there is not", repr(check)))
    return Mode(str(plain["name"]), names["include"], names["exclude"] or (), plain["reference"] is True, check)


def _text(plain: Any, what: str) -> str | None:
    if plain is not None and not isinstance(plain, str):
        raise ArgumentError(explain_error(f"{what} in the file is no text", repr(plain)[:50]))
    return plain


def _state(variable: Variable) -> SharedVariable:
    if not isinstance(variable, SharedVariable):
        raise ArgumentError(explain_error("the file updates something that is no shared variable", repr(variable)))
    return variable
