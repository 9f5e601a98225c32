"""Hundreds of hostile uploads: each gets its refusal, through the real check, and none is published."""

from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.check_child import outcome
from controlplane.adapters.sandbox import read_adapter
from engine.adapters.format import AdapterRefused
from tests.controlplane.adapters.conftest import upload
from tests.controlplane.adapters.hostile import CONFIG, WEIGHTS, Case, hostile
from tests.controlplane.adapters.peft_folder import BASE, peft_folder, write_base
from tests.controlplane.conftest import Api

CASES = list(hostile(peft_folder()))
KEYS = {"code", "where", "found", "expected", "remedy"}


def written(case: Case, folder: Path) -> Path:
    folder.mkdir()
    for name, content in case.folder.files.items():
        (folder / name).write_bytes(content)
    return folder


def check_refusal(problems: list[dict[str, str]], case: Case) -> None:
    assert problems, case.name
    for problem in problems:
        assert set(problem) == KEYS
        assert all(text and len(text) < 1000 and text.isprintable() for text in problem.values()), problem
    assert {problem["code"] for problem in problems} <= case.codes, (case.name, problems)


def test_there_are_hundreds_and_none_twice() -> None:
    assert len(CASES) > 450
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({tuple(case.folder.files.values()) for case in CASES}) == len(CASES)


def test_every_hostile_upload_gets_its_refusal(tmp_path: Path) -> None:
    order = {
        "model_dir": str(write_base(tmp_path / "base")),
        "limits": {"max_rank": 64, "max_bytes": 512_000_000, "max_saved_bytes": 256_000_000},
    }
    for i, case in enumerate(CASES):
        found = outcome({**order, "folder": str(written(case, tmp_path / str(i)))})
        assert list(found) == ["problems"], (case.name, found)
        check_refusal(found["problems"], case)


