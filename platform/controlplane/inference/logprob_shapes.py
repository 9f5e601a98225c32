"""Log-probabilities in OpenAI's two shapes, and in vLLM's for a prompt's. Pure."""

import codecs
from collections.abc import Iterable
from typing import Any

from controlplane.inference.pieces import PromptLogprobs
from engine.protocol import TokenLogprob, TopToken

Json = dict[str, Any]
LEAST = -9999.0  # what OpenAI says of a token that could not come: JSON has no infinity


def chat_logprobs(tokens: Iterable[TokenLogprob]) -> Json:
    """`logprobs` of a chat's choice. `bytes` is exact; `token` escapes what is not a whole character."""
    content = [{**_chat_token(token), "top_logprobs": [_chat_token(top) for top in token.top]} for token in tokens]
    return {"content": content, "refusal": None}


def _chat_token(token: TokenLogprob | TopToken) -> Json:
    return {"token": token_text(token.text), "logprob": finite(token.logprob), "bytes": list(token.text)}


def token_text(raw: bytes, mark: str = "") -> str:
    """A token by its text; by its escaped bytes, after `mark`, where they are not whole characters."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return mark + "".join(f"\\x{byte:02x}" for byte in raw)


def finite(logprob: float) -> float:
    return logprob if logprob > LEAST else LEAST


class TextLogprobs:
    """`logprobs` of a completion's choice, part by part: offsets are characters from the choice's beginning.

    A token that begins inside a character has the offset of that character."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._at = 0

    def prompt(self, pieces: tuple[bytes, ...], logprobs: PromptLogprobs) -> Json:
        """The echoed prompt's. Nothing comes before its first token, so that it has no log-probability."""
        return self._body(list(zip(pieces, logprobs, strict=True)))

    def text(self, tokens: tuple[TokenLogprob, ...]) -> Json:
        return self._body([(token.text, token) for token in tokens])

    def _body(self, tokens: list[tuple[bytes, TokenLogprob | None]]) -> Json:
        return {
            "tokens": [_legacy(raw) for raw, _ in tokens],
            "token_logprobs": [None if token is None else finite(token.logprob) for _, token in tokens],
            "top_logprobs": [None if token is None else self._likeliest(token) for _, token in tokens],
            "text_offset": [self._offset(raw) for raw, _ in tokens],
        }

    def _likeliest(self, token: TokenLogprob) -> dict[str, float]:
        """The token itself is always among them. Of two tokens with one text the likelier counts."""
        found: dict[str, float] = {}
        likeliest: list[TopToken | TokenLogprob] = [*token.top[: self._top], token]
        for each in likeliest:
            found.setdefault(_legacy(each.text), finite(each.logprob))
        return found

    def _offset(self, raw: bytes) -> int:
        at = self._at
        self._at += len(self._decoder.decode(raw))
        return at


def _legacy(raw: bytes) -> str:
    return token_text(raw, "bytes:")


def joined(parts: list[Json]) -> Json:
    """Parts of one choice's `TextLogprobs`, in order."""
    return {name: [item for part in parts for item in part[name]] for name in parts[0]}


def prompt_logprobs(tokens: PromptLogprobs) -> list[dict[str, Json] | None]:
    """vLLM's shape: for each token of the prompt an object of token id -> what is known of it."""
    return [None if token is None else _ranked(token) for token in tokens]


def _ranked(token: TokenLogprob) -> dict[str, Json]:
    found = {str(top.token_id): _known(top, rank) for rank, top in enumerate(token.top, 1)}
    return {**found, str(token.token_id): _known(token, token.rank)}


def _known(token: TokenLogprob | TopToken, rank: int) -> Json:
    return {"logprob": finite(token.logprob), "rank": rank, "decoded_token": token_text(token.text)}
