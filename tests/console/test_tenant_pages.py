"""What a tenant's people do on their pages, in a real browser against the real console process."""

import contextlib
import json
import random
import re
import secrets
import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Error, Locator, Page, Route, expect

from tests.console.conftest import sign_in
from tests.console.site import Site
from tests.console.test_console import ask, card_of, choose, complete, issue_key, unique, upload, write_folder
from tests.controlplane.adapters.peft_folder import peft_folder
from tests.controlplane.fake_engine import Script

pytestmark = pytest.mark.browser


# --- usage --------------------------------------------------------------------------------------------------------


def spend_something(page: Page, site: Site, requests: int) -> None:
    key = issue_key(page, unique("spender"))
    page.get_by_role("button", name="I have stored it").click()
    for _ in range(requests):
        assert complete(site, key, site.base_model).status_code == 200


def money(text: str) -> Decimal:
    return Decimal(text.replace("$", "").replace(",", ""))


def told(page: Page, path: str, asked: dict[str, str]) -> Any:
    return page.request.get(f"/api/v1/{path}?{urlencode(asked)}").json()


def test_any_number_of_the_usage_page_is_that_of_the_api(page: Page, site: Site) -> None:
    sign_in(page, site.acme)
    spend_something(page, site, 4)
    dice = random.Random(secrets.randbelow(10**6))
    day = time.strftime("%Y-%m-%d")
    for by in dice.sample(["adapter", "key", "member", "model"], 2):
        zone = dice.choice(["UTC", "Asia/Kolkata", "Pacific/Auckland"])
        view = {"range": "custom", "first": "2020-01-01", "last": day, "by": by, "tz": zone}
        page.goto(f"/usage?{urlencode(view)}")
        table = page.get_by_role("region", name="Usage table")
        expect(table.get_by_role("row", name="Total")).to_be_visible()
        asked = {"from": "2020-01-01T00:00", "to": tomorrow(day), "tz": zone}
        usage = told(page, "usage", asked | {"group_by": by})
        for row in usage["data"][:3]:
            cells = table.get_by_role("row", name=row["label"]).first.get_by_role("cell").all_inner_texts()
            counts = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
            assert cells[1:5] == [f"{row[name]:,}" for name in counts], (by, zone)
        parts = told(page, "usage/composition", asked)
        made_of = page.get_by_role("region", name="What the spend is made of")
        for name in ("input", "cached_input", "output", "surcharge", "markup"):
            expect(made_of).to_contain_text(exact(parts[name]))


def tomorrow(day: str) -> str:
    at = time.mktime(time.strptime(day, "%Y-%m-%d")) + 36 * 3600
    return time.strftime("%Y-%m-%dT00:00", time.localtime(at))


def exact(amount: str) -> str:
    whole, _, rest = amount.partition(".")
    return f"${int(whole):,}.{rest.ljust(2, '0')}"


def test_a_spike_is_followed_down_to_the_request(page: Page, site: Site) -> None:
    sign_in(page, site.globex)
    spend_something(page, site, 1)
    page.goto("/usage?by=key&tz=UTC")
    table = page.get_by_role("region", name="Usage table")
    table.get_by_role("button").filter(has_text="spender").first.click()
    expect(page).to_have_url(re.compile(r"only=key_"))
    generations = page.get_by_role("region", name="Generations")
    generations.get_by_role("button", name=re.compile("Show generation")).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("completed (stop)")).to_be_visible()
    expect(dialog.get_by_text("First token")).to_be_visible()
    [amount] = re.findall(r"\$\S+", dialog.get_by_role("heading", name=re.compile("is made of")).inner_text())
    parts = dialog.get_by_text(re.compile(r"^\$\d")).all_inner_texts()
    assert money(amount) == sum(map(money, parts)), parts
    page.reload()
    expect(page.get_by_role("dialog").get_by_text("completed (stop)")).to_be_visible()


def test_the_generations_are_saved_as_they_are(page: Page, site: Site) -> None:
    sign_in(page, site.globex)
    spend_something(page, site, 2)
    page.goto("/usage?tz=UTC")
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Generations as JSON lines").click()
    rows = [json.loads(line) for line in Path(download.value.path()).read_text().splitlines()]
    total = page.get_by_role("row", name="Total").get_by_role("cell").nth(1)
    expect(total).to_have_text(f"{len(rows):,}")


# --- adapters -----------------------------------------------------------------------------------------------------


