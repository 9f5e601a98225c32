"""The pictures of docs/console.md, of a stack that is up and has been told the story (`make up`, `make story`):

    PYTHONPATH=.:platform .venv/bin/python -m tests.console.pictures [where else to put them] [--all-looks]

--all-looks: each page also in the dark and as wide as a phone.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from playwright.sync_api import Browser, Page, expect, sync_playwright

from controlplane.embedded.credentials import OPERATOR_EMAIL, Credentials
from controlplane.embedded.home import Home
from tests.console.conftest import FLAGS, find_chromium, new_page, sign_in
from tests.console.site import Person

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images" / "console"
OWNERS = {"northwind": "maya", "lexicon": "clara"}
TENANTS_PAGES = (
    "home", "adapters", "keys", "usage", "batches", "limits", "playground", "billing", "webhooks", "members", "audit",
    "settings", "security",
)  # fmt: skip
OPERATORS_PAGES = (
    "fleet", "health", "alerts", "jobs", "tenants", "people", "margin", "discrepancies", "models", "capacity",
    "audit-all",
)  # fmt: skip
LOOKS = {"": ("light", 1280), "-dark": ("dark", 1280), "-phone": ("light", 390)}


def open_versions(page: Page) -> None:
    page.get_by_role("article", name="Adapter support-bot").get_by_role("button", name=re.compile("versions?$")).click()


def ask_two(page: Page) -> None:
    page.get_by_label("Message").fill("My parcel is late. What can I do?")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile("^cost ")).nth(1)).to_be_visible(timeout=120_000)


def open_evaluation(page: Page) -> None:
    page.get_by_role("link", name="Evaluations").first.click()
    page.wait_for_url("**/evaluations*")
    page.get_by_role("table").get_by_role("button").first.click()
    expect(page.get_by_role("article").first).to_be_visible()


def show_refused(page: Page) -> None:
    page.get_by_text(re.compile(r"was refused: \d+ problem")).first.scroll_into_view_if_needed()


BEFORE: dict[str, Callable[[Page], None]] = {
    "adapters": open_versions,
    "playground": ask_two,
    "evaluations": open_evaluation,
    "adapters-rejected": show_refused,
}


def take(page: Page, folder: Path, name: str, look: str) -> None:
    page.goto(f"/{'adapters' if name in ('evaluations', 'adapters-rejected') else name}")
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    if prepare := BEFORE.get(name):
        prepare(page)
    page.wait_for_timeout(700)  # charts draw themselves in
    page.screenshot(path=folder / f"{name}{look}.png")


def take_all(browser: Browser, url: str, folder: Path, person: Person, names: list[str], looks: list[str]) -> None:
    for look in looks:
        scheme, width = LOOKS[look]
        page = new_page(browser, url, scheme=scheme, width=width, locale="en-GB")
        sign_in(page, person, "/security")
        for name in names:
            take(page, folder, name, look)
        page.context.close()


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    credentials = Credentials(Home(settings.HOME).secrets)
    places = [argument for argument in arguments if not argument.startswith("--")]
    folder = Path(places[0]) if places else IMAGES
    looks = list(LOOKS) if "--all-looks" in arguments else [""]
    people = {
        slug: Person(f"{name}@{slug}.example", credentials.password(f"{slug}_password"))
        for slug, name in OWNERS.items()
    }
    operator = Person(OPERATOR_EMAIL, credentials.password("operator_password"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        take_all(browser, settings.CONSOLE_URL, folder, people["northwind"], [*TENANTS_PAGES, "evaluations"], looks)
        take_all(browser, settings.CONSOLE_URL, folder, people["lexicon"], ["adapters-rejected"], looks)
        take_all(browser, settings.CONSOLE_URL, folder, operator, [*OPERATORS_PAGES], looks)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
