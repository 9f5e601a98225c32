"""Lists as OpenAI pages them: `after` is the last id of the page before."""

from collections.abc import Callable
from typing import TypeVar

from django.db import models
from django.db.models import Q
from django.http import HttpRequest

from controlplane.inference.answers import Json
from controlplane.inference.fields import wrong

M = TypeVar("M", bound=models.Model)


def read_limit(request: HttpRequest, default: int, most: int) -> int:
    text = request.GET.get("limit")
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= most:
        raise wrong("limit", text, f"it must be a whole number from 1 to {most}")
    return int(text)


def read_order(request: HttpRequest) -> bool:
    """True where the oldest come first."""
    order = request.GET.get("order", "desc")
    if order not in ("asc", "desc"):
        raise wrong("order", order, "it must be asc or desc")
    return order == "asc"


def page(
    rows: "models.QuerySet[M]",
    request: HttpRequest,
    limit: int,
    represent: Callable[[M], Json],
    *,
    oldest_first: bool = False,
) -> Json:
    """By creation; rows that arrive or vanish meanwhile shift nothing."""
    if after := request.GET.get("after"):
        rows = rows.filter(_beyond(rows, after, oldest_first))
    signs = ("created_at", "id") if oldest_first else ("-created_at", "-id")
    found = list(rows.order_by(*signs)[: limit + 1])
    data = [represent(row) for row in found[:limit]]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": len(found) > limit,
    }


def _beyond(rows: "models.QuerySet[M]", after: str, oldest_first: bool) -> Q:
    at = None if "\x00" in after else rows.filter(id=after).values_list("created_at").first()
    if at is None:
        raise wrong("after", after, "it must be the id of a row of this list")
    sign = "gt" if oldest_first else "lt"
    return Q(**{f"created_at__{sign}": at[0]}) | Q(created_at=at[0], **{f"id__{sign}": after})
