"""Graphs as plain data (JSON and arrays) and back, for files that may be loaded without trusting who wrote them.

An op is written as the name of its class and its fields; only the dataclasses of `symconv.ops` and plain values can be read
back, so a file holds nothing that runs.  Floats are written in hexadecimal, exactly.
"""
from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, InternalError, explain_error
from ..graph import Apply, Constant, Op, TensorType, Variable, toposort
from ..graph.node import make_apply
from ..graph.provenance import SourceLine
from ..graph.variable import with_source
from .container import Container
from .shared import SharedVariable

Array = np.ndarray[Any, Any]
Plain = Any  # what json writes


@lru_cache(maxsize=1)
def _classes() -> dict[str, type]:
    """The dataclasses and enumerations of `symconv.ops` and its folders by name, which is all that files know of them."""
    import symconv.ops

    found: dict[str, type] = {}
    for info in pkgutil.walk_packages(symconv.ops.__path__, "symconv.ops."):
        module = importlib.import_module(info.name)
        for name, each in vars(module).items():
            if isinstance(each, type) and each.__module__ == info.name and (is_dataclass(each) or issubclass(each, Enum)):
                if name in found:
                    raise InternalError(f"files cannot tell {found[name].__module__}.{name} from {each.__module__}.{name}")
                found[name] = each
    return found


