"""From a well-formed request to an order: which model, how long a prompt, what room, at what price."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec
from django.conf import settings

from controlplane.adapters.queries import ResolvedAdapter, resolve_model
from controlplane.billing.services import PinnedPrice, price_for
from controlplane.errors import Forbidden, InvalidRequest, NotFound
from controlplane.inference.asking import ask, serving_engine
from controlplane.inference.fields import wrong
from controlplane.inference.resources import Door
from controlplane.inference.sampling import sequences_of
from controlplane.inference.schemas import Wanted
from controlplane.inference.settlement import Account
from engine.protocol import AdapterRef, Description, Prepared, Sampling
from tenants.auth import Principal
from tenants.sql import Plan, run_apart


@dataclass(frozen=True)
class Order:
    """All that running and charging one prompt of a request needs. sampling: with the `max_tokens` that it gets.
    names, deadline_s, pooling: as in `Wanted`."""

    request_id: str
    principal: Principal
    account: Account
    adapter: AdapterRef | None
    prompt: Prepared
    sampling: Sampling
    names: Mapping[str, str]
    deadline_s: float | None = None
    pooling: Literal["mean", "last"] | None = None

    @property
    def most_tokens(self) -> int:
        """The most that may be generated for it, over all its choices."""
        return sequences_of(self.sampling) * self.sampling.max_tokens


class Chosen(NamedTuple):
    """name: what the answer's `model` says. adapter: None for the base model."""

    name: str
    adapter: ResolvedAdapter | None
    price: PinnedPrice


def base_model() -> str:
    """The name of the base model that this door serves."""
    return settings.MODEL_DIR.name


async def take_orders(
    door: Door, principal: Principal, wanted: Wanted, request_id: str, *, is_batch: bool = False
) -> list[Order]:
    """One order per prompt: the first has the request's own id, the others `<id>-1`, `<id>-2`, ...
    is_batch: at the price of batches.

    Raises ApiError: 404 unknown model, 400 prompt or room, 503 engine away or no price."""
    plan = choose_model(principal, wanted.model, wanted.user, is_batch=is_batch)
    chosen = await run_apart(door.pool, plan, tenant=principal.tenant_id)
    engine = await serving_engine(door)
    prepared = [await ask(door, prompt, Prepared, wanted.names) for prompt in wanted.prompts]
    account, ref = _account(principal, chosen, is_batch), _ref(chosen.adapter)
    return [
        Order(
            f"{request_id}-{i}" if i else request_id,
            principal,
            account,
            ref,
            prompt,
            msgspec.structs.replace(wanted.sampling, max_tokens=room_for(len(prompt.token_ids), wanted, engine)),
            wanted.names,
            wanted.deadline_s,
            wanted.pooling,
        )
        for i, prompt in enumerate(prepared)
    ]


def _account(principal: Principal, chosen: Chosen, is_batch: bool) -> Account:
    adapter = chosen.adapter
    return Account(
        tenant_id=principal.tenant_id,
        key_id=principal.key_id,
        adapter_id=adapter.adapter_id if adapter else None,
        adapter_version_id=adapter.version_id if adapter else None,
        model=chosen.name,
        base_model=base_model(),
        price=chosen.price,
        is_batch=is_batch,
    )


def _ref(adapter: ResolvedAdapter | None) -> AdapterRef | None:
    return AdapterRef(adapter.version_id, adapter.uri, adapter.digest, adapter.rank) if adapter else None


def check_allowed(principal: Principal, model: str) -> None:
    """Before anything is looked up, so that what a key may not use is not told from what does not exist."""
    if not principal.may_use(model):
        raise Forbidden(
            f"This key may not use the model `{_cut(model)}`: "
            "name one of its allowed models (GET /v1/models), or add it.",
            param="model",
            code="model_not_allowed",
        )


def pick_of(model: str, who: str) -> float:
    """[0, 1): where in a split somebody falls. The same for the same person and model, so that a canary does not change
    in the middle of a conversation; independent between models."""
    return int.from_bytes(hashlib.sha256(f"{model}\0{who}".encode()).digest()[:6], "big") / 2**48


def choose_model(principal: Principal, model: str, user: str | None = None, *, is_batch: bool = False) -> Plan[Chosen]:
    """The model by the name the caller used, and its price. Foreign and missing names are one 404.

    user: who of the caller's users asks; a split is by them, else by the key."""
    check_allowed(principal, model)
    tenant_id, base = principal.tenant_id, base_model()
    if model == base:
        price = yield from price_for(tenant_id=tenant_id, base_model=base, adapter_id=None, is_batch=is_batch)
        return Chosen(base, None, price)
    found = yield from resolve_model(tenant_id=tenant_id, model=model, pick=pick_of(model, user or principal.key_id))
    if found is None or found.base_model != base:
        raise model_not_found(model)
    price = yield from price_for(tenant_id=tenant_id, base_model=base, adapter_id=found.adapter_id, is_batch=is_batch)
    return Chosen(found.name, found, price)


def model_not_found(model: str) -> NotFound:
    text = f"The model `{_cut(model)}` does not exist or is not yours. GET /v1/models lists the models of this key."
    return NotFound(text, param="model", code="model_not_found")


def _cut(model: str) -> str:
    """An error must not be a mirror for megabytes."""
    return model if len(model) <= 100 else f"{model[:100]}..."


def room_for(prompt: int, wanted: Wanted, engine: Description) -> int:
    """How many tokens each choice may have. What was asked for is given or refused, never cut."""
    place, limit = "context of this model", engine.context_len
    if engine.pool_tokens < limit:
        place, limit = "cache pool of this engine", engine.pool_tokens
    param, asked = wanted.names["prompt"], wanted.max_tokens
    room = limit - prompt
    if room < 1:
        raise _too_long(f"the prompt has {prompt} tokens and leaves no room for an answer", place, limit, param)
    if asked is None:
        asked = min(settings.DEFAULT_MAX_TOKENS, room)
    if asked > room:
        text = f"the prompt has {prompt} tokens and `{wanted.names['max_tokens']}` asks for {asked} more"
        raise _too_long(f"{text}, {prompt + asked} in all", place, limit, param)
    if wanted.sampling.min_tokens > asked:
        at_least = wanted.sampling.min_tokens
        raise wrong("min_tokens", at_least, f"the answer has at most {asked} tokens, so that it can be {asked} or less")
    return asked


def _too_long(what: str, place: str, limit: int, param: str) -> InvalidRequest:
    text = f"The {place} holds {limit} tokens, but {what}. Shorten the prompt or ask for fewer tokens."
    return InvalidRequest(text, param=param, code="context_length_exceeded")
