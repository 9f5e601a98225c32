"""One accepted call between its driver, which feeds it, and the connection that reads it at its own pace."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from controlplane.errors import ApiError
from controlplane.inference.pieces import Pending, Piece
from engine.protocol import Prepared, Usage


@dataclass(frozen=True)
class Ending:
    """What it came to, over all prompts. amount: what the tenant pays for it."""

    usage: Usage
    amount: Decimal


@dataclass
class Run:
    """The driver never waits for the reader: a slow client gets its text in larger pieces, and holds up nobody.

    Exactly one of `ending` and `error` is set at the end. prompts: as the model reads them; each has as many choices
    as the others. headers: x-ratelimit-* of the admission, None before it.
    """

    request_id: str
    model: str
    created: int
    prompts: tuple[Prepared, ...] = ()
    headers: dict[str, str] | None = None
    ending: Ending | None = None
    error: ApiError | None = None
    is_cancelled: bool = False
    _began: bool = False
    _pending: Pending = field(default_factory=Pending)
    _sleeper: asyncio.Future[None] | None = None
    _broken: ApiError | None = None
    _stops: list[Callable[[], None]] = field(default_factory=list)

    # --- the driver's side ------------------------------------------------------------------------------------

    def admit(self, headers: dict[str, str]) -> None:
        self.headers = headers
        self._wake()

    def feed(self, piece: Piece) -> None:
        self._began = True
        self._pending.add(piece)
        self._wake()

    def finish(self, ending: Ending) -> None:
        """All parts have ended: well, or with what `break_off` was told first."""
        assert not self.is_over
        self.ending, self.error = (None, self._broken) if self._broken else (ending, None)
        self._wake()

    def fail(self, error: ApiError) -> None:
        """Nothing of it runs any more, or ever did."""
        assert not self.is_over
        self.error = error
        self._wake()

    def break_off(self, error: ApiError) -> None:
        """A part has failed: the others are stopped, and the first error is what the call ends with."""
        if self._broken is None:
            self._broken = error
            self._stop()

    @contextlib.contextmanager
    def while_wanted(self, stop: Callable[[], None]) -> Iterator[None]:
        """Inside the block, `stop` is called when nobody wants the rest any more; at once, when that is so already."""
        self._stops.append(stop)
        try:
            if self.is_stopped:
                stop()
            yield
        finally:
            self._stops.remove(stop)

    @property
    def is_stopped(self) -> bool:
        return self.is_cancelled or self._broken is not None

    @property
    def is_over(self) -> bool:
        return self.ending is not None or self.error is not None

    def _stop(self) -> None:
        for stop in self._stops:
            stop()

    # --- the reader's side ------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """The client is gone. The driver stops the engine and settles what was generated."""
        if self.is_over or self.is_cancelled:
            return
        self.is_cancelled = True
        self._stop()

    async def begin(self, patience: float | None = None) -> None:
        """Returns once there is something to answer with, or `patience` seconds after the admission. Raises what went
        wrong before that."""
        while self.headers is None and not self.is_over:
            await self._sleep()
        if not self._began and not self.is_over:
            await self._sleep(patience)
        if self.error and not self._began:
            raise self.error

    async def pieces(self, patience: float | None = None) -> AsyncIterator[Piece | None]:
        """What the choices get, as it comes, and None whenever `patience` seconds pass without any. Afterwards
        `ending` or `error` is set."""
        while True:
            if self._pending:
                yield self._pending.take()
            elif self.is_over:
                return
            else:
                await self._sleep(patience)
                if not self._pending and not self.is_over:
                    yield None

    @property
    def has_news(self) -> bool:
        """`pieces` goes on without waiting."""
        return bool(self._pending) or self.is_over

    async def _sleep(self, patience: float | None = None) -> None:
        """Until the driver did something, or `patience` seconds have passed. (`wait_for` would start a task a time.)"""
        loop = asyncio.get_running_loop()
        self._sleeper = loop.create_future()
        timer = loop.call_later(patience, self._wake) if patience is not None else None
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            if timer:
                timer.cancel()

    def _wake(self) -> None:
        if self._sleeper and not self._sleeper.done():
            self._sleeper.set_result(None)
