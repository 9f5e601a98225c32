"""Parameters of the OpenAI API that change an answer and that this door does not offer: refused, never ignored.

Each is fine where it asks for what happens anyway (`n: 1`, `penalty: 0`, `tools: []`).
"""

from typing import Any

from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, shown

_HARMLESS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "prompt_logprobs": (0,),
    "logit_bias": ({},),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "response_format": ({"type": "text"},),
    "modalities": (["text"], []),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
}


def refuse_unsupported(body: Body) -> None:
    for param, harmless in _HARMLESS.items():
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
