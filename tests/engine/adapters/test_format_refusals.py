"""Each thing that cannot be served is refused under its own code, and one fault hides no other."""

import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.format import AdapterRefused, Limits, check_adapter, check_names

STEM = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
A, B = f"{STEM}A.weight", f"{STEM}B.weight"
ONE = b"\x80\x3f"


def test_the_draft_itself_is_accepted(draft: Any) -> None:
    draft.write()
    spec = check_adapter(draft.folder, draft.base, Limits())
    assert (spec.max_rank, spec.dtype, spec.target_modules) == (4, "BF16", ("q_proj", "v_proj"))
    assert {module.scaling for module in spec.modules} == {2.0}
    assert spec.size_bytes == sum(path.stat().st_size for path in draft.folder.iterdir())


CONFIG_FAULTS = [
    ("use_dora", True, "config_tensor_mismatch"),
    ("use_dora", "yes", "config_invalid"),
    ("modules_to_save", ["norm"], "config_unsupported"),
    ("modules_to_save", ["lm_head", "model.layers.0.mlp.up_proj"], "config_unsupported"),
    ("modules_to_save", "lm_head", "config_invalid"),
    ("modules_to_save", [3], "config_invalid"),
    ("bias", "some", "config_unsupported"),
    ("bias", ["all"], "config_unsupported"),
    ("lora_bias", True, "config_tensor_mismatch"),
    ("lora_bias", 1, "config_invalid"),
    ("fan_in_fan_out", True, "config_unsupported"),
    ("alora_invocation_tokens", [1, 9], "config_invalid"),
    ("alora_invocation_tokens", [-1], "config_invalid"),
    ("alora_invocation_tokens", [True], "config_invalid"),
    ("alora_invocation_tokens", "hello", "config_invalid"),
    ("alora_invocation_tokens", [1] * 257, "config_invalid"),
    ("trainable_token_indices", [5], "config_unsupported"),
    ("layer_replication", [[0, 2]], "config_unsupported"),
    ("target_parameters", ["mlp.experts"], "config_unsupported"),
    ("use_qalora", True, "config_unsupported"),
    ("arrow_config", {"top_k": 2}, "config_unsupported"),
    ("megatron_config", {"a": 1}, "config_unsupported"),
    ("a_key_of_tomorrow", {"on": True}, "config_unsupported"),
    ("auto_map", {"AutoModel": "evil.py"}, "config_unsupported"),
    ("trust_remote_code", True, "config_unsupported"),
    ("auto_mapping", {"base_model_class": "X", "parent_library": "evil"}, "config_unsupported"),
    ("auto_mapping", "evil", "config_unsupported"),
    ("init_lora_weights", "pissa", "config_unsupported"),
    ("init_lora_weights", "pissa_niter_4", "config_unsupported"),
    ("init_lora_weights", "olora", "config_unsupported"),
    ("init_lora_weights", ["x"], "config_unsupported"),
    ("peft_type", "LOHA", "config_unsupported"),
    ("peft_type", None, "config_unsupported"),
    ("task_type", "SEQ_CLS", "config_unsupported"),
    ("revision", "abc123", "config_unsupported"),
    ("base_model_name_or_path", "meta-llama/Llama-3.1-8B", "base_model_mismatch"),
    ("base_model_name_or_path", ["small-base"], "base_model_mismatch"),
    ("r", 0, "config_invalid"),
    ("r", True, "config_invalid"),
    ("r", "4", "config_invalid"),
    ("lora_alpha", 0, "config_invalid"),
    ("lora_alpha", "16", "config_invalid"),
    ("lora_alpha", 10**400, "config_invalid"),
    ("use_rslora", "yes", "config_invalid"),
    ("rank_pattern", {"q_proj": 0}, "config_invalid"),
    ("rank_pattern", ["q_proj"], "config_invalid"),
    ("rank_pattern", {"q_proj(": 4}, "config_invalid"),
    ("rank_pattern", {"x" * 1001: 4}, "config_invalid"),
    ("rank_pattern", {f"m{i}": 4 for i in range(4097)}, "config_invalid"),
    ("alpha_pattern", {"q_proj": None}, "config_invalid"),
    ("alpha_pattern", {r"(q)\1": 4}, "config_invalid"),
    ("rank_pattern", {"q_proj": 8}, "rank_mismatch"),
    ("r", 8, "rank_mismatch"),
]


