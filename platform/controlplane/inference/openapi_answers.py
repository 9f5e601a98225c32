"""Answers as JSON schemas: what each endpoint sends, and every error that it may send instead."""

from typing import Any, Final

Json = dict[str, Any]

ERROR: Final[Json] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "Names the field, the value and the remedy."},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        }
    },
}
USAGE: Final[Json] = {
    "type": "object",
    "required": ["prompt_tokens", "completion_tokens", "total_tokens", "cost", "device_seconds"],
    "properties": {
        "prompt_tokens": {"type": "integer", "minimum": 0},
        "completion_tokens": {"type": "integer", "minimum": 0},
        "total_tokens": {"type": "integer", "minimum": 0},
        "prompt_tokens_details": {"type": "object", "properties": {"cached_tokens": {"type": "integer"}}},
        "cost": {"type": "string", "description": "Exact, in the currency that `GET /v1/key` names."},
        "device_seconds": {"type": "number"},
    },
}
# Status -> why. A body is an `Error`.
_ALWAYS: Final = {
    401: "No key, or one that is not valid.",
    403: "The key may not do this, from here, or with this model.",
    503: "The engine or the database is away.",
}
_OF_BODY: Final = {
    400: "A field is wrong; `param` names it.",
    402: "The budget does not cover the most that this may cost.",
    404: "There is no such thing, or it is not yours.",
    408: "`x-request-timeout` was over before the end.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    429: "Too much at once: come back after `Retry-After` seconds.",
}
_OF_STATE: Final = {409: "It is in use, or has ended."}


def errors(*also: int, has_body: bool = False) -> Json:
    """The `responses` of all that may go wrong. also: statuses besides those of every endpoint."""
    known = {**_OF_BODY, **_OF_STATE}
    told = {**_ALWAYS, **(_OF_BODY if has_body else {status: known[status] for status in also})}
    return {str(status): _response(text, {"$ref": "#/components/schemas/Error"}) for status, text in told.items()}


def answered(text: str, schema: Json, *, streams: bool = False) -> Json:
    found = _response(text, schema)
    if streams:
        found["content"]["text/event-stream"] = {"schema": record(data={"type": "string"})}
    return {"200": found}


def _response(text: str, schema: Json) -> Json:
    headers = {"x-request-id": {"description": "Names the request in our logs.", "schema": {"type": "string"}}}
    return {"description": text, "headers": headers, "content": {"application/json": {"schema": schema}}}


def generated(kind: str, content: Json) -> Json:
    """A chat or text completion. content: what a choice holds beside its index and its end."""
    choice = {
        "type": "object",
        "required": ["index", "logprobs", "finish_reason", *content],
        "properties": {
            "index": {"type": "integer", "minimum": 0},
            "logprobs": {"type": ["object", "null"]},
            "finish_reason": {"enum": ["stop", "length", "tool_calls", "function_call"]},
            **content,
        },
    }
    return record(
        id={"type": "string"},
        object={"enum": [kind]},
        created={"type": "integer"},
        model={"type": "string"},
        choices={"type": "array", "items": choice, "minItems": 1},
        usage={"$ref": "#/components/schemas/Usage"},
    )


def record(**fields: Json) -> Json:
    """An object that has all of these fields."""
    return {"type": "object", "required": list(fields), "properties": fields}


def listed(item: Json) -> Json:
    return record(object={"enum": ["list"]}, data={"type": "array", "items": item})
