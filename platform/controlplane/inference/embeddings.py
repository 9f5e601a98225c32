"""POST /v1/embeddings: what the model, with the adapter, makes of a text, as a vector of unit length."""

import base64
import math
import sys
from array import array
from collections.abc import Awaitable, Callable
from typing import Any, Final

from django.http.response import HttpResponseBase

from controlplane.inference.answers import Json, usage_body
from controlplane.inference.api import ended
from controlplane.inference.asking import known_engine
from controlplane.inference.endpoint import Call, endpoint
from controlplane.inference.fields import Body, is_token_id, read_int, wrong
from controlplane.inference.parameters import MAX_TOKENS
from controlplane.inference.pieces import Piece
from controlplane.inference.replies import json_reply
from controlplane.inference.resources import Door
from controlplane.inference.run import Ending, Run
from controlplane.inference.schemas import Wanted, check_labels, read_model, read_timeout
from controlplane.inference.services import start
from engine.protocol import Prepare, Sampling

MAX_INPUTS: Final = 256
_FORMATS: Final = ("float", "base64")
_POOLINGS: Final = ("mean", "last")


@endpoint("POST", "inference")
async def embeddings(call: Call) -> HttpResponseBase:
    headers: dict[str, str] = {}

    async def begin(wanted: Wanted) -> Run:
        run = await start(call.door, call.principal, wanted, call.id)
        headers.update(run.headers or {})
        return run

    answer = await embed(call.door, call.body(), begin, read_timeout(call.request.META))
    return json_reply(answer, headers=headers)


async def embed(
    door: Door, body: Body, begin: Callable[[Wanted], Awaitable[Run]], deadline_s: float | None = None
) -> Json:
    """The whole answer. begin: runs what is wanted."""
    wanted = parse_embeddings(body, deadline_s)
    is_base64 = _one_of(body, "encoding_format", _FORMATS) == "base64"
    size = (await known_engine(door)).hidden_size
    if (read_int(body, "dimensions", 1, MAX_TOKENS) or size) != size:
        raise wrong("dimensions", body["dimensions"], f"this model's embeddings have {size}: leave it out")
    run = await begin(wanted)
    return _answer(run, *await ended(run), is_base64=is_base64)


def parse_embeddings(body: Body, deadline_s: float | None = None) -> Wanted:
    """Each input is a prompt of its own."""
    model, prompts = read_model(body), _read_inputs(body)
    check_labels(body)
    if body.get("stream"):
        raise wrong("stream", body["stream"], "an embedding comes whole: leave it out")
    pooling = _one_of(body, "pooling", _POOLINGS)
    return Wanted(
        model,
        prompts,
        Sampling(0),
        max_tokens=0,
        names={"prompt": "input", "max_tokens": "input"},
        deadline_s=deadline_s,
        pooling="last" if pooling == "last" else "mean",
        user=body.get("user"),
    )


def _one_of(body: Body, param: str, known: tuple[str, ...]) -> str:
    """The first where it is left out."""
    value = body.get(param)
    if value is not None and value not in known:
        raise wrong(param, value, f"it must be {' or '.join(known)}")
    return value or known[0]


def _read_inputs(body: Body) -> tuple[Prepare, ...]:
    """A text, a list of token ids, or a list of either."""
    value = body.get("input")
    is_list = isinstance(value, list) and bool(value) and isinstance(value[0], str | list)
    inputs: list[Any] = value if isinstance(value, list) and is_list else [value]
    if len(inputs) > MAX_INPUTS:
        raise wrong("input", f"{len(inputs)} inputs", f"at most {MAX_INPUTS} are embedded at once: send them in parts")
    return tuple(_read_input(item, f"input[{i}]" if is_list else "input") for i, item in enumerate(inputs))


def _read_input(value: Any, where: str) -> Prepare:
    if isinstance(value, str) and value:
        return Prepare("", text=value)
    if not isinstance(value, list) or not value:
        raise wrong(where, value, "send a text that is not empty, a list of token ids, or a list of these")
    if not all(is_token_id(item) for item in value):
        raise wrong(where, value, "token ids must be whole numbers that are not negative", "invalid_type")
    return Prepare("", token_ids=tuple(value))


def _answer(run: Run, choices: list[Piece], ending: Ending, *, is_base64: bool) -> Json:
    vectors = [_unit(_floats(piece.embedding or b"")) for piece in choices]
    data = [
        {"object": "embedding", "index": i, "embedding": _base64(vector) if is_base64 else vector.tolist()}
        for i, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": run.model, "usage": usage_body(ending.usage, ending.amount)}


def _floats(raw: bytes) -> "array[float]":
    found = array("f")
    found.frombytes(raw)
    return _little_endian(found)


def _unit(vector: "array[float]") -> "array[float]":
    """A vector of zeros stays one."""
    length = math.sqrt(math.fsum(x * x for x in vector)) or 1.0
    return array("f", (x / length for x in vector))


def _base64(vector: "array[float]") -> str:
    return base64.b64encode(_little_endian(vector[:]).tobytes()).decode()


def _little_endian(vector: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        vector.byteswap()
    return vector
