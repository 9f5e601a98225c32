"""Whatever bytes come, the answer is a spec or `AdapterRefused`; and what we accept, safetensors accepts too."""

import json
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, deserialize

from engine.adapters.base_shape import BaseShape
from engine.adapters.format import AdapterRefused, Limits, Problem, check_adapter, folder_digest
from engine.adapters.safetensors_header import HeaderError, read_header

# The draft is only read, so that examples may share it.
relaxed = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@contextmanager
def folder_of(config: bytes, tensors: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        Path(name, "adapter_config.json").write_bytes(config)
        Path(name, "adapter_model.safetensors").write_bytes(tensors)
        yield Path(name)


def check(base: BaseShape, config: bytes, tensors: bytes) -> None:
    with folder_of(config, tensors) as folder:
        problems, digest = outcome(folder, base), folder_digest(folder)
    if isinstance(problems, str):
        assert problems == digest
        deserialize(tensors)
    else:
        assert all(len(str(problem)) < 2000 for problem in problems)


def outcome(folder: Path, base: BaseShape) -> str | tuple[Problem, ...]:
    try:
        return check_adapter(folder, base, Limits()).digest
    except AdapterRefused as refused:
        return refused.problems


@relaxed
@given(data=st.data())
def test_flipped_and_cut_bytes(draft: Any, data: st.DataObject) -> None:
    content = bytearray(draft.tensor_file())
    (length,) = struct.unpack("<Q", content[:8])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 8 + length + 40))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    check(draft.base, json.dumps(draft.config).encode(), bytes(content[:cut]))


@relaxed
@given(header=json_values | st.dictionaries(st.text(max_size=5), json_values), body=st.binary(max_size=40))
def test_any_json_as_header(draft: Any, header: Any, body: bytes) -> None:
    text = json.dumps(header).encode()
    check(draft.base, json.dumps(draft.config).encode(), struct.pack("<Q", len(text)) + text + body)


@relaxed
@given(data=st.data())
def test_a_field_of_an_entry_replaced(draft: Any, data: st.DataObject) -> None:
    content = draft.tensor_file()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    entry = header[data.draw(st.sampled_from(sorted(header)))]
    entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(json_values)
    text = json.dumps(header).encode()
    check(draft.base, json.dumps(draft.config).encode(), struct.pack("<Q", len(text)) + text + content[8 + length :])


@relaxed
@given(data=st.data())
def test_any_value_of_a_config_key(draft: Any, data: st.DataObject) -> None:
    known = [*draft.config, "rank_pattern", "alpha_pattern", "use_rslora", "auto_mapping", "init_lora_weights", "other"]
    changed = draft.config | {data.draw(st.sampled_from(known)): data.draw(json_values)}
    check(draft.base, json.dumps(changed).encode(), draft.tensor_file())


@relaxed
@given(config=st.binary(max_size=60))
def test_any_bytes_as_config(draft: Any, config: bytes) -> None:
    check(draft.base, config, draft.tensor_file())


@relaxed
@given(
    entries=st.lists(
        st.tuples(st.sampled_from(["F32", "F16", "I8", "U64"]), st.lists(st.integers(0, 3), max_size=3)), max_size=4
    ),
    slack=st.sampled_from([0, 0, 0, 1, -1]),
)
def test_headers_are_read_as_safetensors_reads_them(tmp_path: Path, entries: list[Any], slack: int) -> None:
    """Our reader may be stricter than the library, never laxer, and agrees on every honest file."""
    sizes, header, at = {"F32": 4, "F16": 2, "I8": 1, "U64": 8}, {}, 0
    for index, (dtype, shape) in enumerate(entries):
        length = sizes[dtype]
        for size in shape:
            length *= size
        header[f"t{index}"] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + length]}
        at += length
    text = json.dumps(header).encode()
    content = struct.pack("<Q", len(text)) + text + bytes(max(0, at + slack))
    file = tmp_path / "x.safetensors"
    file.write_bytes(content)
    honest = len(content) == 8 + len(text) + at
    with file.open("rb") as opened:
        if honest:
            theirs = {name: (info["dtype"], tuple(info["shape"])) for name, info in deserialize(content)}
            assert {each.name: (each.dtype, each.shape) for each in read_header(opened, len(content))} == theirs
        else:
            with pytest.raises(SafetensorError):
                deserialize(content)
            with pytest.raises(HeaderError):
                read_header(opened, len(content))
