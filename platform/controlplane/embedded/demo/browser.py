"""One adapter goes in the way a person does it: the console, in a headless Chromium."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import Error, Page, expect, sync_playwright

from controlplane.embedded.demo.steps import DemoFailed

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT_MS = 60_000.0


def find_browser() -> str:
    """VENEER_CHROMIUM, or the first of the usual names. Raises DemoFailed: without a browser the story has a hole."""
    found = os.environ.get("VENEER_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)
    if not found:
        raise DemoFailed(
            f"NO BROWSER: none of {', '.join(NAMES)} is here, and the demo uploads one adapter through the console. "
            "Install one, for example `apt-get install chromium`, or name it in VENEER_CHROMIUM."
        )
    return found


def upload_in_console(console_url: str, *, email: str, password: str, folder: Path) -> None:
    """Sign in, choose the folder, upload it under its own name, and see it become ready on the page."""
    # Chromium's sandbox refuses to run as root.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=flags)
        try:
            page = browser.new_page(base_url=console_url)
            page.set_default_timeout(WAIT_MS)
            _sign_in(page, email, password)
            _upload(page, folder)
        except (Error, AssertionError) as exc:
            raise DemoFailed(f"the upload over the console did not work: {exc}") from exc
        finally:
            browser.close()


def _sign_in(page: Page, email: str, password: str) -> None:
    page.goto("/adapters")
    page.get_by_label("E-mail").fill(email)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Adapters")).to_be_visible(timeout=WAIT_MS)


def _upload(page: Page, folder: Path) -> None:
    page.goto("/adapters")
    page.locator("input[type=file]").set_input_files(folder)
    page.get_by_role("button", name="Upload", exact=True).click()
    card = page.get_by_role("article", name=f"Adapter {folder.name}")
    expect(card.get_by_text("ready", exact=True).first).to_be_visible(timeout=WAIT_MS)
