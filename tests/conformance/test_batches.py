"""Files and batches with the unmodified `openai` package: a real engine answers the lines."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from django.test import override_settings
from openai.types import Batch, FileObject

from controlplane.batches.work import work
from tests.conformance.conftest import Product

pytestmark = pytest.mark.django_db  # there is a database to serve from; the tests themselves leave it alone


@pytest.fixture(scope="module")
def client(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    with (
        override_settings(OBJECTS_DIR=tmp_path_factory.mktemp("objects")),
        openai.OpenAI(api_key=product.key, base_url=product.url, max_retries=0, timeout=60) as found,
    ):
        yield found


def line(custom_id: str, url: str, **body: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def run(client: openai.OpenAI, folder: Path, lines: list[dict[str, Any]]) -> tuple[Batch, list[dict[str, Any]]]:
    path = folder / "lines.jsonl"
    path.write_text("\n".join(json.dumps(each) for each in lines))
    with path.open("rb") as file:
        uploaded = client.files.create(file=file, purpose="batch")
    FileObject.model_validate(uploaded.model_dump())
    batch = client.batches.create(input_file_id=uploaded.id, endpoint=lines[0]["url"], completion_window="24h")
    Batch.model_validate(batch.model_dump())
    assert asyncio.run(work())
    batch = client.batches.retrieve(batch.id)
    Batch.model_validate(batch.model_dump())
    assert batch.output_file_id, batch
    return batch, [json.loads(text) for text in client.files.content(batch.output_file_id).iter_lines()]


def test_chats(client: openai.OpenAI, product: Product, tmp_path: Path) -> None:
    """The same as one by one, adapters and base mixed."""
    chats = [
        {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 4, "temperature": 0}
        for model in (product.model, "pirate")
        for text in ("Say hello.", "Name a colour.")
    ]
    lines = [line(str(i), "/v1/chat/completions", **body) for i, body in enumerate(chats)]
    batch, answers = run(client, tmp_path, lines)
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 4, 0)
    assert [answer["custom_id"] for answer in answers] == ["0", "1", "2", "3"]
    tokens = 0
    for body, answer in zip(chats, answers, strict=True):
        direct = client.chat.completions.create(**body)
        told = answer["response"]["body"]
        assert (told["model"], told["choices"][0]["finish_reason"]) == (direct.model, direct.choices[0].finish_reason)
        assert told["usage"]["prompt_tokens"] == direct.usage.prompt_tokens
        tokens += told["usage"]["total_tokens"]
    assert batch.usage.total_tokens == tokens


def test_embeddings(client: openai.OpenAI, product: Product, tmp_path: Path) -> None:
    _, [answer] = run(client, tmp_path, [line("a", "/v1/embeddings", model=product.model, input=["x", "y"])])
    assert [len(each["embedding"]) for each in answer["response"]["body"]["data"]] == [576, 576]


def test_an_error_file_names_the_line(client: openai.OpenAI, product: Product, tmp_path: Path) -> None:
    good = line("good", "/v1/completions", model=product.model, prompt="x", max_tokens=2)
    bad = line("bad", "/v1/completions", model="nobody", prompt="x")
    batch, answers = run(client, tmp_path, [good, bad])
    assert [answer["custom_id"] for answer in answers] == ["good"]
    [told] = [json.loads(text) for text in client.files.content(batch.error_file_id).iter_lines()]
    assert (told["line"], told["custom_id"], told["response"]["status_code"]) == (2, "bad", 404)


def test_cancelled(client: openai.OpenAI, product: Product) -> None:
    body = line("a", "/v1/completions", model=product.model, prompt="x", max_tokens=2)
    file = client.files.create(file=("a.jsonl", json.dumps(body).encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="24h")
    assert client.batches.cancel(batch.id).status == "cancelling"
    assert asyncio.run(work())
    assert client.batches.retrieve(batch.id).status == "cancelled"
    assert batch.id in [each.id for each in client.batches.list(limit=2)]
    assert client.files.delete(file.id).deleted
