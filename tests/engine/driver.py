"""Requests to the engine's core and its answers, held against what was promised."""

import time
from collections import defaultdict

from engine.protocol import EngineError, Event, Generate, Sampling, TokenEvent, Usage
from tests.engine.toy import Toy

NOTHING = Usage(prompt_tokens=0, cached_tokens=0, completion_tokens=0, device_ns=0)


def request(name: str, prompt: list[int], sampling: Sampling, **more: object) -> Generate:
    fields = {"tenant": "acme", "namespace": "salt", **more}
    return Generate(request_id=name, token_ids=tuple(prompt), sampling=sampling, **fields)  # type: ignore[arg-type]


class Answers:
    """Events by request, held against what was promised."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[int]] = defaultdict(list)
        self.text: dict[str, str] = defaultdict(str)
        self.ends: dict[str, TokenEvent | EngineError] = {}

    def take(self, events: list[Event]) -> None:
        for event in events:
            name = event.ref if isinstance(event, EngineError) else event.request_id
            assert name not in self.ends, f"{name} said something after its end"
            if isinstance(event, TokenEvent):
                self.tokens[name] += event.token_ids
                self.text[name] += event.text
                assert (event.usage is None) == (event.finish_reason is None)
            if isinstance(event, EngineError) or event.finish_reason is not None:
                self.ends[name] = event


def drive(toy: Toy, answers: Answers, steps: int = 3000) -> int:
    """Step until nothing is left to say. Returns the steps it took."""
    for step in range(steps):
        if toy.engine.is_idle:
            return step
        answers.take(toy.engine.step())
        toy.engine.check_integrity()
        if toy.engine.is_waiting and toy.adapters.is_loading:
            time.sleep(0.001)
    raise AssertionError(f"not idle after {steps} steps")
