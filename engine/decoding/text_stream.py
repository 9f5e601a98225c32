"""Tokens -> text as it becomes certain: whole characters only, and never a part of a stop string."""

from collections.abc import Callable, Iterable

# A character has at most four bytes, so this many tokens that end in U+FFFD are not one character in the making.
MAX_HELD_TOKENS = 16
REPLACEMENT = "\ufffd"


class TextStream:
    """The completion's text. What is returned, put together, is `decode` of all tokens, up to the first stop string.

    decode: token ids -> text, special tokens left out.
    """

    def __init__(self, decode: Callable[[list[int]], str], stop: Iterable[str] = ()) -> None:
        self._decode = decode
        self._stop = tuple(stop)
        self._window: list[int] = []  # tokens that later ones may still change the text of, after some context
        self._settled = 0  # how many of them have been returned as text
        self._held = ""  # text that may be the start of a stop string
        self.is_stopped = False

    def push(self, token: int) -> str:
        """Text that has become certain. Sets `is_stopped` when a stop string is complete."""
        self._window.append(token)
        return self._release(self._new_text())

    def finish(self) -> str:
        """What was held back, now that nothing follows. Half a character is left out."""
        if self.is_stopped:
            return ""
        text = self._release(self._beyond_settled().rstrip(REPLACEMENT))
        rest, self._held = self._held, ""
        return text if self.is_stopped else text + rest

    def _new_text(self) -> str:
        text = self._beyond_settled()
        if text.endswith(REPLACEMENT) and len(self._window) - self._settled < MAX_HELD_TOKENS:
            return ""
        # The tokens just settled stay as context: how a token reads may depend on the one before it.
        self._window = self._window[self._settled :]
        self._settled = len(self._window)
        return text

    def _beyond_settled(self) -> str:
        settled = self._decode(self._window[: self._settled]) if self._settled else ""
        return self._decode(self._window)[len(settled) :]

    def _release(self, text: str) -> str:
        if not self._stop:
            return text
        text = self._held + text
        found = [index for index in (text.find(stop) for stop in self._stop) if index >= 0]
        if found:
            self.is_stopped, self._held = True, ""
            return text[: min(found)]
        keep = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
