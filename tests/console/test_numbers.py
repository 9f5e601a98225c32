"""Every number that a page shows is the API's for the same filter, whatever the filter is."""

import random
import re
import secrets
import time
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import sign_in
from tests.console.site import Site
from tests.console.test_tenant_pages import spend_something, told, tomorrow

pytestmark = pytest.mark.browser
ZONES = ["UTC", "Asia/Kolkata", "Pacific/Auckland", "America/St_Johns"]
SHOWN_DIGITS, MOST_DIGITS = 3, 12


def shown(amount: str) -> str:
    """Dollars as pages show them: to the cent, and of less than a dollar three digits."""
    value = Decimal(amount)
    digits = 2
    if value and abs(value) < 1 and -int(value.normalize().as_tuple().exponent) > 2:
        digits = min(-value.adjusted() - 1 + SHOWN_DIGITS, MOST_DIGITS)
    rounded = abs(value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))
    return f"{'-' if value < 0 else ''}${rounded:,.{digits}f}"


@pytest.mark.parametrize(
    ("amount", "words"),
    [("0", "$0.00"), ("1234.5", "$1,234.50"), ("0.000123456", "$0.000123"), ("0.05000", "$0.05"), ("-3.5", "-$3.50")],
)
def test_this_files_own_reckoning(amount: str, words: str) -> None:
    assert shown(amount) == words


def cells_of(row: Locator) -> list[str]:
    """Of each cell the first line."""
    return [text.split("\n")[0] for text in row.get_by_role("cell").all_inner_texts()]


# Of each column the amount that the API tells.
MARGIN: dict[str, Callable[[dict[str, Any]], str]] = {
    "Requests": lambda row: f"{row['requests']:,}",
    "Tokens": lambda row: f"{row['prompt_tokens'] + row['completion_tokens']:,}",
    "Revenue": lambda row: shown(row["revenue"]),
    "Cost": lambda row: shown(row["cost"]),
    "Prefill": lambda row: shown(row["prefill_cost"]),
    "Decode": lambda row: shown(row["decode_cost"]),
    "Margin": lambda row: shown(row["margin"]),
    "Cache saved": lambda row: shown(row["cache_savings"]),
}


def test_the_margins(page: Page, site: Site) -> None:
    dice = random.Random(secrets.randbelow(10**6))
    sign_in(page, site.acme)
    spend_something(page, site, 2)
    page.context.clear_cookies()
    sign_in(page, site.operator, "/margin")
    for by in dice.sample(["tenant", "adapter", "key", "model", "day", "hour"], 3):
        zone = dice.choice(ZONES)
        with page.expect_response(re.compile(rf"/operator/margin\?.*group_by={by}")) as got:
            page.goto(f"/margin?range=7d&by={by}&tz={zone}")
        margin: dict[str, Any] = got.value.json()
        table = page.get_by_role("region", name="Margin table")
        rows = table.get_by_role("row")
        expect(rows.nth(1)).to_be_visible()
        names = table.get_by_role("columnheader").all_inner_texts()
        for at, row in enumerate(margin["data"][:4], start=1):
            cells = dict(zip(names, cells_of(rows.nth(at)), strict=True))
            assert {name: cells[name] for name in MARGIN} == {name: of(row) for name, of in MARGIN.items()}, (by, zone)


def test_the_generations(page: Page, site: Site) -> None:
    dice = random.Random(secrets.randbelow(10**6))
    sign_in(page, site.acme)
    spend_something(page, site, 3)
    day = time.strftime("%Y-%m-%d")
    zone = dice.choice(ZONES)
    asked = {"from": "2020-01-01T00:00", "to": tomorrow(day), "tz": zone, "limit": "25"}
    keys = [row["group"] for row in told(page, "usage", asked | {"group_by": "key"})["data"]]
    for outcome in dice.sample(["any", "completed", "cancelled"], 2):
        key = dice.choice(keys)
        found = told(page, "usage/generations", asked | {"outcome": outcome, "key": key})["data"]
        page.goto(f"/usage?range=custom&first=2020-01-01&last={day}&by=key&only={key}&tz={zone}&outcome={outcome}")
        listed = page.get_by_role("region", name="Generations")
        expect(listed.get_by_role("button", name=re.compile("Show generation"))).to_have_count(len(found))
        for at, row in enumerate(found[:3], start=1):
            cells = cells_of(listed.get_by_role("row").nth(at))
            counts = [f"{row[name]:,}" for name in ("prompt_tokens", "cached_tokens", "completion_tokens")]
            assert (cells[3:6], cells[8]) == (counts, row["outcome"]), (outcome, key)
            assert Decimal(cells[7].strip("$").replace(",", "")) == Decimal(row["amount"])


def test_home_keys_limits_and_billing(page: Page, site: Site) -> None:
    sign_in(page, site.acme)
    spend_something(page, site, 1)
    now = time.strftime("%Y-%m", time.gmtime())
    month = {"from": f"{now}-01T00:00", "to": tomorrow(time.strftime("%Y-%m-%d")), "tz": "UTC"}
    usage = told(page, "usage", month | {"group_by": "key"})
    page.goto("/home")
    for name, text in {
        "Spend": shown(usage["total"]["amount"]),
        "Per 1M tokens": shown(usage["total"]["amount_per_1m"]),
        "Requests": f"{usage['total']['requests']:,}",
    }.items():
        expect(page.get_by_role("region", name=name, exact=True)).to_contain_text(text)
    page.goto("/keys")
    for row in [row for row in usage["data"] if row["label"] != "Playground"][:3]:  # that one is nobody's to issue
        link = page.get_by_role("link", name=f"Usage of {row['label']} this month: {shown(row['amount'])}", exact=True)
        expect(link.first).to_be_visible()
    balance = told(page, "balance", {})
    page.goto("/billing")
    for name in ("spent_this_period", "owed", "credit"):
        expect(page.locator("main")).to_contain_text(shown(balance[name]))
    limits = told(page, "limits", {})["data"]
    page.goto("/limits")
    for level in limits[:4]:
        card = page.get_by_role("region", name=f"Limits of {level['label']}", exact=True)
        for use in level["uses"]:
            if use["unit"] == "money":
                expect(card.first).to_contain_text(shown(use["limit"]))
