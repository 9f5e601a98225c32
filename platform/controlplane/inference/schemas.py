"""What a caller may ask of the door: bodies parsed into `Wanted`, or refused with the field named."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import (
    MAX_NESTING,
    Body,
    is_too_deep,
    read_bool,
    read_int,
    read_object,
    read_text,
    shown,
    wrong,
)
from controlplane.inference.grammars import read_grammar
from controlplane.inference.parameters import MAX_SEQUENCES, MAX_TOKENS, TIMEOUT, TIMEOUT_HEADER
from controlplane.inference.prompts import chat_prompt, text_prompts
from controlplane.inference.sampling import read_sampling, sequences_of
from controlplane.inference.unsupported import refuse_unsupported
from engine.protocol import Prepare, Sampling

_SECONDS = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6})?")
_TIMEOUT_META = "HTTP_" + TIMEOUT_HEADER.upper().replace("-", "_")
TOO_DEEP = f"it is nested too deeply, more than {MAX_NESTING} objects and lists in each other"
LABELS = ("user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")


@dataclass(frozen=True)
class Wanted:
    """A well-formed request of any endpoint.

    prompts: each becomes an engine request of its own, with `sampling.n` choices. sampling: its `max_tokens` is set
    when the room is known: `max_tokens`, or the default where that is None. echo: the prompt is a part of the text.
    names: the wire's name of a field -> the caller's, for refusals by the engine; "prompt" and "max_tokens" are there.
    deadline_s, pooling: as in `Generate`. user: who of the caller's users asks.
    """

    model: str
    prompts: tuple[Prepare, ...]
    sampling: Sampling
    max_tokens: int | None
    stream: bool = False
    include_usage: bool = False
    echo: bool = False
    shows_prompt_logprobs: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    deadline_s: float | None = None
    pooling: Literal["mean", "last"] | None = None
    user: str | None = None


def parse_json(raw: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as exc:
        why = TOO_DEEP if isinstance(exc, RecursionError) else str(exc)
        raise InvalidRequest(f"The body is not valid JSON: {why}. Send one JSON object.", code="invalid_json") from None
    # Counting is quick, and most bodies have few of either, however long they are.
    if raw.count(b"[") + raw.count(b"{") > MAX_NESTING and is_too_deep(body):
        raise InvalidRequest(f"The body cannot be read: {TOO_DEEP}.", code="invalid_json")
    if not isinstance(body, dict):
        raise InvalidRequest(f"The body is {shown(body)}: send one JSON object.", code="invalid_json")
    return body


def parse_chat(body: Body) -> Wanted:
    model, (grammar, named) = read_model(body), read_grammar(body)
    refuse_unsupported(body, "chat")
    return _parse(body, model, read_sampling(body, "chat", grammar), (chat_prompt(body, grammar),), "messages", named)


def parse_completion(body: Body) -> Wanted:
    model, (grammar, named) = read_model(body), read_grammar(body)
    refuse_unsupported(body, "text")
    echo = read_bool(body, "echo")
    sampling = read_sampling(body, "text", grammar)
    prompts = text_prompts(body, grammar, with_pieces=echo)
    if echo and sampling.prompt_logprobs is None:
        sampling = msgspec.structs.replace(sampling, prompt_logprobs=_scored(body, sampling.logprobs))
    return _parse(body, model, sampling, prompts, "prompt", named, echo=echo)


def _scored(body: Body, logprobs: int | None) -> int | None:
    """How an echoed prompt is scored: as the text is, and where no text is wanted, it is what the engine does."""
    is_all = _read_max_tokens(body, least=0)[0] == 0
    return 0 if is_all and logprobs is None else logprobs


def read_model(body: Body) -> str:
    model = read_text(body, "model", longest=300)
    if not model:
        raise InvalidRequest(
            "`model` is missing: name a model of GET /v1/models.", param="model", code="missing_required_parameter"
        )
    return model


def _parse(
    body: Body,
    model: str,
    sampling: Sampling,
    prompts: tuple[Prepare, ...],
    prompt_param: str,
    grammar_param: str,
    *,
    echo: bool = False,
) -> Wanted:
    check_labels(body)
    max_tokens, max_tokens_param = _read_max_tokens(body, least=0 if echo else 1)
    stream = read_bool(body, "stream")
    _check_choices(body, sampling, len(prompts))
    if stream:
        _check_stream(sampling)
    names = {"prompt": prompt_param, "grammar": grammar_param, "max_tokens": max_tokens_param}
    include_usage = _read_include_usage(body, stream)
    shows_prompt = body.get("prompt_logprobs") is not None
    if stream and shows_prompt:
        raise wrong("stream", True, "`prompt_logprobs` comes with whole answers only: send `stream: false`")
    return Wanted(
        model, prompts, sampling, max_tokens, stream, include_usage, echo, shows_prompt, names, user=body.get("user")
    )


def _read_max_tokens(body: Body, least: int) -> tuple[int | None, str]:
    """`max_completion_tokens` wins over the older `max_tokens`; both are checked."""
    older = read_int(body, "max_tokens", least, MAX_TOKENS)
    newer = read_int(body, "max_completion_tokens", least, MAX_TOKENS)
    return (newer, "max_completion_tokens") if newer is not None else (older, "max_tokens")


def _check_choices(body: Body, sampling: Sampling, prompts: int) -> None:
    texts = prompts * sequences_of(sampling)
    if texts > MAX_SEQUENCES:
        param = next((name for name in ("best_of", "beam_width") if body.get(name)), "n")
        remedy = f"for {prompts} prompts that makes {texts} texts, and one request may have {MAX_SEQUENCES}"
        raise wrong(param, body.get(param, 1), remedy)


def _check_stream(sampling: Sampling) -> None:
    """These are chosen among when all have ended, so that there is nothing to stream."""
    for param in ("best_of", "beam_width"):
        if value := getattr(sampling, param):
            raise wrong("stream", True, f"`{param}` of {value} chooses among ended texts: send `stream: false`")


def _read_include_usage(body: Body, stream: bool) -> bool:
    options = read_object(body, "stream_options")
    if body.get("stream_options") is not None and not stream:
        raise wrong("stream_options", options, "it is only allowed with `stream: true`")
    value = options.get("include_usage")
    if value is not None and not isinstance(value, bool):
        raise wrong("stream_options.include_usage", value, "it must be true or false", "invalid_type")
    return bool(value)


def check_labels(body: Body) -> None:
    """The caller's own labels and wishes for OpenAI's machines: well-formed, and no part of the answer."""
    for param in LABELS:
        read_text(body, param, longest=512)
    read_bool(body, "store")
    for key, value in read_object(body, "metadata").items():
        if not isinstance(value, str):
            raise wrong(f"metadata.{key[:64]}", value, "metadata values must be strings", "invalid_type")


def read_timeout(meta: Mapping[str, str]) -> float | None:
    """Seconds the request may take, from its arrival at the engine. meta: the request's META."""
    text = meta.get(_TIMEOUT_META)
    if text is None:
        return None
    seconds = float(text) if _SECONDS.fullmatch(text) else math.nan
    if not TIMEOUT.low <= seconds <= TIMEOUT.high:
        raise wrong(TIMEOUT_HEADER, text, f"it must be {TIMEOUT.low:g} to {TIMEOUT.high:g} seconds")
    return seconds
