"""Every page, light and dark, wide and narrow: no serious accessibility fault, nothing wider than the screen."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import new_page, sign_in
from tests.console.site import Site

pytestmark = pytest.mark.browser
# Pictures of every page, for people to look at.
PICTURES = Path(__file__).resolve().parents[2] / "artefacts" / "console"
PAGES = {
    "/home": "Home",
    "/adapters": "Adapters",
    "/keys": "API keys",
    "/usage": "Usage",
    "/batches": "Batches",
    "/limits": "Limits",
    "/playground": "Playground",
    "/billing": "Billing",
    "/webhooks": "Webhooks",
    "/members": "Members",
    "/audit": "Audit",
    "/settings": "Settings",
    "/security": "Security",
}
OPERATOR_PAGES = {
    "/fleet": "Fleet",
    "/health": "Health",
    "/alerts": "Alerts",
    "/jobs": "Jobs",
    "/jobs?show=adapters": "Jobs",
    "/jobs?show=batches": "Jobs",
    "/people": "People",
    "/margin": "Margin",
    "/discrepancies": "Discrepancies",
    "/models": "Base models",
    "/capacity": "Capacity",
    "/audit-all": "Audit of all",
    "/tenants": "Tenants",
}


# Sideways: 0 is the left end, 1 the right one.
SCROLLED = "(table, part) => table.parentElement.parentElement.scrollTo(part * table.scrollWidth, 0)"


# Sideways: 0 is the left end, 1 the right one.
SCROLLED = "(table, part) => table.parentElement.parentElement.scrollTo(part * table.scrollWidth, 0)"


def serious_faults(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {node['html']}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def look_at(page: Page) -> None:
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    assert serious_faults(page) == []
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def keep_pictures(page: Page, path: str) -> None:
    """A wide page in both schemes, a narrow one as it is."""
    is_wide = page.viewport_size is not None and page.viewport_size["width"] > 600
    name = path.strip("/").replace("?", "-").replace("=", "-")
    for scheme in ("dark", "light") if is_wide else ("phone",):
        if is_wide:
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
        page.wait_for_timeout(300)  # colours fade into each other
        page.screenshot(path=PICTURES / f"{name}-{scheme}.png", full_page=True)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_is_accessible_and_fits(browser: Browser, site: Site, scheme: str, width: int) -> None:
    page = new_page(browser, site.url, scheme=scheme, width=width)
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()
    look_at(page)
    sign_in(page, site.acme)
    for path, name in PAGES.items():
        page.goto(path)
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        assert page.title() == f"{name} · Veneer"
        look_at(page)
        keep_pictures(page, path)
    page.context.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_of_operators_is_accessible_and_fits(browser: Browser, site: Site, scheme: str, width: int) -> None:
    page = new_page(browser, site.url, scheme=scheme, width=width)
    sign_in(page, site.operator, "/")
    for path, name in OPERATOR_PAGES.items():
        page.goto(path)
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        look_at(page)
        keep_pictures(page, path)
    page.context.close()


def test_a_phone_keeps_names_and_deeds_in_sight(browser: Browser, site: Site) -> None:
    page = new_page(browser, site.url, width=390)
    sign_in(page, site.operator, "/people")
    expect(page.get_by_role("columnheader", name="Person")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Since")).to_be_hidden()
    deed = page.get_by_role("button", name=f"Shut out {site.acme.email}")
    deed.scroll_into_view_if_needed()
    for part in (0, 1):
        page.get_by_role("table").evaluate(SCROLLED, part)
        expect(page.get_by_text(site.acme.email, exact=True)).to_be_in_viewport(ratio=0.95)
        expect(deed).to_be_in_viewport(ratio=0.95)
    page.goto("/audit-all")
    expect(page.get_by_role("columnheader", name="With")).to_be_visible()
    expect(page.get_by_role("columnheader", name="To what")).to_be_hidden()
    page.get_by_role("table").evaluate(SCROLLED, 1)
    expect(page.get_by_role("columnheader", name="With")).to_be_in_viewport(ratio=0.95)
    expect(page.get_by_role("columnheader", name="When")).to_be_in_viewport(ratio=0.95)
    page.context.close()


def test_the_operators_dialogues_are_accessible(browser: Browser, site: Site) -> None:
    page = new_page(browser, site.url)
    sign_in(page, site.operator, "/tenants")
    for button in ("New tenant", "Set a price", "Limits of Acme", "Give credit to Acme"):
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        look_at(page)
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.context.close()


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
def test_the_billing_of_a_tenant_is_accessible_and_fits(browser: Browser, site: Site, scheme: str, width: int) -> None:
    page = new_page(browser, site.url, scheme=scheme, width=width)
    sign_in(page, site.operator, "/tenants")
    page.get_by_role("link", name="Billing of Acme").click()
    expect(page.get_by_role("heading", name="Billing of Acme", level=1)).to_be_visible()
    look_at(page)
    keep_pictures(page, "/tenants-billing")
    for button, title in (("Agree anew", "Agree anew with Acme"), ("Change", "How Acme is billed")):
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog", name=title)).to_be_visible()
        look_at(page)
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    page.context.close()


def test_the_scheme_is_chosen_and_kept(page: Page, site: Site) -> None:
    sign_in(page, site.acme)
    page.get_by_role("button", name="Colour scheme").click()
    page.get_by_role("menuitem", name="Dark").click()
    root = page.locator("html")
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-mantine-color-scheme", "dark")


def test_an_unknown_address_says_so(page: Page, site: Site) -> None:
    sign_in(page, site.acme, "/nowhere")
    expect(page.get_by_text("No such page")).to_be_visible()
    page.get_by_role("link", name="To the first page", exact=True).click()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
