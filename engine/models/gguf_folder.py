"""A Llama GGUF file -> the Hugging Face folder it was made from: config, tokenizer, bf16 safetensors.

Everything is dequantised and rounded once; from then on the bf16 folder *is* the model. Output is byte for byte
reproducible, so that its digests can be constants.
"""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gguf import GGUFReader, dequantize

Advance = Callable[[int], None]

_CONTROL_TOKEN = 3  # gguf.TokenType.CONTROL

_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class GgufFile:
    """Typed look at one GGUF file of architecture `llama`. Raises ValueError for another architecture."""

    def __init__(self, path: Path) -> None:
        self._reader = GGUFReader(path)
        if self.value("general.architecture") != "llama":
            raise ValueError(f"{path.name} is of architecture {self.value('general.architecture')!r}, not 'llama'")

    def value(self, key: str) -> Any:
        return self._reader.fields[key].contents()

    @property
    def weight_count(self) -> int:
        return sum(int(np.prod(tensor.shape)) for tensor in self._reader.tensors)

    def shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for tensor in self._reader.tensors:
            yield hf_name(tensor.name), tuple(int(length) for length in reversed(tensor.shape))

    def tensors(self) -> Iterator[npt.NDArray[np.float32]]:
        """fp32 values in the order of `shapes`, rows of q and k back in Hugging Face's order."""
        heads = {
            "attn_q": self.value("llama.attention.head_count"),
            "attn_k": self.value("llama.attention.head_count_kv"),
        }
        for tensor in self._reader.tensors:
            values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
            part = tensor.name.removesuffix(".weight").rsplit(".", 1)[-1]
            yield unpermute(values, heads[part]) if part in heads else values


def hf_name(name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`."""
    parts = name.removesuffix(".weight").split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_NAMES[parts[2]]}.weight"
    return f"{_NAMES[parts[0]]}.weight"


def unpermute(values: npt.NDArray[np.float32], heads: int) -> npt.NDArray[np.float32]:
    """Undo llama.cpp's row order of q and k [heads*d, in]: it pairs rope's rows (2i, 2i+1), we pair (i, i + d/2)."""
    rows, columns = values.shape
    return values.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def to_bf16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Bits of the nearest bf16, ties to even. Finite input."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_folder(source: Path, folder: Path, *, origin: str, advance: Advance) -> None:
    """Write config.json, generation_config.json, tokenizer*.json and model.safetensors into the existing `folder`.

    origin: the hub name, kept as `_name_or_path`. advance: called with the number of weights just written.
    """
    gguf = GgufFile(source)
    _write_json(folder / "config.json", _config(gguf, origin))
    _write_json(folder / "generation_config.json", _generation_config(gguf))
    _write_json(folder / "tokenizer.json", _tokenizer(gguf))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(gguf))
    _write_weights(folder / "model.safetensors", gguf, advance)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_weights(path: Path, gguf: GgufFile, advance: Advance) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in gguf.shapes():
        start, end = end, end + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in gguf.tensors():
            file.write(to_bf16(values).tobytes())
            advance(values.size)


def _config(gguf: GgufFile, origin: str) -> dict[str, Any]:
    hidden, heads = gguf.value("llama.embedding_length"), gguf.value("llama.attention.head_count")
    tied = all(name != "lm_head.weight" for name, _ in gguf.shapes())
    return {
        "_name_or_path": origin,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": gguf.value("llama.feed_forward_length"),
        "num_hidden_layers": gguf.value("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": gguf.value("llama.attention.head_count_kv"),
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "rms_norm_eps": float(f"{gguf.value('llama.attention.layer_norm_rms_epsilon'):.3g}"),  # 1e-5 was stored in fp32
        "rope_theta": gguf.value("llama.rope.freq_base"),
        "rope_scaling": None,
        "max_position_embeddings": gguf.value("llama.context_length"),
        "vocab_size": gguf.value("llama.vocab_size"),
        "tie_word_embeddings": tied,
        "bos_token_id": gguf.value("tokenizer.ggml.bos_token_id"),
        "eos_token_id": gguf.value("tokenizer.ggml.eos_token_id"),
        "pad_token_id": gguf.value("tokenizer.ggml.padding_token_id"),
        "torch_dtype": "bfloat16",
    }


def _generation_config(gguf: GgufFile) -> dict[str, Any]:
    return {f"{name}_token_id": gguf.value(f"tokenizer.ggml.{field}_token_id") for name, field in _SPECIAL.items()}


_SPECIAL = {"bos": "bos", "eos": "eos", "pad": "padding"}


def _control_tokens(gguf: GgufFile) -> dict[int, str]:
    kinds = gguf.value("tokenizer.ggml.token_type")
    return {i: text for i, text in enumerate(gguf.value("tokenizer.ggml.tokens")) if kinds[i] == _CONTROL_TOKEN}


def _added_token(text: str) -> dict[str, Any]:
    return {
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _tokenizer(gguf: GgufFile) -> dict[str, Any]:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}  # what `tokenizer.ggml.pre == "smollm"` stands for
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i} | _added_token(text) for i, text in _control_tokens(gguf).items()],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {text: i for i, text in enumerate(gguf.value("tokenizer.ggml.tokens"))},
            "merges": gguf.value("tokenizer.ggml.merges"),
        },
    }


def _tokenizer_config(gguf: GgufFile) -> dict[str, Any]:
    tokens = gguf.value("tokenizer.ggml.tokens")
    named = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    return {
        # The generic class keeps tokenizer.json's pre-tokenizer; GPT2Tokenizer would build its own, without digits.
        "tokenizer_class": "PreTrainedTokenizerFast",
        "added_tokens_decoder": {str(i): _added_token(text) for i, text in _control_tokens(gguf).items()},
        "add_bos_token": gguf.value("tokenizer.ggml.add_bos_token"),
        "clean_up_tokenization_spaces": False,
        "model_max_length": gguf.value("llama.context_length"),
        "chat_template": gguf.value("tokenizer.chat_template"),
    } | {f"{name}_token": tokens[gguf.value(f"tokenizer.ggml.{field}_token_id")] for name, field in named.items()}
