"""What the check found about files that passed it before."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Generic, TypeVar

from engine.adapters.format import Checked, check_numbers
from engine.adapters.source import Contents, Headers
from engine.adapters.spec import AdapterSpec
from engine.adapters.values import Scan

T = TypeVar("T")


class KnownChecks:
    """Spares loads what is known of their outcome. Safe with threads.

    The same bytes pass the same check, so an adapter that comes back from disk is not checked again. Adapters that were
    trained alike differ in nothing but their numbers, so of another one of a known shape only those are looked at.
    shapes: how many are kept; one of a large model takes some 200 kB. adapters: how many digests.
    """

    def __init__(self, scan: Scan, shapes: int = 256, adapters: int = 16_384) -> None:
        self._scan = scan
        self._shapes, self._passed = _Latest[tuple[Checked, Headers]](shapes), _Latest[bool](adapters)

    def spec_of(self, digest: str, contents: Contents, check: Callable[[], Checked]) -> AdapterSpec:
        """digest: of the contents. check: all of it, of these contents. What it, or the check of the numbers, raises is
        passed on and not remembered."""
        shape = contents.shape()
        known = self._shapes.get(shape)
        if known is None:
            found = check()
            self._shapes.put(shape, (found, contents.headers))
        else:
            found, headers = known
            contents.take_headers(headers)
            if not self._passed.get(digest):
                check_numbers(contents, found, self._scan)
        self._passed.put(digest, True)
        return replace(found.spec, digest=digest)


class _Latest(Generic[T]):
    """`room` values by key; the one used longest ago goes first."""

    def __init__(self, room: int) -> None:
        self._room, self._lock = room, Lock()
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: str, value: T) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._room:
                self._values.popitem(last=False)
