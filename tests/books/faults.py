"""Processes that die: at a chosen statement, or right after their commit, before anybody heard of it."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from django.db import connection
from hypothesis import strategies as st

T = TypeVar("T")
# No work of the simulator has so many statements before its commit but a large page of the journal.
MOST_STATEMENTS: Final = 24
dies = st.none() | st.integers(0, MOST_STATEMENTS)
few = st.integers(0, 40)
any_of = st.integers(0, 1000)  # an index, modulo how many there are


class Killed(BaseException):
    """Not an Exception: what catches those must not survive it, as nothing survives SIGKILL."""


class _KilledAt:
    """The statement of this number is done, and then there is no process any more. 0: not even the first is sent."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._left == 0:
            raise Killed
        self._left -= 1
        return execute(sql, params, many, context)


def attempt(work: Callable[[], T], dies_at: int | None) -> T | None:
    """What `work` returned to a process that lived to see it; None to one that died, before or after its commit."""
    if dies_at is None:
        return work()
    try:
        with connection.execute_wrapper(_KilledAt(dies_at)):
            work()
    except Killed:
        pass
    return None