@pytest.mark.parametrize("key, value, code", CONFIG_FAULTS, ids=lambda value: str(value)[:30])
def test_config_keys_that_ask_for_something_else(draft: Any, key: str, value: object, code: str) -> None:
    draft.config[key] = value
    draft.write()
    assert draft.codes() == {code}
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(draft.folder, draft.base, Limits())
    assert any(key in problem.where or code.endswith("mismatch") for problem in refused.value.problems)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"\xff", b'{"r": NaN}', b'{"r": 1, "r": 2}', b"[" * 100_000, b'{"r": ' + b"9" * 5000 + b"}"],
    ids=["empty", "list", "not-utf8", "nan", "twice", "deep", "long-number"],
)
def test_config_that_is_no_honest_json(draft: Any, text: bytes) -> None:
    draft.write()
    (draft.folder / "adapter_config.json").write_bytes(text)
    assert draft.codes() == {"config_invalid"}


def test_a_large_config_is_not_read(draft: Any) -> None:
    draft.write()
    (draft.folder / "adapter_config.json").write_bytes(b" " * 1_000_001)
    assert draft.codes() == {"size_over_limit"}


def put(name: str, dtype: str, shape: list[int], data: bytes) -> Callable[[Any], None]:
    def spoil(draft: Any) -> None:
        draft.tensors[name] = [dtype, shape, data]

    return spoil


def drop(*names: str) -> Callable[[Any], None]:
    def spoil(draft: Any) -> None:
        for name in names:
            del draft.tensors[name]

    return spoil


def rename(change: Callable[[str], str]) -> Callable[[Any], None]:
    def spoil(draft: Any) -> None:
        draft.tensors = {change(name): tensor for name, tensor in draft.tensors.items()}

    return spoil


def zeros(side: str) -> Callable[[Any], None]:
    def spoil(draft: Any) -> None:
        for name, tensor in draft.tensors.items():
            if f"lora_{side}" in name:
                tensor[2] = bytes(len(tensor[2]))

    return spoil