def encode_value(value: Any) -> Plain:
    """A field of an op as plain data."""
    if value is None or (isinstance(value, (bool, int, str)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, tuple):
        return {"tuple": [encode_value(each) for each in value]}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    if is_dataclass(value) and _classes().get(type(value).__name__) is type(value):
        stored = {each.name: encode_value(getattr(value, each.name)) for each in fields(value) if each.init}
        return {"class": type(value).__name__, "fields": stored}
    raise InternalError(f"a field of type {type(value).__name__} cannot be saved: {value!r}")


def decode_value(plain: Plain) -> Any:
    """The value of plain data; ArgumentError for anything but what `encode_value` writes."""
    if plain is None or isinstance(plain, (bool, int, str)):
        return plain
    if isinstance(plain, dict):
        if "float" in plain:
            return float.fromhex(plain["float"])
        if "tuple" in plain:
            return tuple([decode_value(each) for each in plain["tuple"]])
        made = _classes().get(str(plain.get("enum", plain.get("class"))))
        if made is not None and "enum" in plain and issubclass(made, Enum):
            return made(plain["value"])
        if made is not None and "class" in plain and is_dataclass(made):
            return made(**{name: decode_value(each) for name, each in plain["fields"].items()})
    raise ArgumentError(explain_error("the file holds something that is no part of an expression", repr(plain)[:200],
                                      "load files that Function.save wrote, with the same version of symconv"))


class GraphWriter:
    """Numbers the variables of expressions, inputs before readers, and writes leaves and nodes as plain data.

    `arrays` gets the values of constants and shared variables.
    """

    def __init__(self) -> None:
        self.numbers: dict[Variable, int] = {}
        self.rows: list[Plain] = []
        self.arrays: list[Array] = []

    def add(self, variables: Iterable[Variable]) -> list[int]:
        """The numbers of these variables; what they need is written first."""
        wanted = list(variables)
        for node in toposort(wanted):
            for leaf in node.inputs:
                if leaf.apply is None:
                    self._add_leaf(leaf)
            self._add_node(node)
        for variable in wanted:
            if variable.apply is None:
                self._add_leaf(variable)
        return [self.numbers[variable] for variable in wanted]

    def _add_leaf(self, leaf: Variable) -> None:
        if leaf in self.numbers:
            return
        row: dict[str, Plain] = {"type": encode_type(leaf.type), "name": leaf.name, "source": _lines(leaf)}
        if isinstance(leaf, Constant):
            row["constant"] = self._add_array(leaf.data)
        elif isinstance(leaf, SharedVariable):
            row["shared"] = self._add_array(leaf.get_value())
        self.numbers[leaf] = len(self.numbers)
        self.rows.append(row)

    def _add_node(self, node: Apply) -> None:
        if node.outputs[0] in self.numbers:
            return
        self.rows.append({"op": encode_value(node.op), "inputs": [self.numbers[each] for each in node.inputs],
                          "outputs": [{"type": encode_type(each.type), "name": each.name} for each in node.outputs],
                          "source": _lines(node)})
        for output in node.outputs:
            self.numbers[output] = len(self.numbers)

    def _add_array(self, array: Array) -> int:
        self.arrays.append(array)
        return len(self.arrays) - 1


class Numbered(list[Variable]):
    """Variables by the numbers of a file: whole numbers from 0, nothing else."""

    def __getitem__(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self):
            raise ArgumentError(explain_error("the file names a variable that is not there", repr(number)[:50]))
        return super().__getitem__(number)


def read_graph(rows: Sequence[Plain], array: Callable[[int], Array]) -> Numbered:
    """The variables of rows that a `GraphWriter` wrote, by their numbers; `array` gives the values."""
    variables = Numbered()
    for row in rows:
        source = tuple(_place(*place) for place in row["source"])
        if "op" not in row:
            variables.append(with_source(_leaf(row, array), source))
            continue
        op = decode_value(row["op"])
        if not isinstance(op, Op):
            raise ArgumentError(explain_error("the file holds a node without an operation", repr(op)))
        node = make_apply(op, [variables[number] for number in row["inputs"]], source)  # types are inferred, not believed
        for output, told in zip(node.outputs, row["outputs"], strict=True):
            _check_same(output.type, decode_type(told["type"]))
            output.name = _name(told["name"])
        variables.extend(node.outputs)
    return variables


def _leaf(row: Plain, array: Callable[[int], Array]) -> Variable:
    type_, name = decode_type(row["type"]), _name(row["name"])
    if "constant" in row:
        return Constant(checked_array(array(row["constant"]), type_), name)
    if "shared" in row:
        return SharedVariable(type_, Container(np.array(checked_array(array(row["shared"]), type_), order="C")), name)
    return Variable(type_, name)


def _name(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise ArgumentError(explain_error("a name in the file is no text", repr(name)[:50]))
    return name


def _check_same(inferred: TensorType, told: TensorType) -> None:
    if not inferred.accepts(told):
        raise ArgumentError(explain_error("the file tells another type of a result than its operation gives",
                                          f"{told}, inferred {inferred}"))


def checked_array(array: Array, type_: TensorType) -> Array:
    """An array of a file, which must have this dtype and rank."""
    wanted = dtypes.numpy_dtype(type_.dtype)
    if array.dtype != wanted and array.dtype.itemsize == wanted.itemsize and array.dtype.kind == "V":
        array = array.view(wanted)  # bfloat16, which NumPy's files do not know
    if array.dtype != wanted or array.ndim != type_.ndim:
        raise ArgumentError(explain_error("the file holds an array of another type",
                                          f"{array.dtype}{list(array.shape)} for {type_}"))
    return array


def encode_type(type_: TensorType) -> Plain:
    """A type as plain data."""
    return [type_.dtype, list(type_.shape)]


def decode_type(plain: Plain) -> TensorType:
    """The type of plain data."""
    dtype, shape = plain
    if not all(size is None or (type(size) is int and 0 <= size < 2**62) for size in shape):
        raise ArgumentError(explain_error("a size in the file is no size", repr(shape)[:50]))
    return TensorType(dtypes.canonical(dtype), tuple(shape))


def _lines(written: Variable | Apply) -> Plain:
    """Each place as file and line, and its name scope where it has one."""
    return [[place.filename, place.lineno, *([place.scope] if place.scope else [])] for place in written.source]


def _place(filename: Plain, lineno: Plain, scope: Plain = "") -> SourceLine:
    return SourceLine(str(filename), int(lineno), str(scope))
