"""Bodies of requests as JSON schemas, with the parser's own tables and limits."""

from typing import Any, Final

from controlplane.inference.embeddings import MAX_INPUTS
from controlplane.inference.grammars import MAX_GRAMMAR_CHARS, STRUCTURED
from controlplane.inference.parameters import (
    BEAM,
    BEST_OF,
    LOGPROBS,
    MAX_PROMPTS,
    MAX_TOKENS,
    SAMPLING,
    TOP_LOGPROBS,
)
from controlplane.inference.sampling import MAX_BIASES, MAX_STOP_CHARS, MAX_STOP_IDS, MAX_STOPS, Kind
from controlplane.inference.schemas import LABELS
from controlplane.inference.unsupported import unsupported

Json = dict[str, Any]
TOKEN_ID: Final[Json] = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}


def chat_body() -> Json:
    """Of POST /v1/chat/completions."""
    fields = {
        "messages": _messages(),
        "logprobs": _flag("The log-probability of each token, before any of the changes above."),
        "top_logprobs": TOP_LOGPROBS.schema(),
        "continue_final_message": _flag("Go on with the last message. Then `add_generation_prompt` must be false."),
        "add_generation_prompt": _nullable("boolean", description="The opposite of `continue_final_message`."),
        "chat_template_kwargs": _nullable("object", description="More variables for the model's chat template."),
        "reasoning_effort": _nullable("string", maxLength=64, description="A variable for the chat template."),
        **_tools(),
    }
    return _body("chat", fields, ["model", "messages"], least_tokens=1)


def completion_body() -> Json:
    """Of POST /v1/completions."""
    fields = {
        "prompt": {**_texts(MAX_PROMPTS), "description": "A text, a list of token ids, or a list of either."},
        "best_of": BEST_OF.schema(),
        "logprobs": LOGPROBS.schema(),
        "echo": _flag("The prompt is told before the text; then `max_tokens` may be 0."),
    }
    return _body("text", fields, ["model", "prompt"], least_tokens=0)


def response_body() -> Json:
    """Of POST /v1/responses: what is read of it beside the items of `input`."""
    sampled = {name: SAMPLING[name].schema() for name in ("temperature", "top_p", "top_k", "min_p", "seed")}
    said = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}, "minItems": 1}]}
    item = _object(["role", "content"], role={"enum": ["system", "developer", "user", "assistant"]}, content=said)
    given = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": item, "minItems": 1}]}
    properties = {
        "model": _model(),
        "input": {**given, "description": "A text, or the conversation as items: messages, calls and their outputs."},
        "instructions": _nullable("string", description="A system message before the input."),
        "max_output_tokens": _nullable("integer", minimum=1, maximum=MAX_TOKENS, description="512 by default."),
        **sampled,
        "text": _nullable("object", description="`format`: text, json_object or json_schema."),
        "top_logprobs": TOP_LOGPROBS.schema(),
        "stream": _flag("Answer with the documented events."),
        "previous_response_id": {"enum": [None], "description": "Nothing is stored: send the whole conversation."},
        **_labels(),
    }
    return {"type": "object", "required": ["model", "input"], "properties": properties}


def embedding_body() -> Json:
    """Of POST /v1/embeddings."""
    properties = {
        "model": _model(),
        "input": {**_texts(MAX_INPUTS), "description": "A text, a list of token ids, or a list of either."},
        "encoding_format": {"enum": [None, "float", "base64"], "description": "Numbers, or their bytes."},
        "dimensions": _nullable("integer", minimum=1, description="Only the model's own number."),
        "pooling": {"enum": [None, "mean", "last"], "description": "Of all tokens, or the last one's."},
        **_labels(),
    }
    return {"type": "object", "required": ["model", "input"], "properties": properties}