EXTRA = "base_model.model."
TENSOR_FAULTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "dora": (put(f"{STEM}magnitude_vector", "BF16", [32], ONE * 32), "config_tensor_mismatch"),
    "dora of no module": (
        put(f"{STEM.replace('q_proj', 'o_proj')}magnitude_vector", "BF16", [32], ONE * 32),
        "tensor_unpaired",
    ),
    "wide magnitude": (put(f"{STEM}magnitude_vector", "BF16", [33], ONE * 33), "tensor_shape_wrong"),
    "norm": (put(f"{EXTRA}model.norm.weight", "BF16", [32], ONE * 32), "modules_to_save_unsupported"),
    "embed": (put(f"{EXTRA}model.embed_tokens.lora_embedding_A", "BF16", [4, 9], ONE * 36), "tensor_unpaired"),
    "lm_head": (put(f"{EXTRA}lm_head.lora_A.weight", "BF16", [4, 32], ONE * 128), "tensor_unpaired"),
    "more words": (put(f"{EXTRA}lm_head.weight", "BF16", [10, 32], ONE * 320), "tensor_shape_wrong"),
    "embedding on its side": (
        put(f"{EXTRA}model.embed_tokens.weight", "BF16", [32, 9], ONE * 288),
        "tensor_shape_wrong",
    ),
    "trained tokens": (
        put(f"{EXTRA}model.embed_tokens.token_adapter.trainable_tokens_delta", "BF16", [1, 32], ONE * 32),
        "trainable_tokens_unsupported",
    ),
    "lora bias": (put(f"{STEM}B.bias", "BF16", [32], ONE * 32), "config_tensor_mismatch"),
    "bias of no biased module": (
        put(f"{EXTRA}model.layers.0.self_attn.v_proj.bias", "BF16", [16], ONE * 16),
        "bias_unsupported",
    ),
    "a whole linear": (
        put(f"{EXTRA}model.layers.0.self_attn.v_proj.weight", "BF16", [16, 32], ONE * 512),
        "modules_to_save_unsupported",
    ),
    "other key names": (
        put(f"{EXTRA}model.unembed_tokens.lora_A.weight", "BF16", [4, 32], ONE * 128),
        "tensor_unmatched",
    ),
    "fused names on a split base": (
        put(f"{EXTRA}model.layers.0.self_attn.qkv_proj.lora_A.weight", "BF16", [4, 32], ONE * 128),
        "tensor_unmatched",
    ),
    "multimodal prefix": (
        rename(lambda name: name.replace("model.layers", "language_model.layers")),
        "tensor_unmatched",
    ),
    "nothing matches": (rename(lambda name: name.replace("self_attn", "attention")), "tensor_unmatched"),
    "one does not match": (
        put(STEM.replace("q_proj", "qkv") + "A.weight", "BF16", [4, 2], ONE * 8),
        "tensor_unmatched",
    ),
    "adapter name kept": (rename(lambda name: name.replace(".weight", ".default.weight")), "tensor_unmatched"),
    "layer too high": (rename(lambda name: name.replace("layers.1.", "layers.2.")), "tensor_unmatched"),
    "layer 00": (rename(lambda name: name.replace("layers.0.", "layers.00.")), "tensor_unmatched"),
    "no tensors": (lambda draft: draft.tensors.clear(), "tensor_unmatched"),
    "no A": (drop(A), "tensor_unpaired"),
    "no B": (drop(B), "tensor_unpaired"),
    "twice": (put(A.removeprefix(EXTRA), "BF16", [4, 32], ONE * 128), "tensor_duplicate"),
    "other width": (put(A, "BF16", [4, 64], ONE * 256), "tensor_shape_wrong"),
    "other height": (put(B, "BF16", [64, 4], ONE * 256), "tensor_shape_wrong"),
    "ranks differ": (put(B, "BF16", [32, 2], ONE * 64), "tensor_shape_wrong"),
    "transposed": (put(A, "BF16", [32, 4], ONE * 128), "tensor_shape_wrong"),
    "rank 0": (put(A, "BF16", [0, 32], b""), "tensor_shape_wrong"),
    "no matrix": (put(A, "BF16", [128], ONE * 128), "tensor_shape_wrong"),
    "int8": (put(A, "I8", [4, 32], b"\x01" * 128), "dtype_unsupported"),
    "fp8": (put(A, "F8_E4M3", [4, 32], b"\x01" * 128), "dtype_unsupported"),
    "fp64": (put(A, "F64", [4, 32], struct.pack("<128d", *[1.0] * 128)), "dtype_unsupported"),
    "NaN bf16": (put(A, "BF16", [4, 32], ONE * 127 + b"\xc0\x7f"), "non_finite"),
    "inf bf16": (put(A, "BF16", [4, 32], b"\x80\xff" + ONE * 127), "non_finite"),
    "inf fp16": (put(A, "F16", [4, 32], struct.pack("<128e", *[1.0] * 127, float("inf"))), "non_finite"),
    "NaN fp32": (put(A, "F32", [4, 32], struct.pack("<128f", *[1.0] * 127, float("nan"))), "non_finite"),
    "untrained B": (zeros("B"), "changes_nothing"),
    "untrained A": (zeros("A"), "changes_nothing"),
}


@pytest.mark.parametrize("spoil, code", TENSOR_FAULTS.values(), ids=TENSOR_FAULTS.keys())
def test_tensors_that_do_not_fit(draft: Any, spoil: Callable[[Any], None], code: str) -> None:
    spoil(draft)
    draft.write()
    assert draft.codes() == {code}


def test_one_untrained_pair_among_trained_ones_is_fine(draft: Any) -> None:
    draft.tensors[B][2] = bytes(len(draft.tensors[B][2]))
    draft.write()
    assert draft.codes() == set()


