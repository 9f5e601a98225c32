"""POST /tokenize and /detokenize, in vLLM's shapes: what a text is to the model. Not billed; each call counts as one
request of the rate limit."""

from decimal import Decimal
from typing import Any, Final

import msgspec
from django.http.response import HttpResponseBase

from controlplane.inference.admission import choose_model
from controlplane.inference.asking import ask, known_engine
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.fields import Body, read_bool, read_ids, wrong
from controlplane.inference.logprob_shapes import token_text
from controlplane.inference.prompts import chat_prompt
from controlplane.inference.replies import json_reply
from controlplane.inference.schemas import read_model
from controlplane.inference.tool_fields import read_tools
from controlplane.quotas.rates import Limits
from controlplane.quotas.services import release_hold, reserve
from engine.protocol import Detokenize, Detokenized, Prepare, Prepared
from tenants.sql import Plan, run_async

_MOST_IDS: Final = 1_000_000


@endpoint("POST", "inference")
async def tokenize(call: Call) -> HttpResponseBase:
    body = call.body()
    model, prompt = read_model(body), _read_prompt(body)
    limits = await run_async(call.door.pool, _count_call(call, model), tenant=call.principal.tenant_id)
    engine = await known_engine(call.door)
    param = "prompt" if prompt.messages is None else "messages"
    found = await ask(call.door, prompt, Prepared, {"prompt": param})
    answer = {
        "count": len(found.token_ids),
        "max_model_len": engine.context_len,
        "tokens": found.token_ids,
        "token_strs": [token_text(piece) for piece in found.pieces] if prompt.with_pieces else None,
    }
    return json_reply(answer, headers=limits.headers())


@endpoint("POST", "inference")
async def detokenize(call: Call) -> HttpResponseBase:
    body = call.body()
    model = read_model(body)
    if not isinstance(body.get("tokens"), list):
        raise wrong("tokens", body.get("tokens"), "it must be a list of token ids", "invalid_type")
    tokens = read_ids(body, "tokens", most=_MOST_IDS)
    limits = await run_async(call.door.pool, _count_call(call, model), tenant=call.principal.tenant_id)
    found = await ask(call.door, Detokenize("", tokens), Detokenized, {"prompt": "tokens"})
    return json_reply({"prompt": found.text}, headers=limits.headers())


def _read_prompt(body: Body) -> Prepare:
    """A text, or a conversation as the chat template writes it."""
    with_pieces = read_bool(body, "return_token_strs")
    adds_special = body.get("add_special_tokens")
    if not isinstance(adds_special, bool | None):
        raise wrong("add_special_tokens", adds_special, "it must be true or false", "invalid_type")
    if body.get("messages") is None:
        prompt: Any = body.get("prompt")
        if not isinstance(prompt, str):
            raise wrong("prompt", prompt, "send a text, or `messages` instead", "invalid_type")
        return Prepare("", text=prompt, special_tokens=adds_special is not False, with_pieces=with_pieces)
    if body.get("prompt") is not None:
        raise wrong("prompt", body["prompt"], "send it or `messages`, not both")
    if adds_special:
        raise wrong("add_special_tokens", True, "the chat template writes them itself: leave it out")
    tools = read_tools(body).definitions
    return msgspec.structs.replace(chat_prompt(body, None), tools=tools, with_pieces=with_pieces)


def _count_call(call: Call, model: str) -> Plan[Limits]:
    """A hold of nothing, given back at once, leaves its request counted. Raises NotFound and RateLimited."""
    chosen = yield from choose_model(call.principal, model)
    limits = yield from reserve(
        request_id=call.id,
        tenant_id=call.principal.tenant_id,
        key_id=call.principal.key_id,
        adapter_id=chosen.adapter.adapter_id if chosen.adapter else None,
        tokens=0,
        amount=Decimal(0),
        ttl_seconds=call.door.hold_ttl,
    )
    yield from release_hold(request_id=call.id)
    return limits