def tokenize_body() -> Json:
    """Of POST /v1/tokenize."""
    properties = {
        "model": _model(),
        "prompt": _nullable("string", description="A text, or `messages` instead."),
        "messages": {"anyOf": [{"type": "null"}, _messages()]},
        "add_special_tokens": _nullable("boolean", description="Of `prompt`."),
        "return_token_strs": _flag("The text of each token, too."),
    }
    return {"type": "object", "required": ["model"], "properties": properties}


def detokenize_body() -> Json:
    """Of POST /v1/detokenize."""
    return {
        "type": "object",
        "required": ["model", "tokens"],
        "properties": {"model": _model(), "tokens": {"type": "array", "items": TOKEN_ID}},
    }


def _body(kind: Kind, fields: Json, required: list[str], *, least_tokens: int) -> Json:
    refused = {name: _refused(fine) for name, fine in unsupported(kind).items()}
    properties = {"model": _model(), **fields, **_common(least_tokens), **refused}
    return {"type": "object", "required": required, "properties": properties}


def _common(least_tokens: int) -> Json:
    most = _nullable(
        "integer", minimum=least_tokens, maximum=MAX_TOKENS,
        description="The most tokens of each choice. By default 512, or what room is left.",
    )  # fmt: skip
    return {
        "max_tokens": most,
        "max_completion_tokens": {**most, "description": "The newer name of `max_tokens`, which it wins over."},
        **{name: number.schema() for name, number in {**SAMPLING, **BEAM}.items()},
        "use_beam_search": _flag("Search with `beam_width` beams instead of choosing at random."),
        "stop": _stop(),
        "stop_token_ids": _nullable(
            "array", items=TOKEN_ID, maxItems=MAX_STOP_IDS, description="Tokens that end the text."
        ),
        "include_stop_str_in_output": _flag("What ended the text is a part of it."),
        "ignore_eos": _flag("The end-of-text token is one like others."),
        "logit_bias": _logit_bias(),
        **_forms(),
        "stream": _flag("Answer with server-sent events."),
        "stream_options": _nullable(
            "object",
            properties={"include_usage": _flag("A last chunk with `usage` and no choices.")},
            description="With `stream: true` only.",
        ),
        **_labels(),
    }


def _labels() -> Json:
    return {
        "metadata": _nullable("object", additionalProperties={"type": "string"}, description="Labels. Not kept."),
        "store": _flag("Accepted, and nothing is stored."),
        **{name: _nullable("string", maxLength=512, description="Accepted, and not kept.") for name in LABELS},
        "user": _nullable("string", maxLength=512, description="Not kept. Of a canary, one user gets one version."),
    }


def _model() -> Json:
    text = "A name of GET /v1/models: an adapter (`support-bot`, `support-bot@2`) or the base model."
    return {"type": "string", "minLength": 1, "maxLength": 300, "description": text}


def _nullable(kind: str, **more: Any) -> Json:
    return {"type": [kind, "null"], **more}


def _flag(text: str) -> Json:
    return _nullable("boolean", default=False, description=text)


def _refused(fine: tuple[Any, ...]) -> Json:
    return {"enum": [None, *fine], "description": "Not supported: these values alone are accepted."}


def _messages() -> Json:
    said = _content()
    call = _object(["function"], id={"type": "string"}, type={"enum": ["function"]}, function={"type": "object"})
    calls = {"type": "array", "items": call, "minItems": 1}
    of_assistant = {"role": {"enum": ["assistant"]}, "reasoning_content": {"type": ["string", "null"]}}
    call_id = {"type": "string", "minLength": 1, "maxLength": 256}
    message = {
        "anyOf": [
            _object(["role", "content"], role={"enum": ["system", "developer", "user"]}, content=said),
            _object(["role", "content"], **of_assistant, content=said),
            _object(["role", "tool_calls"], **of_assistant, tool_calls=calls),
            _object(["role", "content", "tool_call_id"], role={"enum": ["tool"]}, content=said, tool_call_id=call_id),
        ]
    }
    return {"type": "array", "items": message, "minItems": 1, "description": "The conversation, oldest first."}


