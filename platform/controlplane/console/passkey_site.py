"""What browsers and we say to each other about passkeys, as JSON; and the host that passkeys are bound to."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from tenants.passkeys import Site


def site_of(request: HttpRequest) -> Site:
    """By the Host header, which Django has checked. Behind a proxy that ends TLS the console's own URL says https."""
    host = request.get_host()
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    return Site(name, (f"{request.scheme}://{host}", settings.CONSOLE_URL))


@extend_schema_field(OpenApiTypes.OBJECT)
class AnswerField(serializers.JSONField):
    """What `navigator.credentials` gave, by its own `toJSON()`."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("must be the object that the browser's toJSON() gives")
        return data


class OptionsShape(serializers.Serializer[Any]):
    options = serializers.DictField(help_text="for the browser's `PublicKeyCredential.parse...OptionsFromJSON()`")
