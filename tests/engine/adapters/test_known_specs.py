"""A check is spared for bytes that passed it, for no others, and not for more than there is room for."""

from collections import Counter
from threading import Thread

import pytest

from engine.adapters.known_specs import KnownSpecs
from engine.adapters.spec import AdapterSpec


class Checks:
    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

    def of(self, digest: str) -> AdapterSpec:
        self.done[digest] += 1
        if digest == "bad":
            raise ValueError(digest)
        return AdapterSpec((), 1, (), "BF16", 1, digest)

    def ask(self, known: KnownSpecs, digest: str) -> str:
        return known.get(digest, lambda: self.of(digest)).digest


def test_the_same_bytes_are_checked_once_and_the_one_used_longest_ago_goes_first() -> None:
    known, checks = KnownSpecs(room=2), Checks()
    assert [checks.ask(known, digest) for digest in "abacabcb"] == [*"abacabcb"]
    assert checks.done == {"a": 1, "b": 2, "c": 2}


def test_a_refusal_is_not_remembered() -> None:
    known, checks = KnownSpecs(), Checks()
    for _ in range(2):
        with pytest.raises(ValueError, match="bad"):
            checks.ask(known, "bad")
    assert checks.done == {"bad": 2}


def test_threads_that_load_at_once_get_their_own() -> None:
    known, checks, wrong = KnownSpecs(room=3), Checks(), list[str]()

    def work() -> None:
        wrong.extend(d for d in "abcdefgh" * 200 if checks.ask(known, d) != d)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
