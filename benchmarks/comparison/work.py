"""What every server is asked: jobs of requests, drawn from this repository's own pages so that lengths are exact."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Ask:
    """One request, greedy, that ends after `answer` tokens and never before.

    prompt: token ids. adapter: its name, None = the base. after: the request, by its place in the job, whose first
    token this one waits for; None = asked at once.
    """

    prompt: tuple[int, ...]
    adapter: str | None
    answer: int
    after: int | None = None


@dataclass(frozen=True)
class Job:
    """Requests of one round. shared: leading tokens that all prompts have in common."""

    asks: tuple[Ask, ...]
    shared: int = 0


@dataclass(frozen=True)
class Answer:
    """asked, times: seconds on one clock; a time for each piece that came. ids: empty where they were not asked for."""

    asked: float
    times: tuple[float, ...]
    tokens: int
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Workload:
    """`at_once` requests of `prompt` tokens behind a common prefix of `shared`, using `adapters` adapters in turn.

    late: requests of `late_prompt` tokens that arrive while the others decode. With a prefix, all but the first request
    wait until the first has brought it. rounds: at most.
    """

    name: str
    at_once: int
    prompt: int
    answer: int
    adapters: int = 0
    shared: int = 0
    late: int = 0
    late_prompt: int = 0
    late_answer: int = 4
    rounds: int = 3

    @property
    def group(self) -> str:
        """Workloads of one group share a server: another number of many adapters changes nothing in what one does."""
        return "many" if self.adapters > 1 else "one" if self.adapters else "base"


FULL = (
    Workload(name="base x1", at_once=1, prompt=64, answer=64, rounds=5),
    Workload(name="base x8", at_once=8, prompt=64, answer=64),
    Workload(name="base x32", at_once=32, prompt=64, answer=64, rounds=2),
    Workload(name="base x64", at_once=64, prompt=64, answer=32, rounds=2),
    Workload(name="shared 1k prefix x16", at_once=16, prompt=16, answer=32, shared=1024, rounds=2),
    Workload(
        name="2 x 2k prompts among 8 streams", at_once=8, prompt=16, answer=96, late=2, late_prompt=2048, rounds=2
    ),
    Workload(name="1 adapter x1", at_once=1, prompt=32, answer=32, adapters=1, rounds=5),
    Workload(name="1 adapter x32", at_once=32, prompt=32, answer=32, adapters=1, rounds=2),
    Workload(name="8 adapters x32", at_once=32, prompt=16, answer=32, adapters=8, rounds=2),
    Workload(name="32 adapters x32", at_once=32, prompt=16, answer=32, adapters=32, rounds=2),
    Workload(name="32 adapters x64", at_once=64, prompt=16, answer=16, adapters=32, rounds=2),
)
QUICK = (
    Workload(name="base x1", at_once=1, prompt=32, answer=16),
    Workload(name="base x8", at_once=8, prompt=32, answer=16),
    Workload(name="shared 256 prefix x4", at_once=4, prompt=8, answer=8, shared=256),
    Workload(name="1 x 512 prompt among 4 streams", at_once=4, prompt=8, answer=24, late=1, late_prompt=512),
    Workload(name="1 adapter x8", at_once=8, prompt=16, answer=8, adapters=1),
    Workload(name="8 adapters x8", at_once=8, prompt=16, answer=8, adapters=8),
)


def adapter_names(count: int) -> list[str]:
    return [f"adapter-{number}" for number in range(count)]


class Words(Protocol):
    """Where prompts are drawn from."""

    def draw(self, count: int, source: random.Random) -> tuple[int, ...]: ...


class Corpus:
    """Pieces of running text by the number of tokens they have in one model's vocabulary."""

    def __init__(self, model: Path) -> None:
        tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        pages = sorted((ROOT / "docs").rglob("*.md"))
        text = "\n\n".join(page.read_text(encoding="utf-8") for page in pages)
        self._ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids

    def draw(self, count: int, source: random.Random) -> tuple[int, ...]:
        """`count` tokens of running text; it begins again where the pages end."""
        start = source.randrange(len(self._ids))
        found = self._ids[start : start + count]
        while len(found) < count:
            found += self._ids[: count - len(found)]
        return tuple(found)


def job_of(workload: Workload, words: Words, number: int) -> Job:
    """The same for every server, and another for every `number`: no prefix cache knows it from an earlier round."""
    draw = random.Random(f"{workload.name} {number}")
    names: list[str | None] = [*adapter_names(workload.adapters)] or [None]
    shared = words.draw(workload.shared, draw) if workload.shared else ()
    asks = [
        Ask(
            (*shared, *words.draw(workload.prompt, draw)), names[i % len(names)], workload.answer,
            0 if shared and i else None,
        )
        for i in range(workload.at_once)
    ]  # fmt: skip
    late = [
        Ask(words.draw(workload.late_prompt, draw), names[i % len(names)], workload.late_answer, 0)
        for i in range(workload.late)
    ]
    return Job((*asks, *late), len(shared))


def check_job(workload: Workload, words: Words, answer: int) -> Job:
    """Every adapter of the workload and the base, all at once, with the same two prompts.

    Also the warm-up: it loads the adapters, and it runs a batch as mixed as the ones that are timed."""
    draw = random.Random("check")
    prompts = [words.draw(12, draw) for _ in range(2)]
    # A server of one adapter set in a batch is asked for nothing but that set.
    names: list[str | None] = [*adapter_names(workload.adapters)] or [None]
    return Job(tuple(Ask(prompts[i % 2], name, answer) for i, name in enumerate(names)))
