"""A small base model's shape, and a valid adapter of it to be spoiled in one place."""

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from engine.adapters.base_shape import MODULES, BaseShape
from engine.adapters.format import AdapterRefused, Limits, Problem, check_adapter

SHAPES = ((32, 32), (16, 32), (16, 32), (32, 32), (48, 32), (48, 32), (32, 48))
LAYERS = 2
RANK = 4
VOCABULARY = 9


@dataclass
class Draft:
    """tensors: name -> [dtype, shape, bytes]. `write` puts both files into `folder`."""

    folder: Path
    base: BaseShape
    config: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, list[Any]] = field(default_factory=dict)

    def tensor_file(self) -> bytes:
        header, body = {}, b""
        for name, (dtype, shape, data) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        return pack(json.dumps(header).encode(), body)

    def write(self, tensor_file: bytes | None = None) -> Path:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "adapter_config.json").write_text(json.dumps(self.config))
        (self.folder / "adapter_model.safetensors").write_bytes(
            self.tensor_file() if tensor_file is None else tensor_file
        )
        return self.folder

    def codes(self, limits: Limits | None = None) -> set[str]:
        """Codes of every problem of the written folder; empty if it is accepted."""
        problems = self.problems(limits)
        assert all(all(problem.as_dict().values()) for problem in problems)
        return {problem.code for problem in problems}

    def problems(self, limits: Limits | None = None) -> tuple[Problem, ...]:
        try:
            check_adapter(self.folder, self.base, limits or Limits())
        except AdapterRefused as refused:
            return refused.problems
        return ()


def pack(header: bytes, body: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + body


@pytest.fixture(scope="session")
def small_base() -> BaseShape:
    shapes = dict(zip(MODULES, SHAPES, strict=True))
    outside = {"embed_tokens": (32, VOCABULARY), "lm_head": (VOCABULARY, 32)}
    biased = frozenset({"self_attn.q_proj"})
    return BaseShape("Small-Base", frozenset({"small-base"}), LAYERS, shapes, outside, biased)


@pytest.fixture
def draft(tmp_path: Path, small_base: BaseShape) -> Draft:
    """q and v of both layers at rank 4 in bf16; every value is 1."""
    made = Draft(tmp_path / "adapter", small_base)
    made.config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "Some-Org/small-base",
        "r": RANK,
        "lora_alpha": 8,
        "target_modules": ["q_proj", "v_proj"],
        "bias": "none",
    }
    for layer in range(LAYERS):
        for module in ("self_attn.q_proj", "self_attn.v_proj"):
            out, into = small_base.shapes[module]
            stem = f"base_model.model.model.layers.{layer}.{module}.lora_"
            made.tensors[f"{stem}A.weight"] = ["BF16", [RANK, into], b"\x80\x3f" * (RANK * into)]
            made.tensors[f"{stem}B.weight"] = ["BF16", [out, RANK], b"\x80\x3f" * (out * RANK)]
    return made
