"""How much a browser loads before the first page shows, and how much of a long list it holds."""

import gzip
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import INDEX, sign_in
from tests.console.site import Site

pytestmark = pytest.mark.browser
MOST_BYTES = 250_000


def weight(paths: set[str]) -> int:
    """Bytes of scripts and style sheets, as they are sent."""
    files = [INDEX.parent / path.lstrip("/") for path in paths if path.endswith((".js", ".css"))]
    return sum(len(gzip.compress(file.read_bytes())) for file in files)


def noting_loads(page: Page) -> set[str]:
    loaded: set[str] = set()
    page.on("response", lambda response: loaded.add(urlsplit(response.url).path))
    return loaded


def test_the_first_load_is_small_outside_and_inside(page: Page, site: Site) -> None:
    outside = noting_loads(page)
    page.goto("/home")
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert 100_000 < weight(outside) < MOST_BYTES
    sign_in(page, site.acme, "/home")
    other = page.context.new_page()
    inside = noting_loads(other)
    other.goto("/home")
    expect(other.get_by_role("region", name="Spend", exact=True)).to_be_visible()
    other.wait_for_load_state("networkidle")
    assert 100_000 < weight(inside) < MOST_BYTES


def test_charts_are_loaded_only_where_one_is_shown(page: Page, site: Site) -> None:
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    sign_in(page, site.acme, "/home")
    expect(page.get_by_role("region", name="Spend", exact=True)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert not [url for url in loaded if "charts" in url]


# --- long lists ---------------------------------------------------------------------------------------------------

ROWS = 10_000
PAGES = {"": (0, 50), "50": (50, 250), "250": (250, ROWS)}


def deed(number: int) -> dict[str, Any]:
    return {
        "id": number, "at": "2026-03-01T10:00:00Z", "tenant_id": "ten_1", "actor": "usr_1",
        "actor_name": "ann@acme.test", "action": "key.issue", "target": f"key_{number}",
        "details": {"name": f"number {number}"},
    }  # fmt: skip


def serve_deeds(route: Route) -> None:
    [cursor] = parse_qs(urlsplit(route.request.url).query).get("cursor", [""])
    first, end = PAGES[cursor]
    body = {"data": [deed(number) for number in range(first, end)], "next": str(end) if end < ROWS else None}
    route.fulfill(content_type="application/json", body=json.dumps(body))


def scroll_to(page: Page, part: float, near: re.Pattern[str]) -> None:
    """Again while it is not there: rows that still come, and their heights, move what is where."""
    for _ in range(40):
        page.evaluate("part => scrollTo(0, part * document.documentElement.scrollHeight)", part)
        page.wait_for_timeout(250)
        if page.get_by_text(near).count():
            return
    expect(page.get_by_text(near).first).to_be_attached()


def test_ten_thousand_rows_scroll(page: Page, site: Site) -> None:
    page.route(re.compile(r"/api/v1/audit(\?|$)"), serve_deeds)
    sign_in(page, site.acme, "/audit")
    rows = page.get_by_role("row")
    expect(page.get_by_text("50 deeds shown")).to_be_visible()
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_text("250 deeds shown")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_text("250 deeds shown")).to_have_count(0)  # nobody asked for these: they came by scrolling
    for part in (0.5, 0.25, 0.0):
        near = re.compile(rf"^name: number {int(part * 10)!s}\d{{3}}$" if part else "^name: number 0$")
        scroll_to(page, part, near)
        assert rows.count() < 500
    last = page.get_by_text(f"name: number {ROWS - 1}", exact=True)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(last).to_be_attached()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(last).to_be_in_viewport()
