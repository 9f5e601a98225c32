"""What a caller may ask of the door: bodies parsed into `Wanted`, or refused with the field named."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, read_bool, read_int, read_number, read_object, read_text, shown, wrong
from controlplane.inference.messages import read_messages
from controlplane.inference.unsupported import refuse_unsupported
from engine.protocol import Message

Kind = Literal["chat", "text"]
_INT64 = 2**63
_MAX_TOKENS = 1_000_000
_MAX_STOPS = 4


@dataclass(frozen=True)
class Wanted:
    """A well-formed request. Exactly one of messages, text and token_ids is set. max_tokens None = the default."""

    kind: Kind
    model: str
    messages: tuple[Message, ...] | None
    text: str | None
    token_ids: tuple[int, ...] | None
    max_tokens: int | None
    max_tokens_param: str
    temperature: float
    top_p: float
    top_k: int
    seed: int | None
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool


def parse_json(raw: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as exc:
        why = "it is nested too deeply" if isinstance(exc, RecursionError) else str(exc)
        raise InvalidRequest(f"The body is not valid JSON: {why}. Send one JSON object.", code="invalid_json") from None
    if not isinstance(body, dict):
        raise InvalidRequest(f"The body is {shown(body)}: send one JSON object.", code="invalid_json")
    return body


def parse_chat(body: Body) -> Wanted:
    return _parse(body, "chat", messages=read_messages(body))


def parse_completion(body: Body) -> Wanted:
    text, token_ids = _read_prompt(body)
    return _parse(body, "text", text=text, token_ids=token_ids)


def _parse(
    body: Body,
    kind: Kind,
    *,
    messages: tuple[Message, ...] | None = None,
    text: str | None = None,
    token_ids: tuple[int, ...] | None = None,
) -> Wanted:
    model = read_text(body, "model", longest=300)
    if not model:
        raise InvalidRequest(
            "`model` is missing: name a model of GET /v1/models.", param="model", code="missing_required_parameter"
        )
    refuse_unsupported(body)
    _check_labels(body)
    max_tokens, named = _read_max_tokens(body)
    stream = read_bool(body, "stream")
    return Wanted(
        kind, model, messages, text, token_ids, max_tokens, named,
        temperature=read_number(body, "temperature", 0, 2, 1.0),
        top_p=read_number(body, "top_p", 0, 1, 1.0, above=True),
        top_k=read_int(body, "top_k", 0, _MAX_TOKENS) or 0,
        seed=read_int(body, "seed", -_INT64, _INT64 - 1),
        stop=_read_stop(body),
        stream=stream,
        include_usage=_read_include_usage(body, stream),
    )  # fmt: skip


def _read_max_tokens(body: Body) -> tuple[int | None, str]:
    """`max_completion_tokens` wins over the older `max_tokens`; both are checked."""
    older = read_int(body, "max_tokens", 1, _MAX_TOKENS)
    newer = read_int(body, "max_completion_tokens", 1, _MAX_TOKENS)
    return (newer, "max_completion_tokens") if newer is not None else (older, "max_tokens")


def _read_stop(body: Body) -> tuple[str, ...]:
    value = body.get("stop")
    stops = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise wrong("stop", value, f"it must be a string or a list of at most {_MAX_STOPS} strings", "invalid_type")
    if len(stops) > _MAX_STOPS:
        raise wrong("stop", value, f"at most {_MAX_STOPS} stop strings are allowed, it has {len(stops)}")
    if any(not stop or len(stop) > 256 for stop in stops):
        raise wrong("stop", value, "each stop string must have 1 to 256 characters")
    return tuple(stops)


def _read_include_usage(body: Body, stream: bool) -> bool:
    options = read_object(body, "stream_options")
    if body.get("stream_options") is not None and not stream:
        raise wrong("stream_options", options, "it is only allowed with `stream: true`")
    value = options.get("include_usage")
    if value is not None and not isinstance(value, bool):
        raise wrong("stream_options.include_usage", value, "it must be true or false", "invalid_type")
    return bool(value)


def _check_labels(body: Body) -> None:
    """`user` and `metadata` are the caller's own labels: well-formed, and no part of the answer."""
    read_text(body, "user", longest=512)
    for key, value in read_object(body, "metadata").items():
        if not isinstance(value, str):
            raise wrong(f"metadata.{key[:64]}", value, "metadata values must be strings", "invalid_type")


def _read_prompt(body: Body) -> tuple[str | None, tuple[int, ...] | None]:
    value = body.get("prompt")
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str | list):
        value = value[0]
    if isinstance(value, str) and value:
        return value, None
    if not isinstance(value, str | list) or value == "" or value == []:
        raise wrong("prompt", value, "send a text that is not empty, or a list of token ids", "invalid_value")
    if any(isinstance(item, str | list) for item in value):
        text = f"`prompt` has {len(value)} prompts: send one prompt per request."
        raise InvalidRequest(text, param="prompt", code="unsupported_parameter")
    if not all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**31 for item in value):
        raise wrong("prompt", value, "token ids must be whole numbers that are not negative", "invalid_type")
    return None, tuple(value)
