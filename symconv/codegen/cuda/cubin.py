"""What a kernel needs of a multiprocessor, read from its cubin (an ELF file): registers, local memory, shared memory.

Static shared memory is the size of the section `.nv.shared.NAME` (from sm_90 on with 1024 bytes that the system keeps).  The
attributes of `.nv.info` (format, attribute, value) give the registers and the frame in local memory: it holds what did not fit
the registers, and arrays that are indexed at run time.
"""
from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import InternalError

_REGISTERS, _FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE: (symbol, number)
_SIZED = 4  # EIFMT_SVAL: two bytes of size, then the value; every other format has two bytes of value
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one kernel: registers of a thread, bytes of local memory of a thread, bytes of static shared memory of a block."""

    registers: int
    local_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    type: int
    link: int
    info: int
    data: bytes
    size: int


def read_resources(cubin: bytes) -> dict[str, Resources]:
    """The resources of every kernel in a cubin, by name."""
    sections = _sections(cubin)
    symbols = _symbols(sections)
    numbers: dict[tuple[int, str], int] = {}
    for section in sections:
        if section.name == ".nv.info":
            for attribute, value in _attributes(section.data):
                if attribute in (_REGISTERS, _FRAME) and len(value) == 8:
                    symbol, number = struct.unpack("<II", value)
                    numbers[attribute, symbols[symbol]] = number
    shared = {section.name.removeprefix(".nv.shared."): section.size for section in sections
              if section.name.startswith(".nv.shared.") and section.name != ".nv.shared.reserved.0"}
    kernels = [section.name.removeprefix(".text.") for section in sections if section.name.startswith(".text.")]
    if not kernels:
        raise InternalError("a cubin without a kernel")
    return {name: Resources(numbers[_REGISTERS, name], numbers.get((_FRAME, name), 0), shared.get(name, 0)) for name in kernels}


def _sections(cubin: bytes) -> list[_Section]:
    if cubin[:5] != b"\x7fELF\x02":
        raise InternalError(f"not a 64-bit ELF file: it begins with {cubin[:5]!r}")
    header = _HEADER.unpack_from(cubin)
    start, size, count, names = header[6], header[11], header[12], header[13]
    rows = [_SECTION.unpack_from(cubin, start + number * size) for number in range(count)]
    texts = cubin[rows[names][4]:rows[names][4] + rows[names][5]]
    return [_Section(_string(texts, row[0]), row[1], row[6], row[7], b"" if row[1] == 8 else cubin[row[4]:row[4] + row[5]], row[5])
            for row in rows]


def _string(texts: bytes, start: int) -> str:
    return texts[start:texts.index(b"\0", start)].decode()


def _symbols(sections: list[_Section]) -> list[str]:
    table = next(section for section in sections if section.type == 2)
    names = sections[table.link].data
    return [_string(names, _SYMBOL.unpack_from(table.data, at)[0]) for at in range(0, len(table.data), _SYMBOL.size)]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, attribute, short = struct.unpack_from("<BBH", data, at)
        at += 4
        length = short if form == _SIZED else 0
        yield attribute, data[at:at + length]
        at += length
