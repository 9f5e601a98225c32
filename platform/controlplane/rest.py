"""What every management view shares: who calls, whether they may, and how long lists are cut into pages.

A view names the action it needs (`tenants.permissions.ACTIONS`); a view that names none is refused to everybody.
"""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.errors import Forbidden, InvalidRequest, NotFound
from tenants.api_auth import BARRED_TEXT, Caller
from tenants.models import Tenant
from tenants.scope import ALL_TENANTS, enter_scope

M = TypeVar("M", bound=models.Model)
DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 200


def caller(request: Request) -> Caller:
    """Whoever `tenants.api_auth` recognised. Only for views whose permissions let nobody else in."""
    found = cast(object, request.user)
    assert isinstance(found, Caller), "a view without a permission class asked who calls"
    return found


def tenant_of(request: Request) -> Tenant:
    """The tenant the call is about. NotFound for a person who belongs to none, Forbidden for one barred from theirs."""
    who = caller(request)
    tenant = who.tenant
    if who.barred:
        raise Forbidden(BARRED_TEXT[who.barred], code=who.barred)
    if tenant is None:
        raise NotFound("You belong to no tenant: ask an administrator of one to add you.", code="no_tenant")
    return tenant


class Allowed(BasePermission):
    """The caller's role or scopes grant the view's `action_needed`: one action, or one per method.

    From here on the request sees the rows of the caller's tenant."""

    message = "Your role or key does not allow this: ask an owner of the tenant, or use a key with the scope for it."

    def has_permission(self, request: Request, view: APIView) -> bool:
        needed: str | dict[str, str] | None = getattr(view, "action_needed", None)
        if isinstance(needed, dict):
            if request.method not in needed:
                raise MethodNotAllowed(str(request.method))
            needed = needed[request.method]
        user = cast(object, request.user)
        if needed is None or not isinstance(user, Caller):
            return False
        tenant = tenant_of(request)  # a person of no tenant is told that, rather than that their role is too small
        enter_scope(tenant.id)
        return user.can(needed)


class OperatorOnly(BasePermission):
    """People who run the platform, by session. No key carries this. From here on the request sees all rows."""

    message = "Only an operator of the platform may do this."

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = cast(object, request.user)
        is_operator = isinstance(user, Caller) and user.is_operator
        if is_operator:
            enter_scope(ALL_TENANTS)
        return is_operator


class PersonOnly(BasePermission):
    """A signed-in person: programs' keys are refused. From here on the request sees the rows of their tenant."""

    message = "Sign in to the console for this: an API key cannot do it."

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = cast(object, request.user)
        if isinstance(user, Caller) and user.tenant:
            enter_scope(user.tenant.id)
        return isinstance(user, Caller) and user.user is not None


# --- lists --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Page(Generic[M]):
    """rows: at most `limit`. next: the cursor of the following page, None at the end."""

    rows: list[M]
    next: str | None

    def body(self, represent: Callable[[M], dict[str, Any]]) -> dict[str, Any]:
        return {"data": [represent(row) for row in self.rows], "next": self.next}


def keyset_page(rows: models.QuerySet[M], request: HttpRequest | Request, *, time_field: str = "created_at") -> Page[M]:
    """Newest first by (time_field, pk); `?cursor=` continues after the last row of the page before, `?limit=` cuts.

    Costs the same for the thousandth page as for the first, and rows that arrive meanwhile shift nothing.
    """
    limit = _limit(request.GET.get("limit"))
    if cursor := request.GET.get("cursor"):
        at, pk = _read_cursor(cursor, rows.model)
        rows = rows.filter(Q(**{f"{time_field}__lt": at}) | Q(**{time_field: at, "pk__lt": pk}))
    found = list(rows.order_by(f"-{time_field}", "-pk")[: limit + 1])
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], _write_cursor(getattr(last, time_field), last.pk))


def numbered_page(rows: models.QuerySet[M], request: HttpRequest | Request) -> Page[M]:
    """As `keyset_page`, of rows that have a `number`, in its order."""
    limit = _limit(request.GET.get("limit"))
    if cursor := request.GET.get("cursor"):
        if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 9:
            raise _foreign_cursor()
        rows = rows.filter(number__gt=int(cursor))
    found = list(rows.order_by("number")[: limit + 1])
    more = len(found) > limit
    return Page(found[:limit], str(cast(Any, found[limit - 1]).number) if more else None)


def _limit(raw: str | None) -> int:
    if raw is None:
        return DEFAULT_PAGE
    if not raw.isascii() or not raw.isdigit() or not 1 <= int(raw) <= MAX_PAGE:
        raise InvalidRequest(f"limit is {raw[:20]!r}: it must be a whole number from 1 to {MAX_PAGE}", param="limit")
    return int(raw)


def _write_cursor(at: datetime, pk: object) -> str:
    return base64.urlsafe_b64encode(json.dumps([at.isoformat(), pk]).encode()).decode().rstrip("=")


def _read_cursor(text: str, model: type[models.Model]) -> tuple[datetime, Any]:
    try:
        at, pk = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        when = datetime.fromisoformat(at)
        if when.tzinfo is None or not isinstance(pk, str | int) or "\x00" in str(pk):
            raise ValueError
        return when, model._meta.pk.to_python(pk)
    except (ValueError, TypeError, binascii.Error, UnicodeDecodeError, ValidationError):
        raise _foreign_cursor() from None


def _foreign_cursor() -> InvalidRequest:
    text = "cursor is not one that this list gave out: start again without it"
    return InvalidRequest(text, param="cursor", code="invalid_cursor")


PAGE_PARAMETERS: Final = [
    OpenApiParameter("cursor", str, description="`next` of the page before"),
    OpenApiParameter("limit", int, description=f"rows per page, 1 to {MAX_PAGE}; {DEFAULT_PAGE} unless told"),
]


def page_of(name: str, row: type[serializers.BaseSerializer[Any]]) -> serializers.Serializer[Any]:
    """The schema of a page: `{"data": [row], "next": cursor | null}`. `name` is the component's name."""
    return inline_serializer(name, {"data": row(many=True), "next": serializers.CharField(allow_null=True)})


class ErrorBody(serializers.Serializer[Any]):
    """What every error looks like."""

    class Detail(serializers.Serializer[Any]):
        message = serializers.CharField()
        type = serializers.CharField()
        param = serializers.CharField(allow_null=True)
        code = serializers.CharField(allow_null=True)

        class Meta:
            ref_name: ClassVar[str] = "ErrorDetail"

    error = Detail()
