"""A real Chromium in front of a real console."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.console.site import Person, Site, running_site

expect.set_options(timeout=20_000)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
# A failed request, and a socket whose server a test has taken away.
PROVOKED = ("Failed to load resource", "WebSocket connection to")
INDEX = Path(__file__).resolve().parents[2] / "frontend" / "dist" / "index.html"


def find_chromium() -> str | None:
    return os.environ.get("VENEER_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


# A module's and not the session's: Playwright keeps an event loop running, and asynchronous tests want their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        report = pytest.fail if os.environ.get("CI") else pytest.skip
        report("NO BROWSER: the console is NOT tested. Install chromium, or name one in VENEER_CHROMIUM.")
    if not INDEX.exists():
        pytest.fail("the console is not built: run `npm run build` in frontend/ (`make test` does)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("console")) as site:
        yield site


def new_page(
    browser: Browser,
    url: str,
    *,
    scheme: str = "light",
    width: int = 1280,
    height: int = 800,
    locale: str = "en-US",
    zone: str = "UTC",
) -> Page:
    context = browser.new_context(
        base_url=url,
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        locale=locale,
        timezone_id=zone,
        permissions=["clipboard-read", "clipboard-write"],
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    return page


@contextlib.contextmanager
def watched(page: Page) -> Iterator[Page]:
    """What the console logs as an error fails the test, unless the test asked for it. Closes the profile."""
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.context.close()
    # A refusal that a test provokes shows as a failed request; everything else is a fault of the page.
    assert [error for error in errors if not error.startswith(PROVOKED)] == []


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A fresh browser profile."""
    with watched(new_page(browser, site.url)) as page:
        yield page


def sign_in(page: Page, person: Person, path: str = "/adapters") -> None:
    page.goto(path)
    page.get_by_label("E-mail").fill(person.email)
    page.get_by_label("Password", exact=True).fill(person.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Your account")).to_be_visible()
