"""How adapters and versions look on the wire; several views answer with them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.adapters.aliases import rollback_target, weights_of
from controlplane.adapters.models import Adapter, AdapterGrant, AdapterVersion, VersionFile
from controlplane.adapters.ranges import total
from controlplane.adapters.states import State
from controlplane.adapters.uploads import ranges_of


@extend_schema_field({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2})
class RangeField(serializers.ListField):
    """[start, end): the end is exclusive."""


class ProblemShape(serializers.Serializer[Any]):
    code = serializers.CharField()
    where = serializers.CharField()
    found = serializers.CharField()
    expected = serializers.CharField()
    remedy = serializers.CharField()


class TrialShape(serializers.Serializer[Any]):
    """One short prompt, answered with and without the adapter. largest_difference: of a log-probability."""

    prompt_tokens = serializers.IntegerField()
    largest_difference = serializers.FloatField()
    text = serializers.CharField()
    base_text = serializers.CharField()


class ReportShape(serializers.Serializer[Any]):
    """trial: the engine's, once it has tried the adapter."""

    problems = ProblemShape(many=True)
    summary = serializers.CharField()
    trial = TrialShape(required=False)


class StoredShape(serializers.Serializer[Any]):
    """What of a file is durably stored."""

    received_bytes = serializers.IntegerField()
    ranges = serializers.ListField(child=RangeField())


class VersionFileShape(StoredShape):
    name = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField(allow_null=True)


class VersionShape(serializers.Serializer[Any]):
    """source: where an import's files are fetched from, null for an upload. size_bytes, files: as far as known."""

    id = serializers.CharField()
    number = serializers.IntegerField()
    state = serializers.ChoiceField(choices=State.live())
    digest = serializers.CharField(allow_null=True)
    rank = serializers.IntegerField(allow_null=True)
    size_bytes = serializers.IntegerField()
    target_modules = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    ready_at = serializers.DateTimeField(allow_null=True)
    report = ReportShape(allow_null=True)
    source = serializers.CharField(allow_null=True)  # type: ignore[assignment]  # a field, whatever its name
    files = VersionFileShape(many=True)


class SplitShape(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1)
    weight = serializers.IntegerField(min_value=1, max_value=10_000)


class AliasShape(serializers.Serializer[Any]):
    """rolls_back_to: what the name would answer with after a rollback; null: there is nothing to go back to."""

    splits = SplitShape(many=True)
    follows_newest = serializers.BooleanField()
    rolls_back_to = SplitShape(many=True, allow_null=True)


class AdapterGrantShape(serializers.Serializer[Any]):
    """tenant: the slug of who may call the adapter."""

    id = serializers.CharField()
    tenant = serializers.CharField()
    created_at = serializers.DateTimeField()


class AdapterShape(serializers.Serializer[Any]):
    """state: that of the newest version; `empty` where there is none. alias: null until a version is ready.
    pinned: what its name answers with keeps a slot of the engine."""

    id = serializers.CharField()
    name = serializers.CharField()
    base_model = serializers.CharField()
    created_at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=["empty", *State.live()])
    alias = AliasShape(allow_null=True)
    pinned = serializers.BooleanField()
    versions = VersionShape(many=True)


def stored_body(ranges: list[Any]) -> dict[str, Any]:
    return {"received_bytes": total(ranges), "ranges": [[r.start, r.end] for r in ranges]}


def _file_body(file: VersionFile) -> dict[str, Any]:
    return {"name": file.name, "size": file.size, "sha256": file.sha256, **stored_body(ranges_of(file))}


def version_body(version: AdapterVersion) -> dict[str, Any]:
    files = sorted(version.files.all(), key=lambda file: file.name)
    fields = ("id", "number", "state", "digest", "rank", "size_bytes", "target_modules", "created_at", "ready_at")
    body = {name: getattr(version, name) for name in fields}
    source = version.source["shown"] if version.source else None
    return {**body, "report": version.report, "source": source, "files": [_file_body(file) for file in files]}


def _alias_body(adapter: Adapter) -> dict[str, Any]:
    current = {split.version.number: split.weight for split in adapter.splits.all()}
    ready = {version.number for version in adapter.versions.all() if version.state == State.READY}
    at = rollback_target(adapter.alias_history, ready, current)
    return {
        "splits": _splits(current),
        "follows_newest": adapter.follows_newest,
        "rolls_back_to": None if at is None else _splits(weights_of(adapter.alias_history[at])),
    }


def _splits(weights: dict[int, int]) -> list[dict[str, int]]:
    return [{"version": number, "weight": weight} for number, weight in sorted(weights.items())]


def grant_body(grant: AdapterGrant) -> dict[str, Any]:
    return {"id": grant.id, "tenant": grant.party.slug, "created_at": grant.created_at}


def adapter_body(adapter: Adapter) -> dict[str, Any]:
    versions = [version_body(version) for version in adapter.versions.all()]
    return {
        "id": adapter.id,
        "name": adapter.name,
        "base_model": adapter.base_model,
        "created_at": adapter.created_at,
        "state": versions[0]["state"] if versions else "empty",
        "alias": _alias_body(adapter) if adapter.splits.all() else None,
        "pinned": adapter.pinned_at is not None,
        "versions": versions,
    }
