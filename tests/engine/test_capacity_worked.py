"""The console reckons capacity in TypeScript; this and that are held to one file of worked examples."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.capacity import Question, Shape, answer

WORKED = Path(__file__).resolve().parents[2] / "frontend" / "src" / "capacity" / "worked.json"
EXAMPLES: list[dict[str, Any]] = json.loads(WORKED.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_the_worked_examples(example: dict[str, Any]) -> None:
    asked = dict(example["question"])
    asked["kv_dtype"], asked["page_size"] = asked.pop("kv"), asked.pop("pageSize")
    shape = Shape(**example["size"])
    found = answer(shape, Question(**asked))
    assert example["answer"] == {
        "weightBytes": found.weight_bytes,
        "kvBytesPerToken": found.kv_bytes,
        "adapterBytes": shape.adapter_bytes(asked["rank"]),
        "slotBytes": found.adapter_bytes,
        "poolBytes": found.pool_bytes,
        "poolTokens": found.pool_tokens,
        "concurrency": found.concurrency,
        "ridge": found.ridge,
        "ridgeTokens": found.ridge_tokens,
        "stepSeconds": found.step_seconds,
        "tokensPerSecond": found.tokens_per_second,
    }
