"""What a key may be held to: models and networks. Nobody gives away more than they have."""

from typing import Any

from rest_framework import serializers

from controlplane.errors import Forbidden
from tenants.auth import Principal
from tenants.networks import BadNetwork, is_covered, read_network

MOST_MODELS, MOST_NETWORKS = 200, 50


class ReachFields(serializers.Serializer[Any]):
    allowed_models = serializers.ListField(
        child=serializers.CharField(max_length=100), allow_null=True, required=False, max_length=MOST_MODELS,
        help_text="names of adapters and of the base model; null = all of the tenant's, an empty list = none",
    )  # fmt: skip
    allowed_networks = serializers.ListField(
        child=serializers.CharField(max_length=60), allow_null=True, required=False, max_length=MOST_NETWORKS,
        allow_empty=False, help_text="networks in CIDR notation that the key may be used from; null = anywhere",
    )  # fmt: skip

    def validate_allowed_models(self, names: list[str] | None) -> list[str] | None:
        for name in names or ():
            if "@" in name:
                raise serializers.ValidationError(f"{name!r} names a version: name its adapter, {name.split('@')[0]!r}")
        return None if names is None else sorted(set(names))

    def validate_allowed_networks(self, networks: list[str] | None) -> list[str] | None:
        try:
            return None if networks is None else sorted({read_network(network) for network in networks})
        except BadNetwork as exc:
            raise serializers.ValidationError(str(exc)) from None


def check_reach(issuer: Principal | None, reach: dict[str, Any]) -> None:
    """A key passes on no more than it has. issuer: None for a person, who has all of it. Raises Forbidden."""
    if issuer is None:
        return
    if issuer.allowed_models is not None:
        _check_within("allowed_models", reach.get("allowed_models"), lambda name: name in (issuer.allowed_models or ()))
    if issuer.allowed_networks is not None:
        own = issuer.allowed_networks
        _check_within("allowed_networks", reach.get("allowed_networks"), lambda network: is_covered(network, own))


def _check_within(param: str, asked: list[str] | None, has: Any) -> None:
    if asked is None:
        raise Forbidden(f"{param}: your own key has a list, so the key you issue needs one within it", param=param)
    for each in asked:
        if not has(each):
            raise Forbidden(f"{param}: {each!r} is not within what your own key may use", param=param)
