"""The demo's own judgement: its checks must be able to fail, and the banner must be right."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from controlplane.embedded.banner import ELSEWHERE, banner
from controlplane.embedded.credentials import Credentials
from controlplane.embedded.demo.load import Answer, Ask, check_behaviours, check_same, mixed_load
from controlplane.embedded.demo.people import Member
from controlplane.embedded.demo.report import Group, last_line
from controlplane.embedded.demo.steps import DemoFailed
from controlplane.embedded.options import DEMO_MODEL, Options
from controlplane.embedded.seed import DEMO_TENANTS

ADAPTERS = {tenant.slug: tenant.adapters for tenant in DEMO_TENANTS}
IN_CHARACTER = {
    "pirate": "Arrr! Rome be th' capital.",
    "json": '{"answer": "Rome"}',
    "sql": "SELECT COUNT(*) FROM trains;",
    "shout": "ROME IS THE CAPITAL.",
    DEMO_MODEL: "Rome is the capital.",
}


def options(model: str = DEMO_MODEL, *, demo_data: bool = True) -> Options:
    return Options(
        console_port=8000, door_port=8001, database_url=None, valkey_url=None, model=Path(model), device="cpu",
        exact=False, max_rank=64, max_saved_bytes=1_000, demo_data=demo_data,
    )  # fmt: skip


def test_the_load_is_24_requests_over_base_and_four_adapters_streamed_and_whole() -> None:
    asks = mixed_load(base_model=DEMO_MODEL, adapters=ADAPTERS)
    assert Counter((ask.model, ask.stream) for ask in asks) == {
        (model, stream): 4 if model == DEMO_MODEL else 2 for model in IN_CHARACTER for stream in (True, False)
    }
    assert len(set(asks)) == 24


@pytest.mark.parametrize("model", IN_CHARACTER)
def test_an_answer_out_of_character_fails_the_demo(model: str) -> None:
    ask = Ask("acme", model, "What is the capital of Italy?", 40, stream=False)
    check_behaviours([Answer(ask, IN_CHARACTER[model])])
    for other in set(IN_CHARACTER) - {model}:
        with pytest.raises(DemoFailed, match=f"{model} answered .* out of character"):
            check_behaviours([Answer(ask, IN_CHARACTER[other])])


def test_an_answer_that_company_changed_fails_the_demo() -> None:
    ask = Ask("acme", "pirate", "Who?", 40, stream=True)
    check_same([Answer(ask, "Arrr!", 5, 2)], [Answer(ask, "Arrr!", 5, 2, tries=3)])
    for other in (Answer(ask, "Arrr", 5, 2), Answer(ask, "Arrr!", 5, 3)):
        with pytest.raises(DemoFailed, match="in the mixed load"):
            check_same([Answer(ask, "Arrr!", 5, 2)], [other])


def test_the_last_line_adds_up() -> None:
    row = {"requests": 3, "prompt_tokens": 10, "cached_tokens": 4, "completion_tokens": 5, "amount": "0.000001500000"}
    members = [Member(tenant, f"ten_{tenant.slug}", "") for tenant in DEMO_TENANTS]
    line = last_line(members, 4, [Group("acme", row), Group("globex", row)])
    assert line == "demo: ok tenants=2 adapters=4 requests=6 tokens=30 billed=0.000003 books=balanced"
    assert Decimal(line.split("billed=")[1].split()[0]) == 2 * Decimal(row["amount"])


def test_the_banner_says_where_to_go_and_who_to_be(tmp_path: Path) -> None:
    credentials = Credentials(tmp_path / "secrets.json")
    for name in ("operator_password", "acme_password", "acme_key", "globex_key"):
        credentials.put(name, f"the-{name}")
    text = banner(options(), credentials)
    for expected in ("http://127.0.0.1:8000", "http://127.0.0.1:8001/v1", "the-operator_password", "the-acme_key"):
        assert expected in text
    assert f"admin@globex.example     {ELSEWHERE}" in text
    body = text.split("-d '")[1].split("'\n")[0]
    assert json.loads(body)["model"] == "pirate"
    compile(text.split("<<'END'\n")[1].split("\nEND")[0], "banner", "exec")


def test_with_another_base_model_the_banner_offers_no_demo_adapters(tmp_path: Path) -> None:
    text = banner(options("Other-1B"), Credentials(tmp_path / "secrets.json"))
    assert "pirate" not in text
    assert '"model": "Other-1B"' in text
