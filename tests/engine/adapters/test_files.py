"""The digest names exactly the two files' contents."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.format import Limits, check_adapter, digest_of, folder_digest


def test_digest_by_hand(draft: Any) -> None:
    folder = draft.write()
    lines = ""
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        lines += name + "\0" + hashlib.sha256((folder / name).read_bytes()).hexdigest() + "\n"
    assert folder_digest(folder) == hashlib.sha256(lines.encode()).hexdigest()
    assert check_adapter(folder, draft.base, Limits()).digest == folder_digest(folder)


def test_digest_from_known_hashes_is_the_same_in_any_order(draft: Any) -> None:
    folder = draft.write()
    known = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert digest_of(known) == digest_of(dict(reversed(known.items()))) == folder_digest(folder)


@pytest.mark.parametrize("name", ["adapter_config.json", "adapter_model.safetensors"])
def test_a_changed_byte_changes_it(draft: Any, name: str) -> None:
    folder = draft.write()
    before = folder_digest(folder)
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    assert folder_digest(folder) != before


def test_a_folder_that_is_not_there(draft: Any, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        check_adapter(tmp_path / "absent", draft.base, Limits())