def test_an_upload_is_paused_and_goes_on_after_a_reload(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("paused")
    folder = write_folder(tmp_path, name, peft_folder(seed=21))
    sign_in(page, site.acme)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/files/adapter_model.safetensors*", hold)
    choose(page, folder)
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("heading", name=f"{name} is paused")).to_be_visible()
    page.unroute("**/files/adapter_model.safetensors*")
    page.reload()
    card = card_of(page, name)
    expect(card.get_by_text("Version 1 is uploaded in part")).to_be_visible()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    choose(page, folder)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(card.get_by_text("serves v1")).to_be_visible()
    assert "adapter_model.safetensors?offset=0" in [url.rsplit("/", 1)[1] for url in sent]


def test_an_unfinished_upload_is_discarded(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("unwanted")
    sign_in(page, site.acme)
    page.route("**/files/adapter_model.safetensors*", lambda route: route.abort("connectionreset"))
    choose(page, write_folder(tmp_path, name, peft_folder(seed=22)))
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("stopped")
    page.get_by_role("button", name="Dismiss").click()
    card = card_of(page, name)
    card.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Discard it").click()
    expect(card.get_by_text("Version 1 is uploaded in part")).to_have_count(0)


def test_an_import_from_where_nobody_may_fetch_says_so(page: Page, site: Site) -> None:
    sign_in(page, site.acme)
    page.get_by_text("From a URL or hub").click()
    page.get_by_label("Where it is").fill("https://127.0.0.1/adapters/bot")
    page.get_by_label("Name", exact=True).fill(unique("bot"))
    page.get_by_role("button", name="Fetch it").click()
    refusal = page.get_by_role("alert").or_(page.get_by_text(re.compile("Version 1 was refused")))
    expect(refusal.first).to_be_visible()


def versions_of(page: Page, name: str, parent: Path, *ranks: int) -> Locator:
    """An adapter with a version of each rank: its card."""
    for rank in ranks:
        (parent / str(rank)).mkdir()
        card = upload(page, write_folder(parent / str(rank), name, peft_folder(seed=rank, rank=rank)))
        expect(card.get_by_text(f"rank {rank}")).to_be_visible()
        page.get_by_role("button", name="Upload another").click()
    return card_of(page, name)


def test_versions_are_compared_rolled_back_downloaded_and_deleted(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("history")
    sign_in(page, site.acme)
    card = versions_of(page, name, tmp_path, 4, 8)
    card.get_by_role("button", name="2 versions").click()
    expect(card.get_by_text("on disk").first).to_be_visible()
    card.get_by_role("button", name="Compare two versions").click()
    expect(page.get_by_role("row", name="r 4 8")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    page.get_by_role("menuitem", name="Roll back to v1").click()
    expect(card.get_by_text("serves v1 · rank 4")).to_be_visible()
    page.get_by_role("button", name=f"Actions for {name}@2").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=re.compile("adapter_config.json")).click()
    assert json.loads(Path(download.value.path()).read_text())["r"] == 8
    page.get_by_role("button", name=f"Actions for {name}@2").click()
    page.get_by_role("menuitem", name="Delete the version").click()
    page.get_by_role("button", name="Delete the version").click()
    expect(card.get_by_role("button", name="1 version")).to_be_visible()


def test_a_share_is_given_used_and_taken_back(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("shared")
    sign_in(page, site.acme)
    card = upload(page, write_folder(tmp_path, name, peft_folder(seed=31)))
    expect(card.get_by_text("ready", exact=True)).to_be_visible()
    page.get_by_role("button", name=f"Actions for {name}").click()
    page.get_by_role("menuitem", name="Share").click()
    page.get_by_label("Tenant", exact=True).fill("globex")
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("cell", name="globex", exact=True)).to_be_visible()
    page.get_by_role("button", name="Set what globex pays on top").click()
    page.get_by_label("Per 1M tokens").fill("2.5")
    page.get_by_role("button", name="Set it").click()
    expect(page.get_by_text("you get $2.00; $0.00 since your last statement")).to_be_visible()
    theirs = page.context.browser.new_context(base_url=site.url) if page.context.browser else None
    assert theirs is not None
    other = theirs.new_page()
    sign_in(other, site.globex)
    shared = other.get_by_role("region", name="Shared with you")
    expect(shared.get_by_role("row").filter(has_text=f"acme/{name}")).to_contain_text("$2.50 for acme")
    other.goto("/billing")
    plan = other.get_by_role("region", name="Prices per 1M tokens")
    expect(plan.get_by_role("row").filter(has_text=f"acme/{name}")).to_contain_text("$2.50 for acme")
    theirs.close()
    page.get_by_role("button", name="Stop sharing with globex").click()
    page.get_by_role("button", name="Stop sharing", exact=True).click()
    expect(page.get_by_text("It is shared with nobody.")).to_be_visible()


def test_lists_are_searched_through_their_address(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("findable")
    sign_in(page, site.acme)
    upload(page, write_folder(tmp_path, name, peft_folder(seed=33)))
    page.get_by_label("Search by name").fill("findab")
    expect(page).to_have_url(re.compile(r"q=findab"))
    expect(card_of(page, name)).to_be_visible()
    page.get_by_label("Search by name").fill("no such adapter")
    expect(page.get_by_text("No adapter like that")).to_be_visible()
    page.goto("/adapters?q=findab")
    expect(page.get_by_label("Search by name")).to_have_value("findab")
    expect(card_of(page, name)).to_be_visible()


# --- playground ---------------------------------------------------------------------------------------------------


def test_four_columns_probabilities_code_and_a_link(page: Page, site: Site) -> None:
    sign_in(page, site.globex, "/playground")
    site.engine.script = Script(pieces=("Ahoy", ", ", "matey", "!"))
    for _ in range(3):
        page.get_by_role("button", name="Add a column").click()
    expect(page.get_by_role("button", name="Add a column")).to_be_disabled()
    page.get_by_role("switch", name="Show token probabilities").click()
    ask(page, "hello")
    answers = page.get_by_test_id("answer")
    expect(answers).to_have_count(4)
    expect(answers.first).to_have_text("Ahoy, matey!")
    expect(answers.first.locator("[data-heat]").first).to_have_attribute("title", re.compile(r"\d%"))
    page.get_by_role("button", name="Show as code").first.click()
    for language in ("curl", "Python", "TypeScript"):
        page.get_by_role("tab", name=language).click()
        expect(page.get_by_role("tabpanel")).to_contain_text(site.base_model)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Copy link").click()
    link: str = page.evaluate("navigator.clipboard.readText()")
    page.goto("/keys")
    page.goto(link)
    expect(page.get_by_role("combobox", name="Model of column 4")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("hello")
    expect(page.get_by_role("switch", name="Show token probabilities")).to_be_checked()


# --- webhooks -----------------------------------------------------------------------------------------------------


def test_a_webhook_is_added_tested_rotated_and_deleted(page: Page, site: Site) -> None:
    url = f"https://{unique('hook')}.example.com/veneer"
    sign_in(page, site.acme, "/webhooks")
    page.get_by_role("button", name="Add a webhook").click()
    page.get_by_label("Address").fill(url)
    page.get_by_role("dialog").get_by_role("button", name="Add the webhook").click()
    first = page.get_by_text(re.compile(r"^whsec_")).inner_text()
    page.get_by_role("button", name="I have stored it").click()
    card = page.get_by_role("article", name=f"Webhook {url}")
    expect(card.get_by_text("Everything")).to_be_visible()
    assert first not in page.content()
    card.get_by_role("button", name=f"Actions for {url}").click()
    page.get_by_role("menuitem", name="Send a test").click()
    card.get_by_role("button", name="Deliveries").click()
    expect(card.get_by_role("button", name=re.compile("A test"))).to_be_visible()
    card.get_by_role("button", name=f"Actions for {url}").click()
    page.get_by_role("menuitem", name="Rotate the secret").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate the secret").click()
    assert page.get_by_text(re.compile(r"^whsec_")).inner_text() != first
    page.get_by_role("button", name="I have stored it").click()
    card.get_by_role("button", name=f"Actions for {url}").click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete the webhook").click()
    expect(card).to_have_count(0)


# --- when things go wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status, message", [(402, "The budget is used up."), (429, "Too many requests."), (500, "Something broke.")]
)
def test_what_the_api_refuses_is_told_and_tried_again(page: Page, site: Site, status: int, message: str) -> None:
    sign_in(page, site.acme)
    body = json.dumps({"error": {"message": message, "type": "x", "param": None, "code": None}})

    def refuse(route: Route) -> None:
        route.fulfill(status=status, content_type="application/json", body=body)

    page.route("**/api/v1/keys?*", refuse)
    page.route("**/api/v1/keys", refuse)
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("alert")).to_contain_text(message)
    page.unroute("**/api/v1/keys?*")
    page.unroute("**/api/v1/keys")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_session_that_ended_elsewhere_asks_to_sign_in_and_keeps_the_address(page: Page, site: Site) -> None:
    sign_in(page, site.acme, "/usage?by=key&tz=UTC")
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
    page.context.clear_cookies()
    with contextlib.suppress(Error):  # an event may have made the page ask, and be told, before this does
        page.get_by_role("link", name="Audit", exact=True).click(timeout=5000)
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/usage\?by=key|/audit"))


def test_a_key_that_is_refused_is_no_page(site: Site) -> None:
    assert httpx.get(f"{site.url}/api/v1/usage/generations").status_code in {401, 403}
