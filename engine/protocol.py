"""The engine wire: what a gateway may say to an engine, and what the engine answers.

Transport: ZeroMQ ROUTER (engine) / DEALER (gateway). Every message is one msgpack frame. A gateway sends one
`Request`; the engine answers with a *list* of `Event` per frame: one frame per engine step and gateway.

This module is one of the two that the control plane may import, so it stays free of torch.
"""

from typing import Any, Literal

import msgspec

FinishReason = Literal["stop", "length", "cancelled", "engine_restart"]

# hermes: `<tool_call>\n{"name", "arguments"}\n</tool_call>`, one or more. llama3: the whole text is
# `{"name", "parameters"}`, more of them behind `; `. mistral: `[TOOL_CALLS][{"name", "arguments"}, ...]`.
ToolFormat = Literal["hermes", "llama3", "mistral"]


class AdapterRef(msgspec.Struct, frozen=True):
    """An immutable adapter version. Names never travel: identity is the content digest.

    uri: folder with adapter_config.json and the tensors, in one file or in shards (`file:///...` or any obstore URL).
    digest: `engine.adapters.format.folder_digest`, hex; checked by the engine when it loads the files.
    """

    version: str
    uri: str
    digest: str
    rank: int


class Grammar(msgspec.Struct, frozen=True):
    """What the text must match, as a whole.

    kind and text: "json_object" (text is empty), "json_schema" (the schema), "regex", "lark" (a grammar in
    llguidance's dialect of Lark), "choice" (a JSON list of strings).
    """

    kind: Literal["json_object", "json_schema", "regex", "lark", "choice"]
    text: str = ""


