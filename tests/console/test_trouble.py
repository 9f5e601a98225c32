"""What a person keeps when things go wrong: the server dies, the line breaks, the session ends, the network is slow."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.console.conftest import new_page, sign_in, watched
from tests.console.site import Person, Site
from tests.console.test_console import ask, card_of, choose, issue_key, unique, write_folder
from tests.controlplane.adapters.peft_folder import peft_folder

pytestmark = pytest.mark.browser
WEIGHTS = "**/files/adapter_model.safetensors*"


def begin_upload(page: Page, site: Site, folder: Path) -> None:
    sign_in(page, site.acme)
    choose(page, folder)
    page.get_by_role("button", name="Upload", exact=True).click()


def test_an_upload_outlives_the_server(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("outlives")

    def die(route: Route) -> None:
        site.web.kill()
        route.continue_()

    page.route(WEIGHTS, die, times=1)
    begin_upload(page, site, write_folder(tmp_path, name, peft_folder(seed=41)))
    try:
        expect(page.get_by_role("alert", name=f"The upload of {name}")).to_contain_text("stopped")
        expect(page.get_by_text("polling", exact=True)).to_be_visible()
    finally:
        site.web.start()
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(card_of(page, name).get_by_text("serves v1")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def test_an_upload_goes_on_by_itself_when_the_line_is_back(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("reconnects")
    broken: list[str] = []

    def cut(route: Route) -> None:
        page.context.set_offline(True)
        route.abort("internetdisconnected")
        broken.append(route.request.url)

    page.route(WEIGHTS, cut, times=1)
    page.on("requestfailed", lambda request: page.context.set_offline(False) if "?offset" in request.url else None)
    begin_upload(page, site, write_folder(tmp_path, name, peft_folder(seed=42)))
    expect(card_of(page, name).get_by_text("serves v1")).to_be_visible()
    assert len(broken) == 1
    expect(page.get_by_role("button", name="Resume", exact=True)).to_have_count(0)


# --- sessions -----------------------------------------------------------------------------------------------------


def sign_in_again(page: Page, person: Person) -> None:
    over = page.get_by_role("dialog", name="Sign in to Veneer")
    expect(over).to_contain_text("What you were at is still here")
    expect(over.get_by_label("E-mail")).to_have_value(person.email)
    over.get_by_label("Password", exact=True).fill(person.password)
    over.get_by_role("button", name="Sign in", exact=True).click()
    expect(over).to_have_count(0)


def test_a_session_that_ends_in_mid_form_loses_nothing(page: Page, site: Site) -> None:
    name = unique("mid-form")
    sign_in(page, site.acme, "/keys")
    page.get_by_role("button", name="Issue a key").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("checkbox", name="usage:read").click()
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name="Issue the key").click()
    sign_in_again(page, site.acme)
    expect(page.get_by_text(re.compile(r"^vnr_\w+_[\w-]{20,}$"))).to_be_visible()
    page.get_by_role("button", name="I have stored it").click()
    row = page.get_by_role("row", name=name)
    expect(row).to_have_count(1)
    expect(row).to_contain_text("usage:read")


def test_somebody_else_sees_nothing_of_the_pages_before(page: Page, site: Site) -> None:
    name = unique("private")
    sign_in(page, site.acme, "/keys")
    issue_key(page, name)
    page.get_by_role("button", name="I have stored it").click()
    expect(page.get_by_role("row", name=name)).to_be_visible()
    page.context.clear_cookies(name="sessionid")
    page.reload()
    expect(page.get_by_text(name)).to_have_count(0)
    page.get_by_label("E-mail").fill(site.acme.email)
    page.get_by_label("Password", exact=True).fill(site.acme.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("row", name=name)).to_be_visible()
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("link", name="Limits").click()
    over = page.get_by_role("dialog", name="Sign in to Veneer")
    over.get_by_label("E-mail").fill(site.globex.email)
    over.get_by_label("Password", exact=True).fill(site.globex.password)
    over.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_text("Globex", exact=True).first).to_be_visible()
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("heading", name="API keys", level=1)).to_be_visible()
    expect(page.get_by_text(name)).to_have_count(0)


def test_two_tabs_show_the_same(page: Page, site: Site) -> None:
    name = unique("tabs")
    sign_in(page, site.acme, "/keys")
    other = page.context.new_page()
    other.goto("/keys")
    expect(other.get_by_text("live", exact=True)).to_be_visible()
    issue_key(page, name)
    page.get_by_role("button", name="I have stored it").click()
    expect(other.get_by_role("row", name=name)).to_be_visible()
    other.get_by_role("button", name=f"Actions for {name}").click()
    other.get_by_role("menuitem", name="Revoke").click()
    other.get_by_role("button", name="Revoke the key").click()
    expect(page.get_by_role("row", name=name).get_by_text("revoked", exact=True)).to_be_visible()
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()
    other.get_by_role("link", name="Limits").click()
    expect(other.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()


# --- refusals and waits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [402, 429, 500])
def test_the_playground_says_why_the_door_refuses(page: Page, site: Site, status: int) -> None:
    message = f"Refused with {status}."
    body = json.dumps({"error": {"message": message, "type": "x", "param": None, "code": None}})
    sign_in(page, site.globex, "/playground")
    page.route(
        "**/v1/chat/completions", lambda route: route.fulfill(status=status, content_type="application/json", body=body)
    )
    ask(page, "hello")
    expect(page.get_by_role("alert").first).to_contain_text(message)
    page.unroute("**/v1/chat/completions")
    ask(page, "again")
    expect(page.get_by_test_id("answer").last).not_to_be_empty()


def test_a_slow_network_shows_that_it_loads_and_sends_once(page: Page, site: Site) -> None:
    name = unique("slow")
    sign_in(page, site.acme, "/limits")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 400, "downloadThroughput": 200_000, "uploadThroughput": 50_000}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", slow)
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("status", name="Loading").first).to_be_visible()
    page.get_by_role("button", name="Issue a key").click()
    page.get_by_label("Name", exact=True).fill(name)
    button = page.get_by_role("button", name="Issue the key")
    button.dblclick()
    expect(page.get_by_text(re.compile(r"^vnr_\w+_[\w-]{20,}$"))).to_be_visible()
    assert len([url for url in sent if url.endswith("/api/v1/keys")]) == 1


# --- as the viewer writes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("locale", "zone", "amount", "time"),
    [
        ("de-DE", "Europe/Berlin", r"\d,\d+\s\$", r"\d{1,2}\. \w+\.? 20\d\d.*\d\d:\d\d (MEZ|MESZ)"),
        ("en-US", "America/New_York", r"\$\d\.\d+", r"[A-Z][a-z]+ \d{1,2}, 20\d\d.*\d:\d\d [AP]M E[SD]T"),
    ],
)
def test_numbers_and_times_are_the_viewers(
    browser: Browser, site: Site, locale: str, zone: str, amount: str, time: str
) -> None:
    with watched(new_page(browser, site.url, locale=locale, zone=zone)) as page:
        sign_in(page, site.acme, "/home")
        spend = page.get_by_role("region", name="Spend", exact=True)
        expect(spend).to_contain_text(re.compile(amount))
        page.goto("/security")
        expect(page.get_by_role("cell").filter(has_text=re.compile(time)).first).to_be_visible()