@pytest.mark.parametrize("case", CASES[:: len(CASES) // 24], ids=lambda case: case.name[:40])
def test_the_checks_own_process_says_the_same(case: Case, tmp_path: Path) -> None:
    with pytest.raises(AdapterRefused) as refused:
        read_adapter(written(case, tmp_path / "upload"))
    check_refusal([problem.as_dict() for problem in refused.value.problems], case)


@pytest.mark.parametrize("case", CASES[5 :: len(CASES) // 10], ids=lambda case: case.name[:40])
def test_nothing_of_them_is_published(owner: Api, places: Path, case: Case) -> None:
    version = upload(owner, folder=case.folder)
    assert version["state"] == "rejected"
    check_refusal(version["report"]["problems"], case)
    assert not (places / "objects" / "adapters").exists()
    assert not (places / "staging" / version["id"]).exists()


# --- the declaration, the parts and the end of an upload ------------------------------------------------------------

GOOD = {"name": CONFIG, "size": 10, "sha256": "0" * 64}
OTHER = {"name": WEIGHTS, "size": 10, "sha256": "1" * 64}
NAMES = [
    "../adapter_config.json", "/etc/passwd", "..", ".", "", " ", "a/adapter_model.safetensors",
    "..\\adapter_config.json",
    "adapter_config.json\x00", "\x00", "adapter_config.json/", "ADAPTER_CONFIG.JSON", "adapter_c\u043enfig.json",
    "adapter_config.json\u202e", "adapter\uff3fconfig.json", "adapter_config.json ", "%2e%2e%2fadapter_config.json",
    "adapter_model.bin", "adapter_model.pt", "model.pkl", "adapter.zip", "adapter.tar.gz", "a.gguf", "modeling_evil.py",
    "tokenizer.json", "chat_template.jinja", "tokenizer_config.json", "adapter_model-1-of-2.safetensors",
    "adapter_model-00001-of-99999.safetensors", "adapter_model-00003-of-00002.safetensors",
    "adapter_model-\uff10\uff10001-of-00001.safetensors", "adapter_model-00000-of-00001.safetensors", "a" * 201,
    "con", "nul.json", ".hidden", "adapter_config.json;rm -rf", "$(reboot)", "\n", "adapter_config.json\n",
]  # fmt: skip
SIZES = [0, -1, 1.5, "ten", None, True, [], {}, 2**63, 2**64, 10**400, 513 * 1024**2]
DIGESTS = [
    "",
    "0" * 63,
    "0" * 65,
    "G" * 64,
    "0" * 63 + "A",
    "\uff10" * 64,
    None,
    0,
    [],
    "0" * 63 + "\n",
    "../" * 21 + "a",
]


def start(owner: Api, **changes: Any) -> tuple[int, Any]:
    return owner.post("adapters", {"name": "pirate", "base_model": BASE, "files": [GOOD, OTHER]} | changes)


@pytest.mark.parametrize(
    "files",
    [
        *([{**OTHER, "name": name}, GOOD] for name in NAMES),
        *([{**OTHER, "size": size}, GOOD] for size in SIZES if size is not True),
        *([{**OTHER, "sha256": digest}, GOOD] for digest in DIGESTS),
        [], [GOOD], [OTHER], [GOOD, OTHER, OTHER], [GOOD, GOOD], [None, GOOD], ["x"], "x", {}, None, [[GOOD, OTHER]],
    ],
    ids=repr,
)  # fmt: skip
def test_a_declaration_that_lies_starts_nothing(owner: Api, places: Path, files: Any) -> None:
    status, body = start(owner, files=files)
    assert status in {400, 413}, body
    assert body["error"]["code"]
    assert body["error"]["param"].startswith("files")
    assert owner.get("adapters")[1]["data"] == []
    assert not (places / "staging").exists()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "A",
        "-a",
        "a-",
        "a b",
        "a\x00",
        "\u0430dapter",
        "a@2",
        "a" * 64,
        None,
        [],
        "a\nb",
    ],
)
def test_no_adapter_has_such_a_name(owner: Api, name: Any) -> None:
    status, body = start(owner, name=name)
    assert (status, body["error"]["param"]) == (400, "name")


@pytest.mark.parametrize(
    "path",
    [
        "adapter_config.json", "adapter_config.json?offset=", "adapter_config.json?offset=-1",
        "adapter_config.json?offset=1e3", "adapter_config.json?offset=%EF%BC%91", "adapter_config.json?offset=0x0",
        "adapter_config.json?offset=99999999999999999999", "adapter_config.json?offset=8",
        "adapter_config.json?offset=10",
        "other.json?offset=0", "..%2fadapter_config.json?offset=0", "adapter_config.json%00?offset=0",
        "%2e%2e?offset=0", "adapter_model.bin?offset=0",
    ],
)  # fmt: skip
def test_a_part_that_lies_is_stored_nowhere(owner: Api, places: Path, path: str) -> None:
    version = start(owner)[1]["version"]["id"]
    status, body = owner.put(f"versions/{version}/files/{path}", b"xyz")
    assert status in {400, 404, 413}
    assert body["error"]["code"]
    assert [file["received_bytes"] for file in owner.get(f"versions/{version}")[1]["files"]] == [0, 0]
    assert not list((places / "staging").rglob("*.json*")) + list((places / "staging").rglob("*.safe*"))


def test_parts_that_race_never_mix(owner: Api) -> None:
    """Overlapping parts of two files at once: whichever came first stays, the other is told."""
    version = start(owner)[1]["version"]["id"]
    one, other = b"0123456789", b"abcdefghij"
    for offset in range(0, 10, 3):
        for size in (1, 4, 10 - offset):
            part = slice(offset, min(offset + size, 10))
            owner.put(f"versions/{version}/files/{CONFIG}?offset={offset}", one[part])
            status, body = owner.put(f"versions/{version}/files/{CONFIG}?offset={offset}", other[part])
            assert (status, body["error"]["code"]) == (409, "part_conflict")
    assert owner.put(f"versions/{version}/files/{CONFIG}?offset=0", one)[0] == 200
