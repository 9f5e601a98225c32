"""The header of a safetensors file, read with bounds of our own and no trust in a byte of it. No torch, no numpy.

Layout: u64 little-endian header length; that many bytes of JSON, name -> {dtype, shape, data_offsets}; the data, which
the offsets cover from first to last byte without hole or overlap.
"""

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, BinaryIO

from engine.adapters.problems import Problem, shown

MAX_HEADER_BYTES = 10_000_000  # every module of 128 layers takes 0.3 MB
ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
_OTHER_ITEM_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1,
    "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
_MAX_DIMENSIONS = 8
_REMEDY = "Save the adapter again with PEFT's save_pretrained and upload the file unchanged."


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor: its bytes are [start, end) of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


class HeaderError(Exception):
    """The file is not a whole, honest safetensors file."""

    def __init__(self, code: str, found: str, expected: str, remedy: str = _REMEDY) -> None:
        super().__init__(found)
        self._reasons = (found, expected, remedy)
        self.code = code

    def problem(self, name: str) -> Problem:
        """name: the file's."""
        return Problem(self.code, name, *self._reasons)


def read_header(file: BinaryIO, size: int) -> tuple[TensorEntry, ...]:
    """Entries in the order of their bytes. file: at its start; size: bytes in it. Raises HeaderError."""
    start = file.read(8)
    _refuse_pickle(start)
    if len(start) < 8:
        raise HeaderError("header_truncated", f"{size} bytes", "at least 8 bytes of header length")
    length = int.from_bytes(start, "little")
    if length > min(MAX_HEADER_BYTES, size - 8):
        expected = f"at most {min(MAX_HEADER_BYTES, size - 8)} bytes in a file of {size}"
        raise HeaderError("header_truncated", f"a header of {length} bytes", expected)
    header = _parse(file.read(length))
    _check_metadata(header.pop("__metadata__", {}))
    entries = [_entry(name, value, 8 + length) for name, value in header.items()]
    entries.sort(key=lambda entry: (entry.start, entry.end))
    _check_cover(entries, 8 + length, size)
    return tuple(entries)


def _refuse_pickle(start: bytes) -> None:
    """No header length looks so: each of these would mean a header of at least 16 MB."""
    for magic, kind in ((b"PK\x03\x04", "a zip archive (torch.save)"), (b"GGUF", "a GGUF file")):
        if start.startswith(magic):
            raise HeaderError("pickle_refused", kind, "safetensors", "Save with safe_serialization=True.")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and any(start[3:]):
        raise HeaderError("pickle_refused", "a Python pickle", "safetensors", "Save with safe_serialization=True.")


def _parse(text: bytes) -> dict[str, Any]:
    try:
        if not text.startswith(b"{"):
            raise ValueError("it does not start with a brace")
        header = json.loads(text.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise HeaderError("header_invalid", shown(str(error)), "a JSON object of tensors") from error
    assert isinstance(header, dict)
    return header


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For json.loads: two readers must never see two different values under one key."""
    found = dict(pairs)
    if len(found) != len(pairs):
        ((name, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {name!r} appears twice")
    return found


def refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _check_metadata(metadata: object) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise HeaderError("header_invalid", "__metadata__ that is not text to text", "text to text")


def _entry(name: str, value: object, offset: int) -> TensorEntry:
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        raise HeaderError("header_invalid", f"{shown(name)} described by {shown(value)}", "dtype, shape, data_offsets")
    dtype, shape, span = value["dtype"], value["shape"], value["data_offsets"]
    if not (_are_sizes(shape) and len(shape) <= _MAX_DIMENSIONS):
        raise HeaderError("header_invalid", f"{shown(name)} of shape {shown(shape)}", "a list of sizes")
    if not (_are_sizes(span) and len(span) == 2 and span[0] <= span[1]):
        raise HeaderError("header_invalid", f"{shown(name)} at {shown(span)}", "a begin and an end")
    item = (ITEM_BYTES | _OTHER_ITEM_BYTES).get(dtype) if isinstance(dtype, str) else None
    if item is None:
        raise HeaderError("dtype_unsupported", f"{shown(name)} of dtype {shown(dtype)}", " or ".join(ITEM_BYTES))
    if math.prod(shape) * item != span[1] - span[0]:
        found = f"{shown(name)}: {shown(dtype)} {shown(shape)} in {span[1] - span[0]} bytes"
        raise HeaderError("header_invalid", found, f"{shown(math.prod(shape) * item)} bytes")
    return TensorEntry(name, dtype, tuple(shape), offset + span[0], offset + span[1])


def _are_sizes(value: object) -> bool:
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 2**48 for each in value)


def _check_cover(entries: list[TensorEntry], start: int, size: int) -> None:
    at = start
    for entry in entries:
        if entry.start != at:
            raise HeaderError(
                "header_invalid", f"{shown(entry.name)} at byte {entry.start}", f"byte {at}, no hole, no overlap"
            )
        at = entry.end
    if at > size:
        raise HeaderError("header_truncated", f"a file of {size} bytes", f"{at} bytes, as its header says")
    if at < size:
        raise HeaderError("header_invalid", f"{size - at} bytes after the last tensor", "none")
