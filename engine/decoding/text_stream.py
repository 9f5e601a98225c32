"""Tokens -> text as it becomes certain: whole characters only, and never a part of a stop string."""

from collections.abc import Callable, Iterable

# A character has at most four bytes, so this many tokens that end in U+FFFD are not one character in the making.
MAX_HELD_TOKENS = 16
REPLACEMENT = "\ufffd"


class TextStream:
    """The completion's text. What is returned, put together, is `decode` of all tokens, up to the first stop string.

    decode: token ids -> text, special tokens left out. include_stop: the stop string is a part of the text.
    """

    def __init__(
        self, decode: Callable[[list[int]], str], stop: Iterable[str] = (), *, include_stop: bool = False
    ) -> None:
        self._decode = decode
        self._stop, self._include_stop = tuple(stop), include_stop
        self._window: list[int] = []  # tokens that later ones may still change the text of, after some context
        self._settled = 0  # how many of them have been returned as text
        self._held = ""  # text that may be the start of a stop string
        self.stopped_by: str | None = None  # the stop string that is complete

    @property
    def is_stopped(self) -> bool:
        return self.stopped_by is not None

    def push(self, token: int, *, may_stop: bool = True) -> str:
        """Text that has become certain. Sets `stopped_by` when a stop string is complete; one that has begun before
        the text may stop is text like any other."""
        self._window.append(token)
        text = self._new_text()
        return self._release(text) if may_stop else text

    def copy(self) -> "TextStream":
        """A stream of its own, at the same place."""
        other = TextStream(self._decode, self._stop, include_stop=self._include_stop)
        other._window, other._settled = list(self._window), self._settled
        other._held, other.stopped_by = self._held, self.stopped_by
        return other

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
        found = [(index, len(stop), stop) for stop in self._stop if (index := text.find(stop)) >= 0]
        if found:
            index, size, self.stopped_by = min(found)
            self._held = ""
            return text[: index + size] if self._include_stop else text[:index]
        keep = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    return next((size for size in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:size])), 0)
