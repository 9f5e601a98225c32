"""The prompts of a request as the engine is asked to prepare them."""

from typing import Any

from controlplane.inference.fields import Body, is_token_id, read_bool, read_object, read_text, wrong
from controlplane.inference.messages import read_messages
from controlplane.inference.parameters import MAX_PROMPTS
from engine.protocol import Grammar, Prepare


def chat_prompt(body: Body, grammar: Grammar | None) -> Prepare:
    """`call_id` is set when it is sent."""
    return Prepare(
        "",
        messages=read_messages(body),
        template_options=_template_options(body),
        continue_last=_continue_last(body),
        grammar=grammar,
    )


def _template_options(body: Body) -> dict[str, Any]:
    options = read_object(body, "chat_template_kwargs")
    effort = read_text(body, "reasoning_effort", longest=64)
    return options if effort is None else {"reasoning_effort": effort, **options}


def _continue_last(body: Body) -> bool:
    """As vLLM has it: going on with the last message excludes opening a new one."""
    is_continued = read_bool(body, "continue_final_message")
    opens_new = body.get("add_generation_prompt")
    if not isinstance(opens_new, bool | None):
        raise wrong("add_generation_prompt", opens_new, "it must be true or false", "invalid_type")
    if opens_new is not None and opens_new == is_continued:
        raise wrong("add_generation_prompt", opens_new, "it must be the opposite of `continue_final_message`")
    return is_continued


def text_prompts(body: Body, grammar: Grammar | None, *, with_pieces: bool) -> tuple[Prepare, ...]:
    """`prompt`: a text, a list of token ids, or a list of either. The grammar is checked with the first."""
    value = body.get("prompt")
    several = isinstance(value, list) and bool(value) and isinstance(value[0], str | list)
    prompts: list[Any] = value if isinstance(value, list) and several else [value]
    if len(prompts) > MAX_PROMPTS:
        raise wrong("prompt", value, f"at most {MAX_PROMPTS} prompts are allowed, it has {len(prompts)}")
    return tuple(
        _text_prompt(prompt, f"prompt[{i}]" if several else "prompt", None if i else grammar, with_pieces)
        for i, prompt in enumerate(prompts)
    )


def _text_prompt(value: Any, where: str, grammar: Grammar | None, with_pieces: bool) -> Prepare:
    if isinstance(value, str) and value:
        return Prepare("", text=value, grammar=grammar, with_pieces=with_pieces)
    if not isinstance(value, list) or not value:
        raise wrong(where, value, "send a text that is not empty, or a list of token ids")
    if not all(is_token_id(item) for item in value):
        raise wrong(where, value, "token ids must be whole numbers that are not negative", "invalid_type")
    return Prepare("", token_ids=tuple(value), grammar=grammar, with_pieces=with_pieces)
