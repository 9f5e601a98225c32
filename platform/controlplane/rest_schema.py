"""What `controlplane.api_view` does for every view, as the OpenAPI schema says it."""

from typing import Any, Final, Literal

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.permissions import AllowAny

from controlplane.api_view import CHANGES, APIView
from controlplane.etags import HEADER as IF_MATCH
from controlplane.idempotency import HEADER as IDEMPOTENCY_KEY
from controlplane.idempotency import REPLAYED
from controlplane.rest import ErrorBody

Direction = Literal["request", "response"]
_HEADER: Final = OpenApiParameter.HEADER
KEY: Final = OpenApiParameter(
    IDEMPOTENCY_KEY, str, _HEADER,
    description="1 to 255 visible characters of your choice, a new one for each new request: what is sent again within "
    "24 hours with the same key and body has its effect once, and is answered as the first time",
)  # fmt: skip
IS_REPLAYED: Final = OpenApiParameter(
    REPLAYED, str, _HEADER, response=[200, 201, 202, 204], description="`true` on an answer that was given before"
)
MATCH: Final = OpenApiParameter(
    IF_MATCH, str, _HEADER, description="an `ETag`: change it only if it is still as it was when that was given"
)
TAG: Final = OpenApiParameter("ETag", str, _HEADER, response=[200], description="for `If-Match`")


class ManagementSchema(AutoSchema):
    """REST_FRAMEWORK's DEFAULT_SCHEMA_CLASS."""

    def get_override_parameters(self) -> list[Any]:
        found = list(super().get_override_parameters())
        if self._takes_key():
            return [*found, KEY, IS_REPLAYED]
        if self._takes_tag():
            return [*found, MATCH]
        return [*found, TAG] if self._has_tag() else found

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        found = dict(super()._get_response_bodies(direction))
        extra = ("409", "422") if self._takes_key() else ("412",) if self._takes_tag() else ()
        for code in extra:
            answer = self._get_response_for_code(ErrorBody, code, direction=direction)  # type: ignore[no-untyped-call]
            found.setdefault(code, answer)
        return dict(sorted(found.items()))

    def _takes_key(self) -> bool:
        open_to_all = any(isinstance(permission, AllowAny) for permission in self.view.get_permissions())
        return self.method == "POST" and isinstance(self.view, APIView) and not open_to_all

    def _takes_tag(self) -> bool:
        is_change = str(self.method).lower() in CHANGES
        return is_change and isinstance(self.view, APIView) and (self.view.has_tag() or bool(self.view.tagged_by))

    def _has_tag(self) -> bool:
        return self.method == "GET" and isinstance(self.view, APIView) and self.view.has_tag()
