"""A tenant's identity provider in a real browser: set up, connected, and come in through."""

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import sign_in
from tests.console.site import Site
from tests.console.test_looks import look_at
from tests.console.test_security import PASSWORD, new_owner, sign_out
from tests.controlplane.oidc_provider import CLIENT_ID, CLIENT_SECRET, Provider

pytestmark = pytest.mark.browser


def test_an_owner_sets_it_up_connects_and_comes_in_that_way(page: Page, site: Site) -> None:
    person, name = new_owner(site)
    with Provider(person={"sub": "u-1", "email": person.email}) as provider:
        sign_in(page, person, "/settings")
        page.get_by_label("Issuer").fill(provider.issuer)
        page.get_by_label("Client id").fill(CLIENT_ID)
        page.get_by_label("Client secret", exact=True).fill(CLIENT_SECRET)
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Single sign-on is saved.")).to_be_visible()
        page.get_by_label("Domain", exact=True).fill(person.email.partition("@")[2])
        page.get_by_role("button", name="Add domain").click()
        expect(page.get_by_text("not confirmed")).to_be_visible()
        look_at(page)

        page.goto("/security")
        page.get_by_role("button", name=f"Connect {name}").click()
        page.get_by_label("Your password").fill(PASSWORD)
        page.get_by_role("button", name="Go there").click()
        expect(page.get_by_role("button", name=f"Disconnect {name}")).to_be_visible()
        look_at(page)

        sign_out(page)
        page.goto(f"/?tenant={name.lower()}")
        look_at(page)
        page.get_by_role("button", name="Go to my company").click()
        expect(page.get_by_role("button", name="Your account")).to_be_visible()
        page.goto("/security")
        expect(page.get_by_text("You came in through your company")).to_be_visible()
        expect(page.get_by_role("heading", name="Password")).to_have_count(0)
        look_at(page)


def test_somebody_whom_it_does_not_vouch_for_is_told_why(page: Page, site: Site) -> None:
    page.goto("/sign-in/company?error=access_denied")
    expect(page.get_by_role("alert")).to_contain_text("access_denied")
    look_at(page)
    page.goto("/sign-in/company?code=made-up&state=made-up")
    expect(page.get_by_role("alert")).to_contain_text("Begin again")
