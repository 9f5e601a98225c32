"""One accepted request between its driver, which feeds it, and the connection that reads it at its own pace."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal

from controlplane.errors import ApiError
from engine.protocol import Usage


@dataclass(frozen=True)
class Ending:
    """How the text ended. amount: what the tenant pays for it."""

    finish_reason: str
    usage: Usage
    amount: Decimal


@dataclass
class Run:
    """The driver never waits for the reader: a slow client gets its text in larger pieces, and holds up nobody.

    Exactly one of `ending` and `error` is set at the end. headers: x-ratelimit-* of the admission, None before it.
    """

    request_id: str
    model: str
    created: int
    headers: dict[str, str] | None = None
    ending: Ending | None = None
    error: ApiError | None = None
    is_cancelled: bool = False
    _began: bool = False
    _text: list[str] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _on_cancel: Callable[[], None] | None = None

    # --- the driver's side ------------------------------------------------------------------------------------

    def admit(self, headers: dict[str, str]) -> None:
        self.headers = headers
        self._wake.set()

    def feed(self, text: str) -> None:
        self._began = True
        if text:
            self._text.append(text)
        self._wake.set()

    def finish(self, ending: Ending) -> None:
        assert not self.is_over
        self.ending = ending
        self._wake.set()

    def fail(self, error: ApiError) -> None:
        assert not self.is_over
        self.error = error
        self._wake.set()

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """`stop` is called when nobody reads any more; at once, when that is so already."""
        self._on_cancel = stop
        if self.is_cancelled:
            stop()

    @property
    def is_over(self) -> bool:
        return self.ending is not None or self.error is not None

    # --- the reader's side ------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """The client is gone. The driver stops the engine and settles what was generated."""
        if self.is_over or self.is_cancelled:
            return
        self.is_cancelled = True
        if self._on_cancel:
            self._on_cancel()

    async def begin(self, patience: float | None = None) -> None:
        """Returns once there is something to answer with, or `patience` seconds after the admission. Raises what went
        wrong before that."""
        while self.headers is None and not self.is_over:
            await self._sleep()
        if not self._began and not self.is_over:
            await self._sleep(patience)
        if self.error and not self._began:
            raise self.error

    async def pieces(self, patience: float | None = None) -> AsyncIterator[str | None]:
        """The text as it comes, and None whenever `patience` seconds pass without any. Afterwards `ending` or `error`
        is set."""
        while True:
            if self._text:
                text = "".join(self._text)
                self._text.clear()
                yield text
            elif self.is_over:
                return
            else:
                await self._sleep(patience)
                if not self._text and not self.is_over:
                    yield None

    async def _sleep(self, patience: float | None = None) -> None:
        """Until the driver did something, or `patience` seconds have passed. (`wait_for` would start a task a time.)"""
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(patience, self._wake.set) if patience is not None else None
        try:
            await self._wake.wait()
        finally:
            if timer:
                timer.cancel()
