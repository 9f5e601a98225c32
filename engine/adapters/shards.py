"""Tensor entries of one file or of shards, as adapter_model.safetensors.index.json lists them."""

import json
from collections.abc import Mapping, Sequence

from engine.adapters.files import INDEX_FILE, MAX_SHARDS, is_shard
from engine.adapters.problems import Problem, counted, shown
from engine.adapters.safetensors_header import HeaderError, TensorEntry, refuse_constant, unique_keys
from engine.adapters.source import Source

Entries = Mapping[str, Sequence[TensorEntry]]


def read_entries(source: Source, names: Sequence[str]) -> tuple[dict[str, tuple[TensorEntry, ...]], list[Problem]]:
    """Entries by file, of the files whose headers are honest."""
    entries: dict[str, tuple[TensorEntry, ...]] = {}
    problems = []
    for name in names:
        try:
            entries[name] = source.header(name)
        except HeaderError as error:
            problems.append(error.problem(name))
    return entries, problems


def shards_of(text: bytes) -> tuple[str, ...]:
    """The files that an index names, sorted. Raises ValueError where it is none, or names others than shards."""
    names = sorted({str(name) for name in _weight_map(text).values()})
    if not names or len(names) > MAX_SHARDS or not all(is_shard(name) for name in names):
        raise ValueError(f"{INDEX_FILE} names {len(names)} files, of which not all are shards of an adapter")
    return tuple(names)


def check_index(text: bytes, entries: Entries) -> list[Problem]:
    """The index has to say exactly which file holds which tensor."""
    remedy = "Upload the index that was written with these shards."
    try:
        listed = _weight_map(text)
    except ValueError as error:
        return [Problem("index_invalid", INDEX_FILE, shown(str(error)), "a JSON object with a weight_map", remedy)]
    found = {entry.name: name for name, theirs in entries.items() for entry in theirs}
    wrong = sorted(str(name) for name in found.keys() ^ listed.keys() | {n for n in found if listed.get(n) != found[n]})
    if not wrong:
        return []
    expected = "every tensor with the file that holds it"
    return [Problem("index_invalid", INDEX_FILE, f"another place for {counted(wrong)}", expected, remedy)]


def _weight_map(text: bytes) -> dict[str, object]:
    try:
        index = json.loads(text.decode("utf-8"), object_pairs_hook=unique_keys, parse_constant=refuse_constant)
        return dict(index["weight_map"])
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{INDEX_FILE} has no weight_map: {error!r}") from error
