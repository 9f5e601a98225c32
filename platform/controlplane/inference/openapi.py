"""GET /openapi.json: the door's own description of itself, OpenAPI 3.1. Public: it says nothing of anybody."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from controlplane.inference import openapi_answers as answers
from controlplane.inference import openapi_batches
from controlplane.inference import openapi_bodies as bodies
from controlplane.inference import openapi_registrations as registrations
from controlplane.inference.parameters import TIMEOUT, TIMEOUT_HEADER
from controlplane.inference.replies import json_reply

Json = dict[str, Any]
_TEXT: Final[Json] = {"type": "string"}
_COUNT: Final[Json] = {"type": "integer", "minimum": 0}
_MODEL: Final = answers.record(
    id=_TEXT, object={"enum": ["model"]}, created={"type": "integer"}, owned_by=_TEXT,
    parent={"type": ["string", "null"]}, root=_TEXT,
)  # fmt: skip


async def openapi(request: HttpRequest) -> HttpResponse:
    return json_reply(document())


def document() -> Json:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Veneer", "version": "1", "description": "OpenAI's API for many adapters of one model."},
        "security": [{"key": []}],
        "paths": {**_generating(), **_reading(), **_of_tokens(), **openapi_batches.paths()},
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "ChatBody": bodies.chat_body(),
                "CompletionBody": bodies.completion_body(),
                "Usage": answers.USAGE,
                "Error": answers.ERROR,
            },
        },
    }


def _generating() -> Json:
    message = {"message": {"type": "object"}}
    return {
        "/v1/chat/completions": _post("ChatBody", answers.generated("chat.completion", message), "A chat completion."),
        "/v1/completions": _post("CompletionBody", answers.generated("text_completion", {"text": _TEXT}), "A text."),
        "/v1/responses": _post(bodies.response_body(), _response(), "A response, of which nothing is stored."),
        "/v1/embeddings": _post(bodies.embedding_body(), _embeddings(), "Vectors of unit length.", streams=False),
    }


def _post(body: str | Json, answer: Json, text: str, *, streams: bool = True) -> Json:
    schema = {"$ref": f"#/components/schemas/{body}"} if isinstance(body, str) else body
    timeout = {"name": TIMEOUT_HEADER, "in": "header", "required": False, "schema": _timeout_schema()}
    operation = {
        "summary": text,
        "parameters": [timeout],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {**answers.answered(text, answer, streams=streams), **answers.errors(has_body=True)},
    }
    return {"post": operation}


def _timeout_schema() -> Json:
    return {"type": "integer", "minimum": int(TIMEOUT.low), "maximum": int(TIMEOUT.high), "description": TIMEOUT.doc}


def _response() -> Json:
    return answers.record(
        id=_TEXT,
        object={"enum": ["response"]},
        created_at={"type": "integer"},
        status={"enum": ["completed", "incomplete"]},
        model=_TEXT,
        output={"type": "array", "items": {"type": "object"}},
        usage={"type": "object"},
    )


def _embeddings() -> Json:
    one = answers.record(
        object={"enum": ["embedding"]},
        index=_COUNT,
        embedding={"type": ["array", "string"], "items": {"type": "number"}},
    )
    usage = {"$ref": "#/components/schemas/Usage"}
    return answers.record(object={"enum": ["list"]}, data={"type": "array", "items": one}, model=_TEXT, usage=usage)


def _of_tokens() -> Json:
    """Under /v1, and where vLLM has them."""
    shown = {"type": ["array", "null"], "items": _TEXT}
    ids = {"type": "array", "items": bodies.TOKEN_ID}
    tokenized = answers.record(count=_COUNT, max_model_len=_COUNT, tokens=ids, token_strs=shown)
    tokenize = _post(bodies.tokenize_body(), tokenized, "The tokens of a text or a conversation.", streams=False)
    detokenize = _post(bodies.detokenize_body(), answers.record(prompt=_TEXT), "The text of tokens.", streams=False)
    for operation in (tokenize, detokenize):
        del operation["post"]["parameters"]  # nothing runs, so that nothing can be late
    return {
        "/v1/tokenize": tokenize, "/v1/detokenize": detokenize, "/tokenize": tokenize, "/detokenize": detokenize,
    }  # fmt: skip


def _reading() -> Json:
    data = {"type": "object"}
    name = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
    generation = {"name": "id", "in": "query", "required": True, "schema": {"type": "string", "minLength": 1}}
    times = [
        {"name": each, "in": "query", "required": False, "schema": {"type": "string", "format": "date-time"}}
        for each in ("from", "to")
    ]
    usage = answers.record(
        object={"enum": ["usage"]}, **{"from": _TEXT, "to": _TEXT}, currency=_TEXT,
        data={"type": "array", "items": data}, total=data,
    )  # fmt: skip
    health = answers.record(status={"enum": ["ok", "degraded"]}, engine={"enum": ["up", "away"]})
    return {
        "/v1/models": {**_get("What this key may call.", answers.listed(_MODEL)), **_registering()},
        "/v1/jobs/{id}": _get("How far a registration is.", registrations.job(), [name], 404),
        "/v1/models/{id}": _get("One model, by a name of it.", _MODEL, [name], 404),
        "/v1/usage": _get("The tenant's totals by model on [from, to).", usage, times, 400),
        "/v1/key": _get("This key, its limits and what it has spent.", answers.record(data=data)),
        "/v1/generation": _get("What one request came to.", answers.record(data=data), [generation], 400, 404),
        "/health": {"get": _public("Whether the door answers, and the engine is up.", health)},
        "/openapi.json": {"get": _public("This description.", {"type": "object"})},
    }


def _registering() -> Json:
    text = "Fetch an adapter from where it lies."
    found = _post(registrations.registration_body(), registrations.started(), text, streams=False)
    del found["post"]["parameters"]  # nothing runs, so that nothing can be late
    found["post"]["responses"] |= answers.errors(409)
    return found


def _get(text: str, answer: Json, parameters: list[Json] | None = None, *also: int) -> Json:
    responses = {**answers.answered(text, answer), **answers.errors(*also)}
    return {"get": {"summary": text, "parameters": parameters or [], "responses": responses}}


def _public(text: str, answer: Json) -> Json:
    response = answers.answered(text, answer)
    del response["200"]["headers"]
    return {"summary": text, "security": [], "responses": response}