class Sampling(msgspec.Struct, frozen=True):
    """How to choose the next token. `temperature == 0` is greedy. `top_k == 0`, `top_p == 1`, `min_p == 0` are off.

    seed: with it, the same request gives the same text whoever shares the batch; choice i of n draws from its own
    stream of it. stop, stop_token_ids: end the text; never part of what is returned unless include_stop.
    n: choices to return. best_of: choices to generate, of which the n with the highest mean log-probability are
    returned when all have ended; 0 = n. beam_width: beam search over so many beams (no temperature), n of them are
    returned; 0 = off. length_penalty: exponent of the length that a beam's log-probability is divided by.
    Penalties act before the temperature: presence and frequency on generated tokens, repetition (1 = off) on the
    prompt's too. logit_bias: token id -> what is added to its logit, first of all. min_tokens: no end before so many.
    ignore_eos: the end-of-text token is a token like others.
    logprobs: with each token its log-probability before any of these changes, and so many of the likeliest beside it;
    None = none. prompt_logprobs: the same for the prompt's tokens.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    include_stop: bool = False
    n: int = 1
    best_of: int = 0
    beam_width: int = 0
    length_penalty: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] = {}
    min_tokens: int = 0
    ignore_eos: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    grammar: Grammar | None = None


class Message(msgspec.Struct, frozen=True):
    """One chat message as the template sees it.

    tool_calls: of an assistant, each {"id", "type": "function", "function": {"name", "arguments": object}}.
    tool_call_id, name: of a tool's answer. reasoning_content: what an assistant thought before.
    """

    role: str
    content: str
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None


# --- gateway -> engine -------------------------------------------------------------------------------------------
class Describe(msgspec.Struct, tag="describe", frozen=True):
    """Ask what this engine serves; answered with one `Description`."""

    call_id: str


class Prepare(msgspec.Struct, tag="prepare", frozen=True):
    """Turn a prompt into token ids, exactly one of the three; answered with `Prepared` or `EngineError`.

    A gateway calls this first: the hold on a tenant's budget needs the true prompt length before anything runs.
    tools: function definitions, {"type": "function", "function": {...}}, for the chat template. template_options: more
    variables for it. continue_last: the last message is left open, to be gone on with. special_tokens: of `text`.
    with_pieces: answer with each token's bytes too.
    grammar: compiled here, so that a wrong one is refused before anything is held.
    """

    call_id: str
    messages: tuple[Message, ...] | None = None
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    template_options: dict[str, Any] = {}
    continue_last: bool = False
    special_tokens: bool = True
    with_pieces: bool = False
    grammar: Grammar | None = None


class Detokenize(msgspec.Struct, tag="detokenize", frozen=True):
    """Turn token ids into text, special tokens written out; answered with `Detokenized` or `EngineError`."""

    call_id: str
    token_ids: tuple[int, ...]


class Generate(msgspec.Struct, tag="generate", frozen=True):
    """Run one request. Events carry its request_id until one with `usage`, or an `EngineError`.

    tenant: whose turn it is in the fair queue. namespace: the cache salt of rule 1 (the engine adds the adapter).
    tenant_weight: the tenant's share of the service, 0.01 to 100. deadline_s: seconds from its arrival at the engine;
    what has not ended by then ends with the error `deadline_exceeded`. None: no deadline.
    pooling: no text is made; the last event carries the prompt's embedding. sampling.max_tokens is 0 then.
    traceparent: W3C trace context of the gateway's span, for the engine's own.
    background: it has its turn, and its weight, apart from the tenant's other requests.
    """

    request_id: str
    tenant: str
    namespace: str
    token_ids: tuple[int, ...]
    sampling: Sampling
    adapter: AdapterRef | None = None
    tenant_weight: float = 1.0
    deadline_s: float | None = None
    pooling: Literal["mean", "last"] | None = None
    traceparent: str | None = None
    background: bool = False


class Abort(msgspec.Struct, tag="abort", frozen=True):
    """Stop a request within one step. Answered by its final `TokenEvent` (finish_reason "cancelled")."""

    request_id: str


class Pin(msgspec.Struct, tag="pin", frozen=True):
    """Keep an adapter in a slot from now on, or no more; answered with `Residency`, or with an `EngineError` where no
    slot would be left for the others. An engine forgets its pins when it ends: `Description.pinned` says what it has.
    """

    call_id: str
    adapter: AdapterRef
    pinned: bool


class Locate(msgspec.Struct, tag="locate", frozen=True):
    """Ask where adapters are; answered with `Places`."""

    call_id: str
    digests: tuple[str, ...]


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


class Drain(msgspec.Struct, tag="drain", frozen=True):
    """Refuse new requests from now on (`engine_draining`), or take them again; answered with `Description`."""

    call_id: str
    draining: bool


class ReadStats(msgspec.Struct, tag="read_stats", frozen=True):
    """Ask how the engine does; answered with `Stats`."""

    call_id: str


Call = Describe | Prepare | Detokenize | Pin | Locate | ReadJournal | Drain | ReadStats  # each has a call_id
Request = Call | Generate | Abort | Ping | AckJournal


# --- engine -> gateway -------------------------------------------------------------------------------------------
class Usage(msgspec.Struct, frozen=True):
    """What a request used, as the journal has it. cached_tokens is a part of prompt_tokens.

    device_ns: nanoseconds of the device that were this request's share of the steps it took part in; prefill_ns: the
    part of them that computed its prompt. energy_uj, prefill_uj: the same in microjoules; None: nobody counts them.
    """

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    device_ns: int
    prefill_ns: int = 0
    energy_uj: int | None = None
    prefill_uj: int | None = None


class Description(msgspec.Struct, tag="description", frozen=True):
    call_id: str
    engine_id: str  # stable over restarts: names the journal
    boot_id: str  # new at each start
    base_model: str
    context_len: int
    pool_tokens: int  # tokens that the KV pool lets one sequence have
    max_rank: int
    adapter_slots: int
    device: str
    exact: bool
    hidden_size: int = 0  # numbers in an embedding
    tool_format: ToolFormat | None = None  # how this model writes a tool call; None: it has no chat template
    reasoning: tuple[str, str] | None = None  # what its template opens and closes a thought with
    pinned: tuple[str, ...] = ()  # digests that `Pin` keeps
    draining: bool = False  # `Drain`
    limits: dict[str, int] = {}  # page_size, step_tokens, max_running: as configured
    kv: str = ""  # what keys and values are kept in: fp8, bf16 or fp32
    energy_uj: int | None = None  # of the device since this boot, idle or not; None: nobody counts it


class Prepared(msgspec.Struct, tag="prepared", frozen=True):
    """pieces: the bytes of each token, where asked for. is_thinking: the template has opened a thought at the end."""

    call_id: str
    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...] = ()
    is_thinking: bool = False


class Detokenized(msgspec.Struct, tag="detokenized", frozen=True):
    call_id: str
    text: str


class TopToken(msgspec.Struct, frozen=True):
    """One token that might have come. text: its bytes, which may be a part of a character. logprob: natural."""

    token_id: int
    text: bytes
    logprob: float


class TokenLogprob(msgspec.Struct, frozen=True):
    """The token that came, and the likeliest in its place, best first; `rank` 1 is the likeliest of all."""

    token_id: int
    text: bytes
    logprob: float
    rank: int
    top: tuple[TopToken, ...] = ()


class TokenEvent(msgspec.Struct, tag="token", frozen=True):
    """New text of one choice of a request. Each choice ends with a `finish_reason`.

    usage: of the whole request, with its very last event; in the journal before it is sent.
    logprobs: one per id of token_ids, where asked for. prompt_logprobs: one per token of the prompt, None for the
    first; with the first event of index 0. stop_reason: the stop string or token id that ended it; None for the end of
    text. embedding: little-endian float32, of a request with `pooling`.
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    index: int = 0
    logprobs: tuple[TokenLogprob, ...] | None = None
    prompt_logprobs: tuple[TokenLogprob | None, ...] | None = None
    stop_reason: str | int | None = None
    embedding: bytes | None = None


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


Tier = Literal["slot", "host", "loading", "none"]


class Residency(msgspec.Struct, tag="residency", frozen=True):
    """Where an adapter is just now. A pin that cannot be loaded is dropped."""

    call_id: str
    digest: str
    tier: Tier
    pinned: bool


class Places(msgspec.Struct, tag="places", frozen=True):
    """Where each of the adapters is just now, by digest."""

    call_id: str
    tiers: dict[str, Tier]


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


class Stats(msgspec.Struct, tag="stats", frozen=True):
    """The engine as of its last step. sequences: `running` or `waiting` -> tenant -> how many. pages: by state.
    adapters: how many are in each tier, and slots `in_use`. requests: `ended` -> finish reason or `error:<code>`, and
    `refused` -> code. totals: of this boot: steps, step_seconds (of the device), batch_tokens (computed, of prompts and
    answers), generated_tokens, batch_sequences (summed over the steps), preemptions."""

    call_id: str
    sequences: dict[str, dict[str, int]]
    pages: dict[str, int]
    adapters: dict[str, int]
    requests: dict[str, dict[str, int]]
    totals: dict[str, float]


Event = Description | Prepared | Detokenized | TokenEvent | EngineError | JournalPage | Residency | Places | Stats

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