def test_rank_over_the_limit(draft: Any) -> None:
    draft.write()
    assert draft.codes(Limits(max_rank=4)) == set()
    assert draft.codes(Limits(max_rank=3)) == {"rank_over_limit"}


def test_size_over_the_limit(draft: Any) -> None:
    size = sum(path.stat().st_size for path in draft.write().iterdir())
    assert draft.codes(Limits(max_bytes=size)) == set()
    assert draft.codes(Limits(max_bytes=size - 1)) == {"size_over_limit"}


def test_every_problem_is_listed(draft: Any) -> None:
    draft.config |= {"peft_type": "LOHA", "bias": "some", "base_model_name_or_path": "other"}
    put(A, "BF16", [4, 64], ONE * 255 + b"\xc0\x7f")(draft)
    put("model.norm.weight", "BF16", [32], ONE * 32)(draft)
    (draft.write() / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(draft.folder, draft.base, Limits())
    assert sorted(problem.code for problem in refused.value.problems) == [
        "base_model_mismatch",
        "config_unsupported",
        "config_unsupported",
        "modules_to_save_unsupported",
        "non_finite",
        "pickle_refused",
        "tensor_shape_wrong",
    ]


def test_many_faults_of_one_kind_are_one_problem_with_their_number(draft: Any) -> None:
    rename(lambda name: name.replace("layers", "h"))(draft)
    draft.write()
    with pytest.raises(AdapterRefused) as refused:
        check_adapter(draft.folder, draft.base, Limits())
    assert [problem.found for problem in refused.value.problems] == [
        "8 of 8 tensors that are of no module of the base model"
    ]


# --- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, code",
    [
        ("adapter_model.bin", "pickle_refused"),
        ("training_args.BIN", "pickle_refused"),
        ("x.pt", "pickle_refused"),
        ("model.pkl", "pickle_refused"),
        ("README.md", "file_unknown"),
        ("tokenizer.json", "tokenizer_file_refused"),
        ("chat_template.jinja", "tokenizer_file_refused"),
        ("added_tokens.json", "tokenizer_file_refused"),
        ("adapter_model-1-of-2.safetensors", "file_unknown"),
        ("Adapter_config.json", "file_unknown"),
        ("../adapter_config.json", "file_name_unsafe"),
        ("..", "file_name_unsafe"),
        ("a\\b", "file_name_unsafe"),
        ("a\x00b", "file_name_unsafe"),
        ("adapter_config.json", "file_duplicate"),
    ],
)
def test_names_alone(name: str, code: str) -> None:
    names = ["adapter_config.json", "adapter_model.safetensors"]
    assert check_names(names) == []
    assert [problem.code for problem in check_names([*names, name])] == [code]


def test_a_bin_instead_of_safetensors(draft: Any) -> None:
    folder = draft.write()
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    assert draft.codes() == {"pickle_refused", "file_missing"}


def test_links_and_folders_are_not_followed(draft: Any, tmp_path: Path) -> None:
    folder = draft.write()
    (folder / "adapter_model.safetensors").rename(tmp_path / "elsewhere")
    (folder / "adapter_model.safetensors").symlink_to(tmp_path / "elsewhere")
    assert draft.codes() == {"file_not_regular"}
    (folder / "adapter_model.safetensors").unlink()
    (folder / "adapter_model.safetensors").mkdir()
    assert draft.codes() == {"file_not_regular"}
    (folder / "adapter_model.safetensors").rmdir()
    os.mkfifo(folder / "adapter_model.safetensors")
    assert draft.codes() == {"file_not_regular"}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_under_a_good_name(draft: Any, protocol: int) -> None:
    draft.write(pickle.dumps({"weights": list(range(100))}, protocol=protocol))
    assert draft.codes() == {"pickle_refused"}


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"GGUF\x03\x00\x00\x00"])
def test_other_formats_under_a_good_name(draft: Any, start: bytes) -> None:
    draft.write(start + bytes(100))
    assert draft.codes() == {"pickle_refused"}


