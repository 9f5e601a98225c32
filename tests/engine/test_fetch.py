"""An adapter's files from a folder to weights in host memory, and each way they can be wrong."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import torch
from obstore.store import LocalStore
from safetensors.torch import load_file, save_file

from engine.adapters.bank import LoraBank
from engine.adapters.disk_cache import DiskCache
from engine.adapters.fetch import adapter_loader
from engine.adapters.format import BaseShape, Limits, folder_digest
from engine.adapters.host_cache import Weights
from engine.adapters.pool import AdapterUnavailable
from engine.model_info import ModelInfo
from engine.protocol import AdapterRef

SHAPE = BaseShape("tiny", frozenset({"tiny"}), 2, {"self_attn.q_proj": (8, 6), "mlp.down_proj": (6, 12)})
KEY = "base_model.model.model.layers.{}.{}.lora_{}.weight"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PEFT folder: rank 3 on q_proj of both layers, rsLoRA."""
    made = tmp_path / "published adapter"
    made.mkdir()
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": "tiny",
        "r": 3,
        "lora_alpha": 6,
        "use_rslora": True,
        "target_modules": ["q_proj"],
        "bias": "none",
        "task_type": "CAUSAL_LM",
    }
    (made / "adapter_config.json").write_text(json.dumps(config))
    tensors = {}
    for layer in range(2):
        tensors[KEY.format(layer, "self_attn.q_proj", "A")] = torch.full((3, 6), 1.0 + layer)
        tensors[KEY.format(layer, "self_attn.q_proj", "B")] = torch.full((8, 3), -1.0 - layer)
    save_file(tensors, made / "adapter_model.safetensors")
    return made


def ref(folder: Path, digest: str | None = None) -> AdapterRef:
    return AdapterRef("adv_1", folder.as_uri(), digest or folder_digest(folder), 3)


def loader(disk: DiskCache) -> Callable[[AdapterRef], Weights]:
    info = ModelInfo("tiny", 9, 16, 2, 6, 1, 1, 6, dict(SHAPE.shapes), tuple((name,) for name in SHAPE.shapes))
    bank = LoraBank(info, 1, 8, torch.float32, "cpu")
    return adapter_loader(SHAPE, Limits(max_rank=8, max_bytes=10_000), disk, bank)


def load(adapter: AdapterRef) -> Weights:
    with tempfile.TemporaryDirectory() as name:
        disk = DiskCache(Path(name) / "adapters", 1 << 20)
        try:
            return loader(disk)(adapter)
        finally:
            disk.check_integrity()
            assert disk.digests == (), "files of this machine are not kept twice"
            assert not [*Path(name).glob("adapters/*"), *Path(name).glob("adapters/.*")], "no draft is left behind"


def test_weights_arrive_by_layer_and_module_with_their_scaling(folder: Path) -> None:
    weights = load(ref(folder))
    assert set(weights) == {(0, "self_attn.q_proj"), (1, "self_attn.q_proj")}
    lora = weights[1, "self_attn.q_proj"]
    assert torch.equal(lora.a, torch.full((3, 6), 2.0))
    assert torch.equal(lora.b, torch.full((8, 3), -2.0))
    assert lora.scaling == pytest.approx(6 / 3**0.5)


def test_files_may_go_once_they_are_loaded(folder: Path) -> None:
    weights = load(ref(folder))
    shutil.rmtree(folder)
    assert float(sum(lora.a.sum() for lora in weights.values())) == 54.0


def refused(adapter: AdapterRef) -> AdapterUnavailable:
    with pytest.raises(AdapterUnavailable) as caught:
        load(adapter)
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_missing_folder_or_file(folder: Path, tmp_path: Path) -> None:
    digest = folder_digest(folder)
    assert "missing" in str(refused(AdapterRef("v", (tmp_path / "none").as_uri(), digest, 3)))
    (folder / "adapter_model.safetensors").unlink()
    assert "adapter_model.safetensors" in str(refused(ref(folder, digest)))


def test_bytes_that_changed_after_they_were_checked(folder: Path) -> None:
    digest, path = folder_digest(folder), folder / "adapter_model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    error = refused(ref(folder, digest))
    assert "digest" in str(error)
    assert digest in str(error)
    assert error.permanent


def test_a_digest_that_is_right_does_not_excuse_weights_that_are_wrong(folder: Path) -> None:
    path = folder / "adapter_model.safetensors"
    tensors = load_file(path)
    tensors[KEY.format(0, "self_attn.q_proj", "A")][0, 0] = float("nan")
    save_file(tensors, path)
    assert "do not pass the check" in str(refused(ref(folder)))


