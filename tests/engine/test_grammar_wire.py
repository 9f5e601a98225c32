"""Grammars over the wire: refused before anything is held, compiled beside what others do, kept to by every choice."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import grammar_desk
from engine.protocol import (
    Abort,
    Detokenize,
    Detokenized,
    EngineError,
    Generate,
    Grammar,
    Prepare,
    Prepared,
    Sampling,
    TokenEvent,
)
from tests.engine.toy import Toy, greedy, toy_engine, toy_grammars, toy_server
from tests.engine.wire import Gateway, gateway, is_last

WORD = Grammar("regex", "(BC|D){2,4}")


class Gate:
    """A compiler that waits to be let through."""

    def __init__(self) -> None:
        self.grammars, self.opened = toy_grammars(), threading.Event()

    def is_ready(self, grammar: Grammar) -> bool:
        return self.grammars.is_ready(grammar)

    def compile(self, grammar: Grammar) -> None:
        if not self.is_ready(grammar):
            assert self.opened.wait(20)
        self.grammars.compile(grammar)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def toy(tmp_path: Path, gate: Gate) -> Iterator[Toy]:
    """Served; its server's grammars wait for the gate."""
    toy = toy_engine(tmp_path / "home", url=f"ipc://{tmp_path}/engine.sock")
    toy.grammars = gate
    server = toy_server(toy)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield toy
    gate.opened.set()
    server.stop()
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def wire(toy: Toy) -> Iterator[Gateway]:
    with gateway(toy.config.url) as connected:
        yield connected


def asking(request_id: str, grammar: Grammar, **sampling: object) -> Generate:
    drawn = Sampling(max_tokens=20, temperature=1.5, seed=3, grammar=grammar, **sampling)  # type: ignore[arg-type]
    return Generate(request_id, "t", "salt", (5, 6, 7), drawn)


def texts_of(wire: Gateway, *request_ids: str) -> list[str]:
    """All choices of these requests."""
    texts, open_requests = dict[tuple[str, int], str](), set(request_ids)
    while open_requests:
        for event in wire.receive():
            assert isinstance(event, TokenEvent), event
            key = event.request_id, event.index
            texts[key] = texts.get(key, "") + event.text
            if event.usage is not None:
                open_requests.remove(event.request_id)
    return list(texts.values())


def test_a_wrong_grammar_is_refused_by_prepare_and_by_generate(wire: Gateway, gate: Gate) -> None:
    gate.opened.set()
    for ask in (Prepare("c1", text="a", grammar=Grammar("regex", "(")), asking("c1", Grammar("regex", "("))):
        error = wire.ask(ask)
        assert isinstance(error, EngineError)
        assert (error.ref, error.code, error.param, error.permanent) == (
            "c1",
            "invalid_grammar",
            "grammar",
            True,
        )
        assert "unclosed group" in error.message


def test_a_slow_grammar_keeps_nobody_waiting(toy: Toy, wire: Gateway, gate: Gate) -> None:
    wire.send(Prepare("slow", text="a", grammar=WORD))
    wire.send(asking("held", WORD))
    with gateway(toy.config.url) as other:
        assert isinstance(other.ask(Prepare("c", text="b")), Prepared)
        other.send(Generate("free", "t", "salt", (1, 2), greedy(2)))
        assert texts_of(other, "free")
    assert wire.ask(Detokenize("d", (1, 2))) == Detokenized("d", "BC")
    gate.opened.set()
    (prepared,) = wire.receive()
    assert isinstance(prepared, Prepared)
    assert prepared.call_id == "slow"
    assert all(re.fullmatch(WORD.text, text) for text in texts_of(wire, "held"))


def test_an_abort_is_not_lost_while_the_grammar_compiles(wire: Gateway, gate: Gate) -> None:
    wire.send(asking("held", Grammar("regex", "B{150}")))
    wire.send(Abort("held"))
    assert isinstance(wire.ask(Prepare("c", text="b")), Prepared)  # so both have been read
    gate.opened.set()
    last = wire.until(is_last)[-1]
    assert isinstance(last, TokenEvent)
    assert last.finish_reason == "cancelled"


def test_too_many_waiting_grammars_are_refused_for_now(
    wire: Gateway, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grammar_desk, "MAX_WAITING", 2)
    for count in range(2):
        wire.send(Prepare(f"c{count}", text="a", grammar=Grammar("regex", f"B{{{count}}}C")))
    for ask in (Prepare("c3", text="a", grammar=WORD), asking("c3", WORD)):
        error = wire.ask(ask)
        assert isinstance(error, EngineError)
        assert (error.ref, error.code, error.permanent) == ("c3", "engine_overloaded", False)
    gate.opened.set()
    wire.receive()
    wire.receive()
    wire.send(asking("c3", WORD))
    assert re.fullmatch(WORD.text, texts_of(wire, "c3")[0])


def test_each_choice_keeps_to_the_grammar_by_itself(wire: Gateway, gate: Gate) -> None:
    gate.opened.set()
    requests = [asking(f"r{seed}", WORD, n=4) for seed in range(3)]
    for request in requests:
        wire.send(request)
    texts = texts_of(wire, *(request.request_id for request in requests))
    assert len(texts) == 12
    assert all(re.fullmatch(WORD.text, text) for text in texts)
    assert len(set(texts)) > 1
