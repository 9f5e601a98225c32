"""Each role, as somebody comes to have it: invited, joined, and let into its pages and no others."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import new_page, sign_in, watched
from tests.console.site import Site
from tests.console.test_security import PASSWORD, new_owner

pytestmark = pytest.mark.browser
ALL = {"owner", "admin", "developer", "billing", "viewer"}
ADMINS = {"owner", "admin"}
BUILDERS = ADMINS | {"developer"}
MONEY = ADMINS | {"billing"}
PAGES = {
    "/home": ("Home", ALL),
    "/adapters": ("Adapters", BUILDERS | {"viewer"}),
    "/keys": ("API keys", BUILDERS),
    "/usage": ("Usage", ALL),
    "/batches": ("Batches", ALL),
    "/limits": ("Limits", ALL),
    "/playground": ("Playground", BUILDERS),
    "/billing": ("Billing", MONEY),
    "/webhooks": ("Webhooks", ADMINS),
    "/members": ("Members", ADMINS),
    "/audit": ("Audit", ADMINS),
    "/settings": ("Settings", ADMINS),
}
OPERATORS_PAGES = ("/fleet", "/tenants", "/margin", "/audit-all")


def go(page: Page, path: str) -> None:
    """As a link would, without loading the console anew."""
    page.evaluate("path => { history.pushState({}, '', path); dispatchEvent(new PopStateEvent('popstate')) }", path)


def invite(page: Page, email: str, role: str) -> str:
    """The link that they are to get."""
    page.get_by_role("button", name="Invite somebody").click()
    page.get_by_label("E-mail").fill(email)
    page.get_by_role("combobox", name="Role", exact=True).click()
    page.get_by_role("option", name=role, exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Invite", exact=True).click()
    link = page.get_by_text(re.compile(r"^https?://\S+/join#")).inner_text()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("row").filter(has_text=email)).to_be_visible()
    return link


def join(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_label("Choose a password").fill(PASSWORD)
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()


def assert_opens_just(page: Page, role: str) -> None:
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    assert set(links.all_inner_texts()) == {name for name, roles in PAGES.values() if role in roles}
    for path, (name, roles) in PAGES.items():
        go(page, path)
        if role in roles:
            expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
            expect(page.get_by_role("status", name="Loading")).to_have_count(0)
            expect(page.get_by_role("alert")).to_have_count(0)
        else:
            expect(page.get_by_text("Your role does not open this page")).to_be_visible()
    for path in OPERATORS_PAGES:
        go(page, path)
        expect(page.get_by_text("No such page")).to_be_visible()


def test_every_role_is_invited_joins_and_opens_its_pages(browser: Browser, page: Page, site: Site) -> None:
    owner, tenant = new_owner(site)
    sign_in(page, owner, "/members")
    for role in ("Admin", "Developer", "Billing", "Viewer"):
        link = invite(page, f"{role.lower()}@{tenant.lower()}.example", role)
        with watched(new_page(browser, site.url)) as theirs:
            join(theirs, link)
            assert_opens_just(theirs, role.lower())
    assert_opens_just(page, "owner")


def test_a_role_is_changed_and_a_member_removed(browser: Browser, page: Page, site: Site) -> None:
    owner, tenant = new_owner(site)
    email = f"ann@{tenant.lower()}.example"
    sign_in(page, owner, "/members")
    with watched(new_page(browser, site.url)) as theirs:
        join(theirs, invite(page, email, "Viewer"))
        page.reload()
        page.get_by_role("combobox", name=f"Role of {email}").click()
        page.get_by_role("option", name="Developer").click()
        expect(page.get_by_text(f"{email} is developer now.")).to_be_visible()
        theirs.goto("/keys")
        expect(theirs.get_by_role("button", name="Issue a key")).to_be_visible()
        page.get_by_role("button", name=f"Remove {email}").click()
        expect(page.get_by_role("dialog")).to_contain_text("Keys that they issued stay")
        page.get_by_role("button", name="Remove from the tenant").click()
        expect(page.get_by_text(f"{email} is removed.")).to_be_visible()
        theirs.goto("/keys")
        expect(theirs.get_by_text("You belong to no tenant")).to_be_visible()


def test_an_operator_opens_the_platforms_pages_and_no_tenants(page: Page, site: Site) -> None:
    sign_in(page, site.operator, "/tenants")
    for path in ("/home", "/keys", "/billing"):
        go(page, path)
        expect(page.get_by_text("You belong to no tenant")).to_be_visible()
