"""The mixed load: 24 requests at once, streaming and not, base and four adapters of two tenants, with `openai`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import openai
from openai import AsyncOpenAI

from controlplane.embedded.demo.prompts import BASE_MAX_TOKENS, BEHAVIOURS, QUESTIONS, is_plain
from controlplane.embedded.demo.steps import DemoFailed, expect

REQUEST_SECONDS = 300.0
MOST_TRIES = 60
RETRY_SECONDS = 1.0
# What a client sees when a child is killed under it: no connection, a broken stream, an error event, a 5xx.
PASSING = (openai.APIConnectionError, openai.InternalServerError, openai.APIError)


@dataclass(frozen=True)
class Ask:
    """One greedy request."""

    tenant: str
    model: str
    question: str
    max_tokens: int
    stream: bool


@dataclass
class Answer:
    ask: Ask
    text: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tries: int = field(default=1, compare=False)


def mixed_load(*, base_model: str, adapters: dict[str, tuple[str, ...]]) -> list[Ask]:
    """adapters: names by tenant. Every tenant asks the base model too; every question goes out streaming and not."""
    groups = []
    for tenant, names in adapters.items():
        groups += [(tenant, name, BEHAVIOURS[name].questions, BEHAVIOURS[name].max_tokens) for name in names]
        groups.append((tenant, base_model, QUESTIONS, BASE_MAX_TOKENS))
    return [
        Ask(tenant, model, question, max_tokens, stream)
        for stream in (True, False)
        for tenant, model, questions, max_tokens in groups
        for question in questions
    ]


class Door:
    """One `openai` client per tenant."""

    def __init__(self, url: str, keys: dict[str, str], *, retry: bool) -> None:
        self._url = url
        self._keys = keys
        self._retry = retry

    async def ask_all(self, asks: list[Ask]) -> list[Answer]:
        """All at once."""
        async with self._clients() as clients:
            return await asyncio.gather(*(self._ask(clients[ask.tenant], ask) for ask in asks))

    async def ask_each(self, asks: list[Ask]) -> list[Answer]:
        """One after the other."""
        async with self._clients() as clients:
            return [await self._ask(clients[ask.tenant], ask) for ask in asks]

    @asynccontextmanager
    async def _clients(self) -> AsyncIterator[dict[str, AsyncOpenAI]]:
        made = {
            tenant: AsyncOpenAI(base_url=f"{self._url}/v1", api_key=key, max_retries=0, timeout=REQUEST_SECONDS)
            for tenant, key in self._keys.items()
        }
        try:
            yield made
        finally:
            for client in made.values():
                await client.close()

    async def _ask(self, client: AsyncOpenAI, ask: Ask) -> Answer:
        tries = 0
        while True:
            tries += 1
            try:
                answer = await (_streamed(client, ask) if ask.stream else _whole(client, ask))
                answer.tries = tries
                return answer
            except PASSING as exc:
                if not self._retry or tries >= MOST_TRIES:
                    raise DemoFailed(f"{ask.model} did not answer {ask.question!r}: {exc!r}") from exc
                await asyncio.sleep(RETRY_SECONDS)


async def _streamed(client: AsyncOpenAI, ask: Ask) -> Answer:
    answer = Answer(ask)
    stream = await client.chat.completions.create(
        model=ask.model, messages=[{"role": "user", "content": ask.question}], max_tokens=ask.max_tokens, temperature=0,
        stream=True, stream_options={"include_usage": True},
    )  # fmt: skip
    usage = None
    async for chunk in stream:
        for choice in chunk.choices:
            answer.text += choice.delta.content or ""
        usage = chunk.usage or usage
    expect(usage, f"{ask.model} ended its stream without usage")
    assert usage is not None
    answer.prompt_tokens, answer.completion_tokens = usage.prompt_tokens, usage.completion_tokens
    return answer


async def _whole(client: AsyncOpenAI, ask: Ask) -> Answer:
    done = await client.chat.completions.create(
        model=ask.model, messages=[{"role": "user", "content": ask.question}], max_tokens=ask.max_tokens, temperature=0
    )
    expect(done.usage, f"{ask.model} answered without usage")
    assert done.usage is not None
    text = done.choices[0].message.content or ""
    return Answer(ask, text, done.usage.prompt_tokens, done.usage.completion_tokens)


def check_behaviours(answers: list[Answer]) -> None:
    """Every adapter's way of speaking shows in all its answers, and in none of the base model's."""
    for answer in answers:
        behaviour = BEHAVIOURS.get(answer.ask.model)
        shows = behaviour.shows(answer.text) if behaviour else is_plain(answer.text)
        expect(shows, f"{answer.ask.model} answered {answer.ask.question!r} out of character: {answer.text!r}")


def check_same(mixed: list[Answer], alone: list[Answer]) -> None:
    """Token for token: who shares the batch must not show (rule 6)."""
    for one, other in zip(mixed, alone, strict=True):
        expect(
            one == other,
            f"{one.ask.model} answered {one.ask.question!r} with {one.text!r} in the mixed load, "
            f"but with {other.text!r} alone",
        )
