"""The engine wire: what a gateway may say to an engine, and what the engine answers.

Transport: ZeroMQ ROUTER (engine) / DEALER (gateway). Every message is one msgpack frame. A gateway sends one
`Request`; the engine answers with a *list* of `Event` per frame: one frame per engine step and gateway.

This module is one of the two that the control plane may import, so it stays free of torch.
"""

from typing import Literal

import msgspec

FinishReason = Literal["stop", "length", "cancelled", "engine_restart"]


class AdapterRef(msgspec.Struct, frozen=True):
    """An immutable adapter version. Names never travel: identity is the content digest.

    uri: folder with adapter_config.json and the tensors, in one file or in shards (`file:///...` or any obstore URL).
    digest: `engine.adapters.format.folder_digest`, hex; checked by the engine when it loads the files.
    """

    version: str
    uri: str
    digest: str
    rank: int


class Sampling(msgspec.Struct, frozen=True):
    """How to choose the next token. `temperature == 0` is greedy. `top_k == 0` and `top_p == 1` are off.

    seed: with it, the same request gives the same text whoever shares the batch.
    stop: strings that end the text; never part of what is returned.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()


class Message(msgspec.Struct, frozen=True):
    """One chat message as the template sees it."""

    role: str
    content: str


# --- gateway -> engine -------------------------------------------------------------------------------------------


class Describe(msgspec.Struct, tag="describe", frozen=True):
    """Ask what this engine serves; answered with one `Description`."""

    call_id: str


class Prepare(msgspec.Struct, tag="prepare", frozen=True):
    """Turn a prompt into token ids, exactly one of the three; answered with `Prepared` or `EngineError`.

    A gateway calls this first: the hold on a tenant's budget needs the true prompt length before anything runs.
    """

    call_id: str
    messages: tuple[Message, ...] | None = None
    text: str | None = None
    token_ids: tuple[int, ...] | None = None


class Generate(msgspec.Struct, tag="generate", frozen=True):
    """Run one request. Events carry its request_id until one with `finish_reason`, or an `EngineError`.

    tenant: whose turn it is in the fair queue. namespace: the cache salt of rule 1 (the engine adds the adapter).
    tenant_weight: the tenant's share of the service, 0.01 to 100. deadline_s: seconds from its arrival at the engine;
    what has not ended by then ends with the error `deadline_exceeded`. None: no deadline.
    """

    request_id: str
    tenant: str
    namespace: str
    token_ids: tuple[int, ...]
    sampling: Sampling
    adapter: AdapterRef | None = None
    tenant_weight: float = 1.0
    deadline_s: float | None = None


class Abort(msgspec.Struct, tag="abort", frozen=True):
    """Stop a request within one step. Answered by its final `TokenEvent` (finish_reason "cancelled")."""

    request_id: str


class Ping(msgspec.Struct, tag="ping", frozen=True):
    """Sent every second. An engine that hears nothing from a gateway for five seconds aborts what it asked for."""


class ReadJournal(msgspec.Struct, tag="read_journal", frozen=True):
    """Ask for finished requests after `after` (a `JournalLine.position`, 0 = from the start)."""

    call_id: str
    after: int
    limit: int = 500


class AckJournal(msgspec.Struct, tag="ack_journal", frozen=True):
    """The gateway has stored every line up to `position`."""

    position: int


Request = Describe | Prepare | Generate | Abort | Ping | ReadJournal | AckJournal


# --- engine -> gateway -------------------------------------------------------------------------------------------


class Usage(msgspec.Struct, frozen=True):
    """What a request used, as the journal has it. cached_tokens is a part of prompt_tokens.

    device_ns: nanoseconds of the device that were this request's share of the steps it took part in.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    device_ns: int


class Description(msgspec.Struct, tag="description", frozen=True):
    call_id: str
    engine_id: str  # stable over restarts: names the journal
    boot_id: str  # new at each start
    base_model: str
    context_len: int
    pool_tokens: int  # tokens the KV pool can hold
    max_rank: int
    adapter_slots: int
    device: str
    exact: bool


class Prepared(msgspec.Struct, tag="prepared", frozen=True):
    call_id: str
    token_ids: tuple[int, ...]


class TokenEvent(msgspec.Struct, tag="token", frozen=True):
    """New text of one request. `usage` comes with `finish_reason`, and is in the journal before it is sent."""

    request_id: str
    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None


class EngineError(msgspec.Struct, tag="error", frozen=True):
    """Why a call or request failed. `ref` is its call_id or request_id.

    code: machine-readable (`context_length_exceeded`, `adapter_unavailable`, `invalid_prompt`, ...).
    permanent: False where the same request may succeed later.
    usage: what had been used before the failure, when the request had been started (it is in the journal too).
    retry_after_s: seconds after which there should be room for it, by the service measured of late; None: not known.
    """

    ref: str
    code: str
    message: str
    param: str | None = None
    permanent: bool = True
    usage: Usage | None = None
    retry_after_s: float | None = None


class JournalLine(msgspec.Struct, tag="journal_line", frozen=True):
    """One ended request: the authority on what was used. Times are UTC unix seconds."""

    position: int
    request_id: str
    tenant: str
    adapter_version: str | None
    usage: Usage
    finish_reason: str  # a FinishReason, or "error:<code>"
    started_at: float
    finished_at: float


class JournalPage(msgspec.Struct, tag="journal_page", frozen=True):
    call_id: str
    engine_id: str
    lines: tuple[JournalLine, ...]
    last_position: int  # of the whole journal


Event = Description | Prepared | TokenEvent | EngineError | JournalPage

_encoder = msgspec.msgpack.Encoder()
_request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_events_decoder: msgspec.msgpack.Decoder[list[Event]] = msgspec.msgpack.Decoder(list[Event])


def encode_request(request: Request) -> bytes:
    return _encoder.encode(request)


def decode_request(frame: bytes) -> Request:
    """Raises msgspec.DecodeError / ValidationError on anything that is not a `Request`."""
    return _request_decoder.decode(frame)


def encode_events(events: list[Event]) -> bytes:
    return _encoder.encode(events)


def decode_events(frame: bytes) -> list[Event]:
    return _events_decoder.decode(frame)
