"""Parameters of the OpenAI API and of vLLM's that change an answer and that this door does not offer: refused, never
ignored.

Each is fine where it asks for what happens anyway (`tools: []`, `suffix: ""`).
"""

from typing import Any, Final

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, shown
from controlplane.inference.sampling import Kind

_HARMLESS: Final[dict[str, tuple[Any, ...]]] = {
    "suffix": ("",),
    "modalities": (["text"], []),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
    "verbosity": ("medium",),
    "allowed_token_ids": ([],),
    "bad_words": ([],),
    "chat_template": (),
    "documents": ([],),
    "guided_whitespace_pattern": (),
    "add_special_tokens": (True,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "truncate_prompt_tokens": (),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "logits_processors": ([],),
    "prompt_embeds": (),
    "mm_processor_kwargs": ({},),
    "kv_transfer_params": ({},),
    "vllm_xargs": ({},),
}
_OF_KIND: Final[dict[Kind, dict[str, tuple[Any, ...]]]] = {
    "chat": {"best_of": (1,), "echo": (False,)},
    "text": {"tools": ([],), "tool_choice": ("none", "auto"), "top_logprobs": (0,)},
}


def unsupported(kind: Kind) -> dict[str, tuple[Any, ...]]:
    """Each refused parameter, and the values of it that are fine."""
    return {**_HARMLESS, **_OF_KIND[kind]}


def refuse_unsupported(body: Body, kind: Kind) -> None:
    for param, harmless in unsupported(kind).items():
        value = body.get(param)
        if value is None or any(_same(value, fine) for fine in harmless):
            continue
        allowed = " or ".join(["leave it out", *(f"send {shown(fine)}" for fine in harmless)])
        raise InvalidRequest(
            f"`{param}` is {shown(value)}, which this API does not support: {allowed}.",
            param=param,
            code="unsupported_parameter",
        )


def _same(value: Any, fine: Any) -> bool:
    """JSON equality: true is not 1."""
    return bool(value == fine) and isinstance(value, bool) == isinstance(fine, bool)