def test_an_adapter_that_passed_before_is_still_known_by_its_bytes(folder: Path, tmp_path: Path) -> None:
    load_again = loader(DiskCache(tmp_path / "adapters", 1 << 20))
    adapter, path = ref(folder), folder / "adapter_model.safetensors"
    first = load_again(adapter)
    second = load_again(adapter)
    assert all(torch.equal(first[place].a, second[place].a) for place in first)
    tensors = load_file(path)
    tensors[KEY.format(0, "self_attn.q_proj", "A")][0, 0] = float("nan")
    save_file(tensors, path)
    with pytest.raises(AdapterUnavailable, match="digest"):
        load_again(adapter)
    with pytest.raises(AdapterUnavailable, match="do not pass the check"):
        load_again(ref(folder))


@pytest.mark.parametrize("size", [8, 200])
def test_a_truncated_file(folder: Path, size: int) -> None:
    path = folder / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    assert "do not pass the check" in str(refused(ref(folder)))


def test_more_bytes_than_allowed_are_not_even_fetched(folder: Path) -> None:
    with (folder / "adapter_model.safetensors").open("ab") as file:
        file.write(b"\0" * 20_000)
    assert "limit is 10000" in str(refused(ref(folder)))


@pytest.mark.parametrize("uri", ["", "nonsense", "gopher://x/y"])
def test_an_address_of_no_known_kind(folder: Path, uri: str) -> None:
    assert "cannot be fetched" in str(refused(AdapterRef("v", uri, folder_digest(folder), 3)))


class Afar:
    """A bucket on another machine: what is fetched from it is counted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetched = 0
        self._folder = folder
        monkeypatch.setattr("engine.adapters.fetch.from_url", self._open)

    def _open(self, uri: str) -> LocalStore:
        assert urlsplit(uri).scheme == "s3"
        self.fetched += 1
        return LocalStore(self._folder)


def test_what_came_from_afar_is_fetched_once_also_after_a_restart(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, disk = Afar(folder, monkeypatch), DiskCache(tmp_path / "disk", 1 << 20)
    adapter = AdapterRef("adv_1", "s3://bucket/adv_1", folder_digest(folder), 3)
    first = loader(disk)(adapter)
    again = loader(disk)(adapter)
    disk = DiskCache(tmp_path / "disk", 1 << 20)
    restarted = loader(disk)(adapter)
    assert bucket.fetched == 1
    assert disk.digests == (adapter.digest,)
    for weights in (again, restarted):
        assert all(torch.equal(weights[key].b, lora.b) for key, lora in first.items())
    disk.check_integrity()


def test_a_cached_file_that_changed_is_fetched_anew(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket, disk = Afar(folder, monkeypatch), DiskCache(tmp_path / "disk", 1 << 20)
    adapter = AdapterRef("adv_1", "s3://bucket/adv_1", folder_digest(folder), 3)
    loader(disk)(adapter)
    path = tmp_path / "disk" / adapter.digest / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    weights = loader(disk)(adapter)
    assert torch.equal(weights[1, "self_attn.q_proj"].b, torch.full((8, 3), -2.0))
    assert bucket.fetched == 2
    disk.check_integrity()


def test_what_is_refused_is_not_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket, disk = Afar(folder, monkeypatch), DiskCache(tmp_path / "disk", 1 << 20)
    for digest in ("0" * 64, "../../escape"):
        with pytest.raises(AdapterUnavailable, match="have digest"):
            loader(disk)(AdapterRef("adv_1", "s3://bucket/adv_1", digest, 3))
    assert bucket.fetched == 2
    assert disk.digests == ()
    assert [*(tmp_path / "disk").iterdir()] == []


def put(disk: DiskCache, name: str, size: int) -> None:
    with disk.draft() as draft:
        (draft / "file").write_bytes(b"x" * size)
        disk.keep(name, draft)


def test_the_disk_keeps_within_its_bytes_and_what_is_being_read(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path / "disk", 100)
    put(disk, "a", 40)
    put(disk, "b", 40)
    with disk.reading("a") as kept:
        assert kept is not None
        put(disk, "c", 40)
        assert disk.digests == ("a", "c"), "b was used longest ago"
        put(disk, "d", 90)
        assert (kept / "file").read_bytes() == b"x" * 40, "read, so it stays"
        disk.check_integrity()
    assert disk.bytes <= 100
    with disk.reading("b") as kept:
        assert kept is None
    put(disk, "huge", 101)
    assert disk.bytes <= 100
    disk.check_integrity()


def test_a_fetch_that_a_crash_cut_short_leaves_nothing(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path / "disk", 100)
    put(disk, "a", 40)
    half = tmp_path / "disk" / ".draft-1"
    half.mkdir()
    (half / "file").write_bytes(b"half")
    assert DiskCache(tmp_path / "disk", 100).digests == ("a",)
    assert not half.exists()
