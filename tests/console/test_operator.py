"""What an operator does with the engines and looks at, in a real browser against the real console process."""

import re

import httpx
import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.console.conftest import sign_in
from tests.console.site import Site

pytestmark = pytest.mark.browser
PAGES = ("/fleet", "/health", "/alerts", "/jobs", "/margin", "/models", "/capacity", "/audit-all")


@pytest.fixture
def fleet(page: Page, site: Site) -> Page:
    sign_in(page, site.operator, "/fleet")
    expect(page.get_by_text("serving", exact=True)).to_be_visible()
    return page


def test_the_fleet_is_live(fleet: Page, site: Site) -> None:
    expect(fleet.get_by_text("live", exact=True)).to_be_visible()
    expect(fleet.get_by_text("Nobody's requests run or wait.")).to_be_visible()
    site.engine.waiting = {"ten_of_nobody": 7}
    try:
        expect(fleet.get_by_role("row", name="ten_of_nobody 0 7")).to_be_visible()
    finally:
        site.engine.waiting = {}
    expect(fleet.get_by_text("Nobody's requests run or wait.")).to_be_visible()


def test_a_socket_that_drops_comes_back_and_goes_on(page: Page, site: Site) -> None:
    opened: list[WebSocketRoute] = []

    def pass_on(route: WebSocketRoute) -> None:
        route.connect_to_server()
        opened.append(route)

    page.route_web_socket(re.compile("/ws/events"), pass_on)
    sign_in(page, site.operator, "/fleet")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    opened[-1].close()
    expect(page.get_by_text("polling", exact=True)).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert len(opened) > 1
    site.engine.waiting = {"ten_after_the_drop": 2}
    try:
        expect(page.get_by_role("row", name="ten_after_the_drop 0 2")).to_be_visible()
    finally:
        site.engine.waiting = {}


def test_an_engine_is_drained_and_resumed(fleet: Page, site: Site) -> None:
    fleet.get_by_role("button", name="Drain").click()
    dialog = fleet.get_by_role("dialog")
    expect(dialog).to_contain_text("New requests get 503 from now on")
    dialog.get_by_role("button", name="Cancel").click()
    assert not site.engine.is_draining
    fleet.get_by_role("button", name="Drain").click()
    fleet.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(fleet.get_by_text("draining", exact=True)).to_be_visible()
    assert site.engine.is_draining
    fleet.goto("/health")
    expect(fleet.get_by_role("row", name=re.compile("Engine degraded"))).to_be_visible()
    fleet.goto("/fleet")
    fleet.get_by_role("button", name="Resume").click()
    expect(fleet.get_by_text("serving", exact=True)).to_be_visible()
    assert not site.engine.is_draining
    expect(fleet.get_by_role("button", name="Restart")).to_have_count(0)  # this engine is not the stack's
    fleet.goto("/audit-all?action=engine.")
    expect(fleet.get_by_text("drained an engine").first).to_be_visible()


def test_what_is_asked_of_capacity_stays_in_the_address(page: Page, site: Site) -> None:
    sign_in(page, site.operator, "/capacity?model=llama-3.1-8b&device=h100&kv=bf16&slots=0&reserve=0")
    expect(page.get_by_text("119", exact=True).first).to_be_visible()
    page.get_by_label("Tokens of a sequence").fill("8192")
    expect(page).to_have_url(re.compile("context=8192"))
    page.reload()
    expect(page.get_by_text("59", exact=True).first).to_be_visible()


def test_tenants_are_found_and_the_filter_is_kept(page: Page, site: Site) -> None:
    sign_in(page, site.operator, "/tenants")
    page.get_by_label("A tenant's name").fill("glob")
    expect(page.get_by_role("cell", name="Acme", exact=True)).to_have_count(0)
    expect(page).to_have_url(re.compile("search=glob"))
    page.reload()
    expect(page.get_by_role("cell", name="Globex", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="Acme", exact=True)).to_have_count(0)


def test_an_owner_of_a_tenant_sees_none_of_it(page: Page, site: Site) -> None:
    sign_in(page, site.acme)
    for path in PAGES:
        page.goto(path)
        expect(page.get_by_text("No such page")).to_be_visible()
    expect(page.get_by_role("link", name="Fleet")).to_have_count(0)
    cookies = {cookie["name"]: cookie["value"] for cookie in page.context.cookies()}
    assert httpx.get(f"{site.url}/api/v1/operator/fleet", cookies=cookies).status_code == 403
