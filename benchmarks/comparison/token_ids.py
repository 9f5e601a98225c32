"""Token ids from the logprobs of a server's answer, so that its answers can be judged token by token."""

from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from benchmarks.comparison.peer import PeerFailed

_ESCAPE = "\\x"


def by_id(text: str) -> int:
    """vLLM's `return_tokens_as_token_ids`."""
    return int(text.removeprefix("token_id:"))


def by_text(model: Path) -> Callable[[str], int]:
    """Of a byte-level vocabulary; what is no whole character is written `bytes:\\x..`, as OpenAI does."""
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    letters, known = _letters(), dict[bytes, int]()
    for word, number in tokenizer.get_vocab(with_added_tokens=True).items():
        is_plain = all(letter in letters for letter in word)
        known[bytes(letters[letter] for letter in word) if is_plain else word.encode()] = number

    def find(text: str) -> int:
        raw = text.removeprefix("bytes:")
        key = bytes.fromhex(raw.replace(_ESCAPE, "")) if text.startswith("bytes:" + _ESCAPE) else text.encode()
        if key not in known:
            raise PeerFailed(f"it answered {text!r}, which is no token of the model")
        return known[key]

    return find


def _letters() -> dict[str, int]:
    """The letter that stands for each byte in a byte-level vocabulary (GPT-2's table)."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
