"""What operators are told of base models: which is served, what uses them, how large they are."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from controlplane.adapters.models import Adapter, AdapterVersion
from controlplane.adapters.states import State
from controlplane.billing.models import Price
from controlplane.console.base_models import size_of
from tests.controlplane.conftest import Api, Cast

CONFIG = {
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "num_hidden_layers": 30,
    "intermediate_size": 1536,
    "vocab_size": 49_152,
    "tie_word_embeddings": True,
}
SIZE = {
    "layers": 30, "hidden": 576, "ffn": 1536, "q_heads": 9, "kv_heads": 3, "head_dim": 64, "vocab": 49_152,
    "tied": True, "experts": 1, "active": 1,
}  # fmt: skip


def write(folder: Path, config: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_served_one_comes_first_then_what_adapters_and_prices_name(
    operator: Api, cast: Cast, settings: Any, tmp_path: Path
) -> None:
    settings.MODEL_DIR = write(tmp_path / "smol", CONFIG)
    rates = {"input": 1, "cached_input": 1, "output": 2, "created_by": "x"}
    Price.objects.create(base_model="smol", tenant=cast.acme, **rates)  # not everybody's
    Price.objects.create(base_model="priced", **rates)
    for tenant, name in ((cast.acme, "a"), (cast.acme, "b"), (cast.globex, "a")):
        adapter = Adapter.objects.create(tenant=tenant, name=name, base_model="smol")
        for number, state in ((1, State.READY), (2, State.REJECTED)):
            AdapterVersion.objects.create(
                tenant=tenant, adapter=adapter, number=number, state=state, size_bytes=1, digest="d", rank=1, uri="u"
            )
    Adapter.objects.create(tenant=cast.acme, name="old", base_model="smol", deleted_at=timezone.now())
    Adapter.objects.create(tenant=cast.acme, name="x", base_model="another")
    status, body = operator.get("operator/base-models")
    assert status == 200
    rows = [
        (m["name"], m["is_served"], m["has_price"], m["adapters"], m["ready_versions"], m["tenants"])
        for m in body["data"]
    ]
    assert rows == [
        ("smol", True, False, 3, 3, 2),
        ("another", False, False, 1, 0, 1),
        ("priced", False, True, 0, 0, 0),
    ]
    assert [model["size"] for model in body["data"]] == [SIZE, None, None]


def test_a_price_that_has_ended_or_is_to_come_is_none(operator: Api, cast: Cast, settings: Any, tmp_path: Path) -> None:
    settings.MODEL_DIR = tmp_path / "smol"
    now = timezone.now()
    day = timedelta(days=1)
    rates = {"base_model": "smol", "input": 1, "cached_input": 1, "output": 2, "created_by": "x"}
    Price.objects.create(**rates, effective_from=now - 2 * day, effective_to=now - day)
    Price.objects.create(**rates, effective_from=now + day)
    assert [model["has_price"] for model in operator.get("operator/base-models")[1]["data"]] == [False]


def test_a_mixture_and_one_inside_another_config(tmp_path: Path) -> None:
    mixture = {**CONFIG, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 99}
    found = size_of(write(tmp_path / "a", {"text_config": mixture, "vision_config": {}}))
    assert found == {**SIZE, "ffn": 99, "experts": 8, "active": 2}


@pytest.mark.parametrize(
    "config", [[], "x", {}, {**CONFIG, "hidden_size": "wide"}, {**CONFIG, "num_hidden_layers": None}]
)
def test_what_is_no_decoder_has_no_size(tmp_path: Path, config: Any) -> None:
    assert size_of(write(tmp_path / "a", config)) is None
    assert size_of(tmp_path / "missing") is None
