"""How the caller wants the text to be chosen, as the engine's `Sampling`."""

from typing import Any, Literal

from controlplane.inference.fields import Body, is_token_id, read_bool, read_ids, shown, wrong
from controlplane.inference.parameters import BEAM, BEST_OF, LOGPROBS, SAMPLING, TOP_LOGPROBS
from engine.protocol import Grammar, Sampling

Kind = Literal["chat", "text"]
MAX_STOPS = 16
MAX_STOP_CHARS = 256
MAX_STOP_IDS = 64
MAX_BIASES = 1024


def read_sampling(body: Body, kind: Kind, grammar: Grammar | None) -> Sampling:
    """All but `max_tokens`, which is 0 until the prompt's length is known."""
    numbers: dict[str, Any] = {name: number.read(body, name) for name, number in SAMPLING.items()}
    numbers["top_k"] = max(0, numbers["top_k"])
    beam_width = _read_beam_width(body, numbers["n"])
    if beam_width:
        numbers["temperature"] = 0.0
    return Sampling(
        max_tokens=0,
        **numbers,
        best_of=_read_best_of(body, kind, numbers["n"], beam_width),
        beam_width=beam_width,
        length_penalty=BEAM["length_penalty"].read(body, "length_penalty") or 0.0,
        stop=_read_stop(body),
        stop_token_ids=read_ids(body, "stop_token_ids", most=MAX_STOP_IDS),
        include_stop=read_bool(body, "include_stop_str_in_output"),
        ignore_eos=read_bool(body, "ignore_eos"),
        logit_bias=_read_logit_bias(body),
        logprobs=_read_chat_logprobs(body) if kind == "chat" else _whole(LOGPROBS.read(body, "logprobs")),
        grammar=grammar,
    )


def sequences_of(sampling: Sampling) -> int:
    """How many texts are generated, at most, for one prompt."""
    return max(sampling.n, sampling.best_of, sampling.beam_width)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _read_stop(body: Body) -> tuple[str, ...]:
    value = body.get("stop")
    stops = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise wrong("stop", value, f"it must be a string or a list of at most {MAX_STOPS} strings", "invalid_type")
    if len(stops) > MAX_STOPS:
        raise wrong("stop", value, f"at most {MAX_STOPS} stop strings are allowed, it has {len(stops)}")
    if any(not stop or len(stop) > MAX_STOP_CHARS for stop in stops):
        raise wrong("stop", value, f"each stop string must have 1 to {MAX_STOP_CHARS} characters")
    return tuple(stops)


def _read_logit_bias(body: Body) -> dict[int, float]:
    """JSON's keys are strings, so token ids come as such."""
    value = body.get("logit_bias")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong("logit_bias", value, "it must be an object of token ids and numbers", "invalid_type")
    if len(value) > MAX_BIASES:
        raise wrong("logit_bias", value, f"at most {MAX_BIASES} tokens are allowed, it has {len(value)}")
    return dict(_read_bias(key, bias) for key, bias in value.items())


def _read_bias(key: str, bias: Any) -> tuple[int, float]:
    where = f"logit_bias.{key[:20]}"
    token = int(key) if key.isascii() and key.isdecimal() and len(key) <= 10 else -1
    if not is_token_id(token):
        raise wrong("logit_bias", key, 'each key must be a token id, such as "1234"')
    if isinstance(bias, bool) or not isinstance(bias, int | float):
        raise wrong(where, bias, "it must be a number", "invalid_type")
    if not -100 <= bias <= 100:
        raise wrong(where, bias, "it must be between -100 and 100")
    return token, float(bias)


def _read_chat_logprobs(body: Body) -> int | None:
    wanted = read_bool(body, "logprobs")
    top = _whole(TOP_LOGPROBS.read(body, "top_logprobs"))
    if top and not wanted:
        raise wrong("top_logprobs", top, "it needs `logprobs: true`")
    return (top or 0) if wanted else None


def _read_best_of(body: Body, kind: Kind, n: int, beam_width: int) -> int:
    """0 where it asks for no more than `n`."""
    best_of = _whole(BEST_OF.read(body, "best_of")) if kind == "text" else None
    if best_of is None or best_of == n:
        return 0
    if best_of < n:
        raise wrong("best_of", best_of, f"it must be at least `n`, which is {n}")
    if beam_width:
        raise wrong("best_of", best_of, "a beam search has `beam_width` instead")
    return best_of


def _read_beam_width(body: Body, n: int) -> int:
    """0: no beam search. What only random choice knows is refused with one."""
    width = _whole(BEAM["beam_width"].read(body, "beam_width"))
    if not (read_bool(body, "use_beam_search") or width):
        return 0
    width = width or n
    if width < n:
        raise wrong("beam_width", width, f"it must be at least `n`, which is {n}")
    if width > BEAM["beam_width"].high:
        raise wrong("n", n, f"a beam search returns at most {BEAM['beam_width'].high:g}")
    for param, off in (("temperature", (0, 1)), ("top_p", (1,)), ("top_k", (0, -1)), ("min_p", (0,))):
        value = body.get(param)
        if value is not None and value not in off:
            raise wrong(param, value, f"a beam search does not choose at random: send {shown(off[0])} or leave it out")
    return width
