"""The base models that the platform knows: served, priced, or asked for by an adapter; and their sizes."""

import json
from pathlib import Path
from typing import Any, Final, cast

from django.conf import settings
from django.db.models import Count, Q
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.models import Adapter
from controlplane.adapters.states import State
from controlplane.api_view import APIView
from controlplane.billing.models import Price
from controlplane.rest import OperatorOnly

NO_USE: Final = {"adapters": 0, "ready_versions": 0, "tenants": 0}


class ModelSizeShape(serializers.Serializer[Any]):
    """Of config.json, as far as memory goes. experts: feed-forward blocks of a layer; active: those a token uses."""

    layers = serializers.IntegerField()
    hidden = serializers.IntegerField()
    ffn = serializers.IntegerField()
    q_heads = serializers.IntegerField()
    kv_heads = serializers.IntegerField()
    head_dim = serializers.IntegerField()
    vocab = serializers.IntegerField()
    tied = serializers.BooleanField()
    experts = serializers.IntegerField()
    active = serializers.IntegerField()


class BaseModelShape(serializers.Serializer[Any]):
    """size: null where its folder is not beside that of the model served. adapters: of live ones."""

    name = serializers.CharField()
    is_served = serializers.BooleanField()
    has_price = serializers.BooleanField(help_text="for everybody, now; without one its requests are refused")
    adapters = serializers.IntegerField()
    ready_versions = serializers.IntegerField()
    tenants = serializers.IntegerField()
    size = ModelSizeShape(allow_null=True)


class BaseModelsShape(serializers.Serializer[Any]):
    data = BaseModelShape(many=True)  # type: ignore[assignment]  # DRF takes it off the class


class BaseModelsApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(operation_id="operator_base_models", responses=BaseModelsShape)
    def get(self, request: Request) -> Response:
        """The served one first, then those that only adapters or prices name."""
        return Response({"data": base_models(settings.MODEL_DIR)})


def base_models(served: Path) -> list[dict[str, Any]]:
    use, priced = _use_by_model(), _priced_models()
    names = sorted({*use, *priced} - {served.name})
    return [
        {
            "name": name,
            "is_served": name == served.name,
            "has_price": name in priced,
            **use.get(name, NO_USE),
            "size": size_of(served.parent / name),
        }
        for name in [served.name, *names]
    ]


def _use_by_model() -> dict[str, dict[str, int]]:
    rows = Adapter.objects.filter(deleted_at=None).values("base_model")
    counted = rows.annotate(
        adapters=Count("id", distinct=True),
        ready_versions=Count("versions", filter=Q(versions__state=State.READY), distinct=True),
        tenants=Count("tenant", distinct=True),
    )
    return {row["base_model"]: {name: cast(dict[str, Any], row)[name] for name in NO_USE} for row in counted}


def _priced_models() -> set[str]:
    now = timezone.now()
    in_force = Price.objects.filter(Q(effective_to=None) | Q(effective_to__gt=now), effective_from__lte=now)
    return set(in_force.filter(tenant=None, adapter_id=None).values_list("base_model", flat=True))


def size_of(folder: Path) -> dict[str, Any] | None:
    """None where there is no config.json of a decoder."""
    try:
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return _size(raw.get("text_config", raw))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _size(raw: dict[str, Any]) -> dict[str, Any]:
    hidden, heads = int(raw["hidden_size"]), int(raw["num_attention_heads"])
    experts = int(raw.get("num_experts") or raw.get("num_local_experts") or 1)
    ffn = raw.get("moe_intermediate_size") if experts > 1 else None
    return {
        "layers": int(raw["num_hidden_layers"]),
        "hidden": hidden,
        "ffn": int(ffn or raw["intermediate_size"]),
        "q_heads": heads,
        "kv_heads": int(raw.get("num_key_value_heads") or heads),
        "head_dim": int(raw.get("head_dim") or hidden // heads),
        "vocab": int(raw["vocab_size"]),
        "tied": bool(raw.get("tie_word_embeddings", False)),
        "experts": experts,
        "active": int(raw["num_experts_per_tok"]) if experts > 1 else 1,
    }
