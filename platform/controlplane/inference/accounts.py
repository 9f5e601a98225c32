"""GET /v1/usage, /v1/key and /v1/generation: what a program may know about its own spending."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from controlplane.currency import currency, exact_text
from controlplane.errors import InvalidRequest, NotFound
from controlplane.inference.answers import Json, request_id_of
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.fields import shown
from controlplane.inference.queries import generation_of, key_and_spend, limits_of_key, usage_by_model
from controlplane.inference.replies import json_reply
from controlplane.quotas.queries import QuotaState
from tenants.sql import Row, run_async

_COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")


@endpoint("GET", "inference", "usage:read")
async def usage(call: Call) -> HttpResponseBase:
    """The tenant's totals by model on [from, to); by default this month (UTC) up to now."""
    now = datetime.now(UTC)
    end = _instant(call.request, "to", now)
    start = _instant(call.request, "from", now.replace(day=1, hour=0, minute=0, second=0, microsecond=0))
    if start >= end:
        raise InvalidRequest(
            f"`from` ({start.isoformat()}) is not before `to` ({end.isoformat()}).", param="from", code="invalid_value"
        )
    tenant = call.principal.tenant_id
    rows = await run_async(call.door.pool, usage_by_model(tenant_id=tenant, start=start, end=end), tenant=tenant)
    total = {name: sum((row[name] for row in rows), Decimal(0)) for name in (*_COUNTS, "device_ns", "amount")}
    data = [{"model": row["group"], **_numbers(row)} for row in rows]
    span = {"from": start.isoformat(), "to": end.isoformat()}
    numbers = {"currency": currency(), "data": data, "total": _numbers(total)}
    return json_reply({"object": "usage", **span, **numbers})


def _numbers(row: Row) -> Json:
    return {
        **{name: int(row[name]) for name in _COUNTS},
        "device_seconds": float(row["device_ns"]) / 1e9,
        "cost": exact_text(row["amount"]),
    }


def _instant(request: HttpRequest, param: str, default: datetime) -> datetime:
    """ISO 8601; UTC where it names no zone. A plus that came undisguised arrives as a blank."""
    text = request.GET.get(param)
    if text is None:
        return default
    try:
        found = datetime.fromisoformat(text.replace(" ", "+"))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        remedy = "it must be a date or time in ISO 8601, such as 2026-01-31 or 2026-01-31T12:00:00Z"
        raise InvalidRequest(f"`{param}` is {shown(text)}: {remedy}.", param=param, code="invalid_value") from None


@endpoint("GET", "inference", "usage:read")
async def key(call: Call) -> HttpResponseBase:
    """This key: its limits, what is left of them, and what it has spent. Days, weeks and months are UTC."""
    names = {"tenant_id": call.principal.tenant_id, "key_id": call.principal.key_id}
    found, spend = await run_async(call.door.pool, key_and_spend(**names), tenant=names["tenant_id"])
    limits = await run_async(call.door.pool, limits_of_key(**names), tenant=names["tenant_id"])
    body = {
        "id": found["id"],
        "label": f"{found['name']} ({found['prefix']}...{found['last4']})",
        "tenant": call.principal.tenant_slug,
        "currency": currency(),
        "scopes": list(call.principal.scopes),
        "allowed_models": _all_of(call.principal.allowed_models),
        "allowed_networks": _all_of(call.principal.allowed_networks),
        "expires_at": found["expires_at"].isoformat() if found["expires_at"] else None,
        "usage": {name: exact_text(spend[name]) for name in ("total", "daily", "weekly", "monthly")},
        "limits": {level: _limits(state) for level, state in limits.items()},
    }
    return json_reply({"data": body})


def _all_of(names: tuple[str, ...] | None) -> list[str] | None:
    """None: there is no such limit."""
    return None if names is None else list(names)


def _limits(state: QuotaState) -> Json:
    budget = state.budget
    left = None if budget is None else exact_text(max(Decimal(0), budget - state.spent - state.held))
    return {
        "requests_per_minute": state.requests_per_minute,
        "tokens_per_minute": state.tokens_per_minute,
        "tokens_per_day": state.tokens_per_day,
        "tokens_per_month": state.tokens_per_month,
        "concurrency": state.concurrency,
        "budget": None if budget is None else exact_text(budget),
        "budget_period": state.period,
        "soft_budget": None if state.soft_budget is None else exact_text(state.soft_budget),
        "spent": exact_text(state.spent),
        "held": exact_text(state.held),
        "remaining": left,
    }


@endpoint("GET", "inference", "usage:read")
async def generation(call: Call) -> HttpResponseBase:
    """What one request came to, by the id of its answer (or its x-request-id). Works after a broken stream too."""
    wanted = call.request.GET.get("id", "")
    request_id = request_id_of(wanted)
    if not request_id:
        raise InvalidRequest(
            "`id` is missing: send ?id= with the id of an answer.", param="id", code="missing_required_parameter"
        )
    known = "\x00" not in request_id
    tenant = call.principal.tenant_id
    plan = generation_of(tenant_id=tenant, request_id=request_id)
    event, hold = await run_async(call.door.pool, plan, tenant=tenant) if known else (None, None)
    if event:
        return json_reply({"data": {"id": wanted, "status": _status(event["finish_reason"]), **_ended(event)}})
    if hold:
        # Released or expired without usage: it never ran.
        status = "running" if hold.state == "open" else "not_run"
        return json_reply({"data": {"id": wanted, "status": status, "model": hold.context.get("model")}})
    raise NotFound(f"There is no generation {shown(wanted)}.", param="id", code="generation_not_found")


def _status(finish_reason: str) -> str:
    """cancelled: the client left. failed: the engine did."""
    if finish_reason in ("stop", "length"):
        return "completed"
    return "cancelled" if finish_reason == "cancelled" else "failed"


def _ended(event: dict[str, Any]) -> Json:
    """Seconds are from its admission on: to its first token (null: there was none, or only the journal told of it), and
    to its last."""
    started, first = event["started_at"], event["first_at"]
    seconds = (event["finished_at"] - started).total_seconds()
    return {
        "model": event["model"],
        "adapter_version": event["adapter_version_id"],
        "key": event["key_id"],
        "is_batch": event["is_batch"],
        "finish_reason": event["finish_reason"],
        "prompt_tokens": event["prompt_tokens"],
        "cached_tokens": event["cached_tokens"],
        "completion_tokens": event["completion_tokens"],
        "device_seconds": event["device_ns"] / 1e9,
        "cost": exact_text(event["amount"]),
        "started_at": started.isoformat(),
        "finished_at": event["finished_at"].isoformat(),
        "first_token_seconds": (first - started).total_seconds() if first else None,
        "latency_seconds": seconds,
        "tokens_per_second": event["completion_tokens"] / seconds if seconds else None,
    }
