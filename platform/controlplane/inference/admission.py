"""From a well-formed request to an order: which model, how long a prompt, what room, at what price."""

import random
from dataclasses import dataclass
from typing import NamedTuple

from django.conf import settings

from controlplane.adapters.queries import ResolvedAdapter, resolve_model
from controlplane.billing.services import PinnedPrice, price_for
from controlplane.errors import InvalidRequest, NotFound
from controlplane.inference.engine_faults import EngineGone, EngineRefusal, engine_gone, error_of
from controlplane.inference.resources import Door
from controlplane.inference.schemas import Wanted
from controlplane.inference.settlement import Account
from engine.protocol import AdapterRef, Description, Sampling
from tenants.auth import Principal
from tenants.sql import Plan, run_async


@dataclass(frozen=True)
class Order:
    """All that running and charging one request needs."""

    request_id: str
    principal: Principal
    account: Account
    adapter: AdapterRef | None
    token_ids: tuple[int, ...]
    sampling: Sampling


class Chosen(NamedTuple):
    """name: what the answer's `model` says. adapter: None for the base model."""

    name: str
    adapter: ResolvedAdapter | None
    price: PinnedPrice


def base_model() -> str:
    """The name of the base model that this door serves."""
    return settings.MODEL_DIR.name


async def take_order(door: Door, principal: Principal, wanted: Wanted, request_id: str) -> Order:
    """Raises ApiError: 404 unknown model, 400 prompt or room, 503 engine away or no price."""
    chosen = await run_async(door.pool, choose_model(principal.tenant_id, wanted.model))
    try:
        engine = await door.engine.known()
        token_ids = await door.engine.prepare(messages=wanted.messages, text=wanted.text, token_ids=wanted.token_ids)
    except EngineRefusal as refusal:
        raise error_of(refusal.error) from None
    except EngineGone:
        raise engine_gone() from None
    room = room_for(len(token_ids), wanted, engine)
    sampling = Sampling(room, wanted.temperature, wanted.top_p, wanted.top_k, wanted.seed, wanted.stop)
    adapter = chosen.adapter
    account = Account(
        tenant_id=principal.tenant_id,
        key_id=principal.key_id,
        adapter_id=adapter.adapter_id if adapter else None,
        adapter_version_id=adapter.version_id if adapter else None,
        model=chosen.name,
        base_model=base_model(),
        price=chosen.price,
    )
    ref = AdapterRef(adapter.version_id, adapter.uri, adapter.digest, adapter.rank) if adapter else None
    return Order(request_id, principal, account, ref, token_ids, sampling)


def choose_model(tenant_id: str, model: str) -> Plan[Chosen]:
    """The model by the name the caller used, and its price. Foreign and missing names are one 404."""
    base = base_model()
    if model == base:
        return Chosen(base, None, (yield from price_for(tenant_id=tenant_id, base_model=base, adapter_id=None)))
    found = yield from resolve_model(tenant_id=tenant_id, model=model, pick=random.random())
    if found is None or found.base_model != base:
        raise model_not_found(model)
    price = yield from price_for(tenant_id=tenant_id, base_model=base, adapter_id=found.adapter_id)
    return Chosen(found.name, found, price)


def model_not_found(model: str) -> NotFound:
    shown = model if len(model) <= 100 else f"{model[:100]}..."
    text = f"The model `{shown}` does not exist or is not yours. GET /v1/models lists the models of this key."
    return NotFound(text, param="model", code="model_not_found")


def room_for(prompt: int, wanted: Wanted, engine: Description) -> int:
    """How many tokens may be generated. What was asked for is given or refused, never cut."""
    place, limit = "context of this model", engine.context_len
    if engine.pool_tokens < limit:
        place, limit = "cache pool of this engine", engine.pool_tokens
    param = "messages" if wanted.kind == "chat" else "prompt"
    room = limit - prompt
    if room < 1:
        raise _too_long(f"the prompt has {prompt} tokens and leaves no room for an answer", place, limit, param)
    if wanted.max_tokens is None:
        return min(settings.DEFAULT_MAX_TOKENS, room)
    if wanted.max_tokens > room:
        asked = f"the prompt has {prompt} tokens and `{wanted.max_tokens_param}` asks for {wanted.max_tokens} more"
        raise _too_long(f"{asked}, {prompt + wanted.max_tokens} in all", place, limit, param)
    return wanted.max_tokens


def _too_long(what: str, place: str, limit: int, param: str) -> InvalidRequest:
    text = f"The {place} holds {limit} tokens, but {what}. Shorten the prompt or ask for fewer tokens."
    return InvalidRequest(text, param=param, code="context_length_exceeded")
