"""/tokenize and /detokenize: the engine's word on a text, counted and not billed. A fake token is a byte."""

import httpx
import pytest

from controlplane.quotas.models import Quota
from engine.protocol import Prepare
from tenants.scope import ALL_TENANTS, tenant_scope
from tests.controlplane.inference.conftest import BASE, Caller, Served, usage_of


def test_a_text(http: httpx.Client, caller: Caller) -> None:
    found = http.post("/tokenize", json={"model": BASE, "prompt": "né"}).json()
    assert found == {"count": 3, "max_model_len": 8192, "tokens": [110, 195, 169], "token_strs": None}
    assert usage_of(caller) == []


def test_the_texts_of_tokens(http: httpx.Client) -> None:
    found = http.post("/tokenize", json={"model": BASE, "prompt": "né", "return_token_strs": True}).json()
    assert found["token_strs"] == ["n", "\\xc3", "\\xa9"]


def test_a_conversation(http: httpx.Client, stack: Served) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    body = {"model": BASE, "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    assert http.post("/tokenize", json=body).json()["count"] == len("<user>hi")
    [asked] = stack.engine.of(Prepare)
    assert asked.tools == (tool,)


def test_there_and_back(http: httpx.Client) -> None:
    tokens = http.post("/tokenize", json={"model": BASE, "prompt": "né 🙂"}).json()["tokens"]
    assert http.post("/detokenize", json={"model": BASE, "tokens": tokens}).json() == {"prompt": "né 🙂"}
    assert http.post("/detokenize", json={"model": BASE, "tokens": []}).json() == {"prompt": ""}


def test_where_vllm_has_them(http: httpx.Client, stack: Served) -> None:
    for path, body in (("tokenize", {"prompt": "a"}), ("detokenize", {"tokens": [97]})):
        assert http.post(f"{stack.url}/{path}", json={"model": BASE, **body}).status_code == 200


def test_special_tokens_are_the_callers_choice(http: httpx.Client, stack: Served) -> None:
    for choice in (None, True, False):
        http.post("/tokenize", json={"model": BASE, "prompt": "a", "add_special_tokens": choice})
    assert [asked.special_tokens for asked in stack.engine.of(Prepare)] == [True, True, False]


def test_calls_count_as_requests(http: httpx.Client, caller: Caller) -> None:
    with tenant_scope(ALL_TENANTS):
        Quota.objects.create(tenant=caller.tenant, level=0, subject=caller.tenant.id, requests_per_minute=2)
    body = {"model": BASE, "prompt": "a"}
    answers = [http.post("/tokenize", json=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["x-ratelimit-remaining-requests"] == "1"
    assert int(answers[2].headers["retry-after"]) >= 1
    assert http.post("/detokenize", json={"model": BASE, "tokens": [1]}).status_code == 429


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("tokenize", {}, "prompt"),
        ("tokenize", {"prompt": [1]}, "prompt"),
        ("tokenize", {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, "prompt"),
        ("tokenize", {"messages": []}, "messages"),
        (
            "tokenize",
            {"messages": [{"role": "user", "content": "a"}], "add_special_tokens": True},
            "add_special_tokens",
        ),
        ("tokenize", {"prompt": "a", "add_special_tokens": 1}, "add_special_tokens"),
        ("tokenize", {"prompt": "a", "return_token_strs": 1}, "return_token_strs"),
        ("tokenize", {"prompt": "a", "model": None}, "model"),
        ("detokenize", {}, "tokens"),
        ("detokenize", {"tokens": "a"}, "tokens"),
        ("detokenize", {"tokens": [-1]}, "tokens"),
        ("detokenize", {"tokens": [1.5]}, "tokens"),
    ],
)
def test_refused(http: httpx.Client, path: str, body: dict, param: str) -> None:
    response = http.post(f"/{path}", json={"model": BASE, **body})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_a_key_and_a_model_of_its_own_are_needed(http: httpx.Client, stack: Served) -> None:
    assert httpx.post(f"{stack.url}/tokenize", json={"model": BASE, "prompt": "a"}).status_code == 401
    for path, body in (("tokenize", {"prompt": "a"}), ("detokenize", {"tokens": [1]})):
        assert http.post(f"/{path}", json={"model": "pirate", **body}).json()["error"]["code"] == "model_not_found"
