"""A person at the console of the real stack, with the real engine: an adapter goes up, answers, and is charged for."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from controlplane.embedded.credentials import OPERATOR_EMAIL
from controlplane.embedded.demo.uploads import EXAMPLES
from tests.console.conftest import new_page, sign_in, watched
from tests.console.site import Person
from tests.console.test_console import ask, upload

if TYPE_CHECKING:
    from tests.e2e.conftest import World

pytestmark = [pytest.mark.stack, pytest.mark.browser]
QUESTION = "What is the capital of Italy?"


def open_playground(page: Page, adapter: str) -> None:
    page.get_by_role("link", name="Playground").click()
    page.get_by_role("combobox", name="Model of column 1").click()
    page.get_by_role("option", name=adapter, exact=True).click()
    page.get_by_role("switch", name="Show token probabilities").click()


def test_an_adapter_goes_up_answers_in_character_and_is_charged(browser: Browser, world: "World") -> None:
    member = world.members["globex"]
    with watched(new_page(browser, world.stack.console_url)) as page:
        sign_in(page, Person(member.plan.email, member.password))
        card = upload(page, EXAMPLES / "shout")
        expect(card.get_by_text("ready", exact=True)).to_be_visible(timeout=60_000)
        open_playground(page, "shout")
        ask(page, QUESTION)
        lane = page.get_by_role("region", name="Conversation with shout")
        figures = lane.get_by_role("list", name="What this answer took")
        expect(figures.get_by_text(re.compile(r"cost \$0\.0"))).to_be_visible(timeout=120_000)
        answer = lane.get_by_test_id("answer").inner_text().removesuffix("<|im_end|>")  # a token, with its probability
        assert answer.isupper(), answer
        assert lane.locator("[data-heat]").count() > 1
        page.get_by_role("link", name="Adapters").click()
        expect(card.get_by_text("on the device", exact=True).first).to_be_visible()
        assert_is_billed(page)


def assert_is_billed(page: Page) -> None:
    """What the page of usage sums up is what the API sums up, and not nothing."""
    asked = {"from": "2020-01-01T00:00", "to": "2100-01-01T00:00", "tz": "UTC", "group_by": "adapter"}
    usage = page.request.get(f"/api/v1/usage?{urlencode(asked)}").json()
    [row] = [row for row in usage["data"] if row["label"] == "shout"]
    assert row["completion_tokens"] > 0
    page.goto("/usage?by=adapter&tz=UTC")
    found = page.get_by_role("row", name=re.compile("^shout")).first
    expect(found).to_be_visible()
    cells = found.get_by_role("cell").all_inner_texts()
    counts = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
    assert cells[1:5] == [f"{row[name]:,}" for name in counts]


def test_an_operator_sees_the_engine_at_work(browser: Browser, world: "World") -> None:
    operator = Person(OPERATOR_EMAIL, world.stack.secret("operator_password"))
    with watched(new_page(browser, world.stack.console_url)) as page:
        sign_in(page, operator, "/fleet")
        expect(page.get_by_text("serving", exact=True)).to_be_visible()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        for path in ("/health", "/jobs", "/margin", "/capacity", "/models"):
            page.goto(path)
            expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            expect(page.get_by_role("alert")).to_have_count(0)
