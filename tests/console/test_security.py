"""Two-factor sign-in, passkeys and acting for a tenant, in a real browser."""

import re
import secrets
import time

import httpx
import pyotp
import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import sign_in
from tests.console.site import Person, Site
from tests.console.test_looks import look_at

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"


def new_owner(site: Site) -> tuple[Person, str]:
    """Somebody whose account no other test uses, and the name of their tenant."""
    slug = f"sec-{secrets.token_hex(3)}"
    with httpx.Client(base_url=f"{site.url}/api/v1") as operator:
        operator.get("/session")

        def post(path: str, body: dict[str, str]) -> None:
            headers = {"X-CSRFToken": operator.cookies["csrftoken"]}
            operator.post(path, json=body, headers=headers).raise_for_status()

        post("/session", {"email": site.operator.email, "password": site.operator.password})
        person = Person(f"owner@{slug}.example", PASSWORD)
        post("/operator/tenants", {
            "slug": slug, "name": slug.upper(), "admin_email": person.email, "admin_password": person.password,
        })  # fmt: skip
    return person, slug.upper()


def sign_out(page: Page) -> None:
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()


def give_password(page: Page, person: Person) -> None:
    page.get_by_label("E-mail").fill(person.email)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in").click()


def test_a_second_factor_is_set_up_and_then_asked_for(page: Page, site: Site) -> None:
    person, _ = new_owner(site)
    sign_in(page, person, "/security")
    page.get_by_role("button", name="Set up").click()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("img", name="QR code of the secret")).to_be_visible()
    look_at(page)
    secret = page.get_by_text(re.compile(r"^[A-Z2-7]{32}$")).inner_text()
    app = pyotp.TOTP(secret)
    used = int(time.time())
    page.get_by_label("The code that it shows").fill(app.at(used))
    page.get_by_role("button", name="Turn on").click()
    codes = page.get_by_label("Recovery codes", exact=True).inner_text().split()
    assert len(codes) == 10
    look_at(page)
    page.get_by_role("button", name="I have kept them").click()
    expect(page.get_by_text("10 left")).to_be_visible()
    sign_out(page)
    give_password(page, person)
    page.get_by_label("Code", exact=True).fill(app.at(used))
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_have_text("The code is wrong, or was used already.")
    look_at(page)
    page.get_by_label("Code", exact=True).fill(app.at(used + 30))
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()
    sign_out(page)
    give_password(page, person)
    page.get_by_label("Code", exact=True).fill(codes[0])
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()
    page.goto("/security")
    expect(page.get_by_text("9 left")).to_be_visible()
    expect(page.get_by_text("this one")).to_be_visible()


def test_a_passkey_of_the_browser_signs_in(page: Page, site: Site) -> None:
    person, _ = new_owner(site)
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    device = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    devtools.send("WebAuthn.addVirtualAuthenticator", {"options": device})
    by_name = site.url.replace("127.0.0.1", "localhost")  # passkeys belong to a host name
    sign_in(page, person, f"{by_name}/security")
    page.get_by_role("button", name="Add a passkey").click()
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Ask my device").click()
    page.get_by_role("button", name="I have kept them").click()
    expect(page.get_by_text("laptop: added")).to_be_visible()
    look_at(page)
    sign_out(page)
    give_password(page, person)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()


def test_an_operator_acts_for_a_tenant_in_plain_sight(page: Page, site: Site) -> None:
    _, tenant = new_owner(site)
    sign_in(page, site.operator, "/tenants")
    page.get_by_role("button", name=f"Act for {tenant}").click()
    page.get_by_label("Reason").fill("ticket 4711")
    page.get_by_role("button", name="Start").click()
    banner = page.get_by_role("status").filter(has_text=f"You act for {tenant} until")
    expect(banner).to_contain_text("ticket 4711")
    page.goto("/audit")
    expect(banner).to_be_visible()
    expect(page.get_by_text("began to act for the tenant")).to_be_visible()
    expect(page.get_by_role("link", name="API keys")).to_have_count(0)
    look_at(page)
    banner.get_by_role("button", name="End").click()
    expect(page.get_by_role("heading", name="Tenants", level=1)).to_be_visible()
    expect(banner).to_have_count(0)