def _content() -> Json:
    part = _object(["type", "text"], type={"enum": ["text"]}, text={"type": "string"})
    return {"anyOf": [{"type": "string"}, {"type": "array", "items": part, "minItems": 1}]}


def _object(required: list[str], **properties: Json) -> Json:
    return {"type": "object", "required": required, "properties": properties}


def _texts(most: int) -> Json:
    text = {"type": "string", "minLength": 1}
    ids = {"type": "array", "items": TOKEN_ID, "minItems": 1}
    several = {"type": "array", "items": {"anyOf": [text, ids]}, "minItems": 1, "maxItems": most}
    return {"anyOf": [text, ids, several]}


def _stop() -> Json:
    one = {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARS}
    return {
        "anyOf": [{"type": "null"}, one, {"type": "array", "items": one, "maxItems": MAX_STOPS}],
        "description": "Texts that end the answer, of which they are no part.",
    }


def _logit_bias() -> Json:
    return _nullable(
        "object",
        propertyNames={"pattern": "^[0-9]{1,10}$"},
        additionalProperties={"type": "number", "minimum": -100, "maximum": 100},
        maxProperties=MAX_BIASES,
        description="Token id -> what is added to its logit, before anything else.",
    )


def _forms() -> Json:
    """One request has one form, whatever it is called."""
    text: Json = _nullable("string", minLength=1, maxLength=MAX_GRAMMAR_CHARS)
    schema = {"anyOf": [{"type": "null"}, {"type": "object"}, {"type": "string"}]}
    choice = _nullable("array", items={"type": "string", "minLength": 1}, minItems=1)
    named = {
        "json": schema, "regex": text, "choice": choice, "grammar": text,
        "json_object": {"enum": [None, False, True]},
    }  # fmt: skip
    assert set(named) == set(STRUCTURED)
    return {
        "response_format": _response_format(),
        "structured_outputs": _nullable(
            "object",
            properties=named,
            additionalProperties={"enum": [None, False]},
            description="vLLM's names for a form: one.",
        ),
        "guided_json": {**schema, "description": "A JSON schema, or the text of one."},
        "guided_regex": {**text, "description": "A regular expression that the whole text matches."},
        "guided_choice": {**choice, "description": "The text is one of these."},
        "guided_grammar": {**text, "description": "A grammar in llguidance's dialect of Lark."},
    }


def _response_format() -> Json:
    named = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
            "schema": {"type": ["object", "null"]},
            "strict": {"type": ["boolean", "null"]},
        },
    }
    plain = {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["text", "json_object"]}}}
    schema = {
        "type": "object",
        "required": ["type", "json_schema"],
        "properties": {"type": {"enum": ["json_schema"]}, "json_schema": named},
    }
    return {"anyOf": [{"type": "null"}, plain, schema], "description": "The form of the text. It is always kept."}


def _tools() -> Json:
    function = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
            "description": {"type": ["string", "null"]},
            "parameters": {"type": ["object", "null"]},
        },
    }
    tool = {
        "type": "object", "required": ["type", "function"],
        "properties": {"type": {"enum": ["function"]}, "function": function},
    }  # fmt: skip
    choice = {"anyOf": [{"enum": [None, "none", "auto", "required"]}, {"type": "object"}]}
    return {
        "tools": _nullable("array", items=tool, maxItems=128, description="Functions that the model may call."),
        "tool_choice": {**choice, "description": "none, auto, required, or the function that must be called."},
        "parallel_tool_calls": _nullable("boolean", default=True, description="More than one call in an answer."),
        "functions": _nullable("array", items=function, maxItems=128, description="The older name of `tools`."),
        "function_call": {
            "anyOf": [{"enum": [None, "none", "auto"]}, {"type": "object"}],
            "description": "The older name of `tool_choice`.",
        },
    }