# --- the header ------------------------------------------------------------------------------------------------


def entry(name: str = "x", dtype: Any = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> str:
    return f'"{name}": {json.dumps({"dtype": dtype, "shape": shape, "data_offsets": offsets})}'


LYING_HEADERS: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "header_truncated"),
    "seven bytes": (b"\x01" * 7, "header_truncated"),
    "length over the file": (struct.pack("<Q", 100) + b"{}", "header_truncated"),
    "huge length": (struct.pack("<Q", 2**63) + b"{}", "header_truncated"),
    "not json": (struct.pack("<Q", 3) + b"{,}", "header_invalid"),
    "not an object": (struct.pack("<Q", 2) + b"[]", "header_invalid"),
    "not utf-8": (struct.pack("<Q", 2) + b"{\xff", "header_invalid"),
    "depth bomb": (struct.pack("<Q", 200_005) + b'{"a":' + b"[" * 200_000, "header_invalid"),
}
LYING_ENTRIES: dict[str, tuple[str, int, str]] = {
    "same key twice": (f"{entry()}, {entry()}", 4, "header_invalid"),
    "same inner key twice": (
        '"x": {"dtype": "F32", "dtype": "F16", "shape": [1], "data_offsets": [0, 4]}',
        4,
        "header_invalid",
    ),
    "not an entry": ('"x": 3', 0, "header_invalid"),
    "extra field": ('"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "code": 1}', 4, "header_invalid"),
    "negative size": (entry(shape=[-1]), 4, "header_invalid"),
    "true as a size": (entry(shape=[True]), 4, "header_invalid"),
    "float size": (entry(shape=[1.0]), 4, "header_invalid"),
    "product overflow": (entry(shape=[2**40, 2**40]), 4, "header_invalid"),
    "size over 64 bits": (entry(shape=[2**64 + 1]), 4, "header_invalid"),
    "many dimensions": (entry(shape=[1] * 9), 4, "header_invalid"),
    "too few bytes": (entry(shape=[2]), 4, "header_invalid"),
    "end before begin": (entry(offsets=[4, 0]), 4, "header_invalid"),
    "three offsets": (entry(offsets=[0, 4, 8]), 4, "header_invalid"),
    "hole": (entry(offsets=[4, 8]), 8, "header_invalid"),
    "overlap": (f"{entry('a')}, {entry('b', offsets=[2, 6])}", 6, "header_invalid"),
    "past the end": (entry(shape=[3], offsets=[0, 12]), 8, "header_truncated"),
    "bytes left over": (entry(), 8, "header_invalid"),
    "made-up dtype": (entry(dtype="F4"), 4, "dtype_unsupported"),
    "dtype a list": (entry(dtype=["F32"]), 4, "dtype_unsupported"),
    "metadata of numbers": (f'"__metadata__": {{"a": 1}}, {entry()}', 4, "header_invalid"),
    "metadata a list": (f'"__metadata__": [], {entry()}', 4, "header_invalid"),
    "NaN": ('"x": NaN', 0, "header_invalid"),
}


@pytest.mark.parametrize("content, code", LYING_HEADERS.values(), ids=LYING_HEADERS.keys())
def test_broken_headers(draft: Any, content: bytes, code: str) -> None:
    draft.write(content)
    assert draft.codes() == {code}


@pytest.mark.parametrize("entries, size, code", LYING_ENTRIES.values(), ids=LYING_ENTRIES.keys())
def test_lying_headers(draft: Any, entries: str, size: int, code: str) -> None:
    header = f"{{{entries}}}".encode()
    draft.write(struct.pack("<Q", len(header)) + header + b"\x01" * size)
    assert draft.codes() == {code}


def test_truncated_anywhere(draft: Any) -> None:
    whole = draft.tensor_file()
    for length in [*range(0, 600, 7), len(whole) - 1]:
        draft.write(whole[:length])
        assert draft.codes() <= {"header_truncated", "header_invalid"}
        assert draft.codes()
