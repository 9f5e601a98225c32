"""A body of /v1/responses as what is wanted of the engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, read_bool, read_int, read_object, read_text, shown, wrong
from controlplane.inference.grammars import read_grammar
from controlplane.inference.parameters import MAX_TOKENS, TOP_LOGPROBS
from controlplane.inference.response_input import read_input
from controlplane.inference.sampling import read_sampling
from controlplane.inference.schemas import Wanted, check_labels, read_model
from controlplane.inference.tool_fields import Tools, read_flat_tools
from engine.protocol import Grammar, Prepare

_STATELESS: Final = "nothing is stored here, so send the whole conversation in `input`"
# Value that asks for nothing special -> else refused, with what to do.
_REFUSED: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "previous_response_id": ((), _STATELESS),
    "conversation": ((), _STATELESS),
    "prompt": ((), "prompts are not stored here, so send `instructions` and `input`"),
    "background": ((False,), "an answer is streamed or waited for: leave it out"),
    "truncation": (("disabled",), "a prompt is never cut: leave it out, and shorten `input`"),
    "n": ((1,), "a response is one answer: leave it out"),
    "context_management": (([],), "a prompt is never cut: leave it out"),
}
_LOGPROBS: Final = "message.output_text.logprobs"
_NOTHING_TO_INCLUDE: Final = "reasoning.encrypted_content"  # thoughts come as text
_NOT_READ: Final = ("logprobs", "top_logprobs", "best_of", "beam_width", "use_beam_search", "prompt_logprobs")


@dataclass(frozen=True)
class Asked:
    """body: as it was sent, for the fields that an answer repeats."""

    body: Body
    wanted: Wanted
    tools: Tools


def parse_response(body: Body) -> Asked:
    """Raises InvalidRequest with the field named as the caller wrote it."""
    model = read_model(body)
    for param, (harmless, remedy) in _REFUSED.items():
        if body.get(param) is not None and body[param] not in harmless:
            text = f"`{param}` is {shown(body[param])}: {remedy}."
            raise InvalidRequest(text, param=param, code="unsupported_parameter")
    check_labels(body)
    grammar = _read_form(body)
    prompt = Prepare("", messages=read_input(body), template_options=_template_options(body), grammar=grammar)
    sampled = {name: value for name, value in body.items() if name not in _NOT_READ}
    top = _read_logprobs(body)
    if top is not None:
        sampled |= {"logprobs": True, "top_logprobs": top}
    wanted = Wanted(
        model,
        (prompt,),
        read_sampling(sampled, "chat", grammar),
        read_int(body, "max_output_tokens", 1, MAX_TOKENS),
        read_bool(body, "stream"),
        names={"prompt": "input", "grammar": "text.format", "max_tokens": "max_output_tokens"},
        user=body.get("user"),
    )
    return Asked(body, wanted, read_flat_tools(body))


def _read_form(body: Body) -> Grammar | None:
    """`text.format`: a chat's `response_format`, with a schema's parts one level higher."""
    text = read_object(body, "text")
    value = text.get("format")
    if text.get("verbosity") not in (None, "medium"):
        raise wrong("text.verbosity", text["verbosity"], "the model knows no such choice: leave it out")
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        with _renamed("response_format", "text.format"):
            return read_grammar({"response_format": value})[0]
    if value.get("schema") is None:
        raise wrong("text.format.schema", None, "it must be a JSON schema, which is an object", "invalid_type")
    with _renamed("response_format.json_schema", "text.format"):
        return read_grammar({"response_format": {"type": "json_schema", "json_schema": value}})[0]


@contextmanager
def _renamed(ours: str, theirs: str) -> Iterator[None]:
    try:
        yield
    except InvalidRequest as error:
        message = error.message.replace(f"`{ours}", f"`{theirs}", 1)
        param = theirs + (error.param or "").removeprefix(ours)
        raise InvalidRequest(message, param=param, code=error.code) from None


def _template_options(body: Body) -> dict[str, Any]:
    reasoning = read_object(body, "reasoning")
    with _renamed("effort", "reasoning.effort"):
        effort = read_text(reasoning, "effort", longest=64)
    options = read_object(body, "chat_template_kwargs")
    return options if effort is None else {"reasoning_effort": effort, **options}


def _read_logprobs(body: Body) -> int | None:
    """None: not asked for."""
    top = read_int(body, "top_logprobs", int(TOP_LOGPROBS.low), int(TOP_LOGPROBS.high))
    include = body.get("include")
    if include is None:
        return top or None
    if not isinstance(include, list):
        raise wrong("include", include, "it must be a list", "invalid_type")
    for item in include:
        if item not in (_LOGPROBS, _NOTHING_TO_INCLUDE):
            raise wrong("include", item, f"it may hold {_LOGPROBS}")
    return top or (0 if _LOGPROBS in include else None)
