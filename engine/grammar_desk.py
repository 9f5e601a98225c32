"""Where grammars are compiled: on a thread of its own, so that neither a step nor another gateway waits for one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Protocol

from engine.decoding.constraint import ConstraintRefused
from engine.protocol import Grammar

# Grammars waiting to be compiled, most of them for a millisecond.
MAX_WAITING = 64

# What is to be done once a grammar is ready, or has been refused.
Then = Callable[[ConstraintRefused | None], None]


class DeskFull(Exception):
    """Too many grammars are waiting to be compiled."""


class Compiler(Protocol):
    """What the desk asks of `engine.decoding.grammar.Grammars`."""

    def is_ready(self, grammar: Grammar) -> bool: ...

    def compile(self, grammar: Grammar) -> None: ...


class GrammarDesk:
    """Belongs to one thread, and calls back on it alone. wake: called on another one, when `finish` has work."""

    def __init__(self, compiler: Compiler, wake: Callable[[], None]) -> None:
        self._compiler, self._wake = compiler, wake
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="grammar")
        self._done: SimpleQueue[tuple[Then, ConstraintRefused | None]] = SimpleQueue()
        self._waiting = 0

    def is_ready(self, grammar: Grammar) -> bool:
        return self._compiler.is_ready(grammar)

    def compile(self, grammar: Grammar, then: Then) -> None:
        """Raises DeskFull."""
        if self.is_ready(grammar):
            then(self._refusal(grammar))
        elif self._waiting >= MAX_WAITING:
            raise DeskFull
        else:
            self._waiting += 1
            self._thread.submit(self._work, grammar, then)

    def finish(self) -> None:
        """Call back for all that is done."""
        while True:
            try:
                then, refusal = self._done.get_nowait()
            except Empty:
                return
            self._waiting -= 1
            then(refusal)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _work(self, grammar: Grammar, then: Then) -> None:
        self._done.put((then, self._refusal(grammar)))
        self._wake()

    def _refusal(self, grammar: Grammar) -> ConstraintRefused | None:
        try:
            self._compiler.compile(grammar)
        except ConstraintRefused as refusal:
            return refusal
        return None
