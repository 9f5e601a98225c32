"""Batches and evaluations: begun, watched, and read, in a real browser; their pages look as all others do."""

import json
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.console.conftest import new_page, sign_in
from tests.console.site import Site
from tests.console.test_console import card_of, issue_key, unique, upload, write_folder
from tests.console.test_looks import look_at
from tests.controlplane.adapters.peft_folder import peft_folder

pytestmark = pytest.mark.browser


def start_batch(site: Site, key: str, lines: list[dict[str, object]]) -> str:
    """The new batch's id, as a program makes one."""
    headers = {"Authorization": f"Bearer {key}"}
    content = "\n".join(json.dumps(line) for line in lines).encode()
    files = {"file": ("lines.jsonl", content)}
    file = httpx.post(f"{site.url}/v1/files", data={"purpose": "batch"}, files=files, headers=headers).json()
    asked = {"input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    answer = httpx.post(f"{site.url}/v1/batches", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    batch_id: str = answer.json()["id"]
    return batch_id


def line_of(site: Site, name: str) -> dict[str, object]:
    body = {"model": site.base_model, "max_tokens": 4, "messages": [{"role": "user", "content": name}]}
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}


def open_batch(page: Page, batch_id: str) -> Locator:
    page.get_by_role("button", name=batch_id).click()
    dialog = page.get_by_role("dialog", name="Batch")
    expect(dialog.get_by_text("Prompt tokens")).to_be_visible()
    return dialog


def test_a_batch_is_watched_to_its_end_and_a_bad_one_names_its_lines(page: Page, site: Site) -> None:
    sign_in(page, site.globex)
    key_name = unique("nightly")
    key = issue_key(page, key_name)
    page.get_by_role("button", name="I have stored it").click()
    good = start_batch(site, key, [line_of(site, "a"), line_of(site, "b")])
    bad = start_batch(site, key, [line_of(site, "a"), line_of(site, "a")])
    page.get_by_role("link", name="Batches").click()
    row = page.get_by_role("row").filter(has_text=good)
    expect(row).to_contain_text("completed")
    expect(row).to_contain_text("2 of 2")
    expect(row).to_contain_text(key_name)
    look_at(page)
    dialog = open_batch(page, good)
    expect(dialog.get_by_role("button", name="Cancel the batch")).to_have_count(0)
    look_at(page)
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Status").click()
    page.get_by_role("option", name="failed").click()
    expect(page.get_by_role("row").filter(has_text=good)).to_have_count(0)
    faults = open_batch(page, bad).get_by_role("table")
    expect(faults.get_by_role("row").nth(1)).to_contain_text("custom_id")
    page.reload()
    expect(page.get_by_role("dialog", name="Batch").get_by_text("What is wrong")).to_be_visible()


def test_two_sides_are_compared_answer_by_answer(browser: Browser, page: Page, site: Site, tmp_path: Path) -> None:
    sign_in(page, site.acme)
    name = unique("judged")
    card = upload(page, write_folder(tmp_path, name, peft_folder(seed=77)))
    expect(card.get_by_text("serves v1")).to_be_visible()
    card_of(page, name).get_by_role("link", name="Evaluations").click()
    expect(page.get_by_text("No evaluations yet")).to_be_visible()
    page.get_by_role("button", name="New prompt set").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("smoke")
    dialog.get_by_text("JSON", exact=True).click()
    prompts = [{"prompt": "one"}, {"prompt": "two", "contains": "what no answer has in it"}]
    dialog.get_by_label("Prompts", exact=True).fill(json.dumps([*prompts, {"prompt": "three", "contain": "x"}]))
    dialog.get_by_role("button", name="Keep the set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("contain")
    look_at(page)
    dialog.get_by_label("Prompts", exact=True).fill(json.dumps(prompts))
    dialog.get_by_role("button", name="Keep the set").click()
    expect(dialog).to_have_count(0)
    look_at(page)
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("done", exact=True)).to_be_visible()
    second = page.get_by_role("article", name="Prompt 2")
    expect(second.get_by_text("not passed: contains")).to_have_count(2)
    expect(page.get_by_text("version 1: 0 of 1 passed")).to_be_visible()
    look_at(page)
    narrow = new_page(browser, site.url, scheme="dark", width=390)
    sign_in(narrow, site.acme, page.url.removeprefix(site.url))
    expect(narrow.get_by_role("article", name="Prompt 2")).to_be_visible()
    look_at(narrow)
    narrow.context.close()
    page.get_by_role("button", name="All evaluations").click()
    expect(page.get_by_role("row").filter(has_text="smoke")).to_contain_text("2 of 2")
    look_at(page)
