"""What a person does in the console, in a real browser against the real console process."""

import json
import re
import secrets
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from engine.protocol import EngineError
from tests.console.conftest import sign_in
from tests.console.site import Site
from tests.controlplane.adapters.peft_folder import PeftFolder, peft_folder
from tests.controlplane.fake_engine import Script

pytestmark = pytest.mark.browser


def write_folder(parent: Path, name: str, content: PeftFolder) -> Path:
    folder = parent / name
    folder.mkdir()
    for file_name, data in content.files.items():
        (folder / file_name).write_bytes(data)
    return folder


def choose(page: Page, folder: Path) -> None:
    page.locator("input[type=file]").set_input_files(folder)


def upload(page: Page, folder: Path) -> Locator:
    """The adapter's card, once the upload is closed."""
    choose(page, folder)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("is uploaded")).to_be_visible()
    return card_of(page, folder.name)


def card_of(page: Page, name: str) -> Locator:
    return page.get_by_role("article", name=f"Adapter {name}", exact=True)


def unique(name: str) -> str:
    return f"{name}-{secrets.token_hex(3)}"


def complete(site: Site, key: str, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 16}
    return httpx.post(f"{site.url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})


# --- signing in ---------------------------------------------------------------------------------------------------


def test_a_wrong_password_is_told_and_the_right_one_opens_the_page_that_was_asked_for(page: Page, site: Site) -> None:
    page.goto("/usage?range=30d")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Enter your password")).to_be_visible()
    page.get_by_label("E-mail").fill(site.acme.email)
    page.get_by_label("Password", exact=True).fill("not it")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("E-mail address or password is wrong.")
    page.get_by_label("Password", exact=True).fill(site.acme.password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/usage\?range=30d$"))


def test_signing_out_ends_the_session(page: Page, site: Site) -> None:
    sign_in(page, site.acme)
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in to Veneer")).to_be_visible()


# --- adapters -----------------------------------------------------------------------------------------------------


def test_a_folder_goes_up_is_checked_and_serves(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("pirate")
    sign_in(page, site.acme)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    card = upload(page, write_folder(tmp_path, name, peft_folder(seed=1)))
    expect(card.get_by_text("ready", exact=True)).to_be_visible()
    expect(card.get_by_text("serves v1 · rank 4")).to_be_visible()
    page.get_by_role("button", name="Upload another").click()
    choose(page, write_folder(tmp_path, unique("second"), peft_folder(seed=2, rank=8)))
    page.get_by_label("Name", exact=True).fill(name)
    expect(page.get_by_text(f"{name} exists: this becomes its next version")).to_be_visible()
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(card.get_by_text("serves v2 · rank 8")).to_be_visible()
    card.get_by_role("button", name="2 versions").click()
    expect(card.get_by_text(f"{name}@1", exact=True)).to_be_visible()


def test_the_old_version_is_served_again_by_one_click(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("rollback")
    sign_in(page, site.acme)
    for rank in (4, 8):
        parent = tmp_path / str(rank)
        parent.mkdir()
        card = upload(page, write_folder(parent, name, peft_folder(seed=rank, rank=rank)))
        expect(card.get_by_text(f"rank {rank}")).to_be_visible()
        page.get_by_role("button", name="Upload another").click()
    card.get_by_role("button", name="2 versions").click()
    card.get_by_role("row", name=f"{name}@1").get_by_role("button", name="Serve").click()
    expect(card.get_by_text("serves v1 · rank 4")).to_be_visible()
    page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    page.get_by_role("menuitem", name="Choose what serves").click()
    page.get_by_text("two versions, by share").click()
    page.get_by_role("button", name="Save").click()
    expect(card.get_by_text("serves v1 90% · v2 10%")).to_be_visible()


def test_a_refused_adapter_says_why(page: Page, site: Site, tmp_path: Path) -> None:
    content = peft_folder()
    lying = json.loads(content.files["adapter_config.json"]) | {"r": 16, "base_model_name_or_path": "gpt2"}
    folder = PeftFolder(content.files | {"adapter_config.json": json.dumps(lying).encode()})
    sign_in(page, site.acme)
    card = upload(page, write_folder(tmp_path, unique("broken"), folder))
    expect(card.get_by_text("Version 1 was refused: 2 problems")).to_be_visible()
    expect(card.get_by_text("adapter_config.json: base_model_name_or_path")).to_be_visible()
    expect(card.get_by_text("rank 16, as configured")).to_be_visible()
    expect(card.get_by_text("serves nothing yet")).to_be_visible()


def test_a_folder_without_an_adapter_is_told_before_anything_is_sent(page: Page, site: Site, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("no adapter here")
    sign_in(page, site.acme)
    choose(page, tmp_path / "notes")
    expect(page.get_by_role("alert")).to_contain_text("There is no adapter_config.json here.")


def test_a_pickle_is_refused_with_the_remedy(page: Page, site: Site, tmp_path: Path) -> None:
    config = peft_folder().files["adapter_config.json"]
    folder = PeftFolder({"adapter_config.json": config, "adapter_model.bin": b"\x80\x04."})
    sign_in(page, site.acme)
    choose(page, write_folder(tmp_path, unique("pickle"), folder))
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("safe_serialization=True")
    expect(page.get_by_role("button", name="Resume", exact=True)).to_have_count(0)


def test_a_broken_upload_resumes_with_what_is_missing(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("resumed")
    sent: list[str] = []
    sign_in(page, site.acme)

    def note(request: Request) -> None:
        if request.method == "PUT":
            sent.append(request.url.rsplit("/", 1)[1])

    def cut(route: Route) -> None:
        route.abort("connectionreset")

    page.route("**/files/adapter_model.safetensors*", cut)
    choose(page, write_folder(tmp_path, name, peft_folder(seed=5)))
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(f"The upload of {name} stopped")
    page.unroute("**/files/adapter_model.safetensors*", cut)
    page.on("request", note)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(card_of(page, name).get_by_text("serves v1")).to_be_visible()
    assert sent == ["adapter_model.safetensors?offset=0"]


def test_an_adapter_is_deleted_after_a_question(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("doomed")
    sign_in(page, site.acme)
    card = upload(page, write_folder(tmp_path, name, peft_folder(seed=6)))
    expect(card.get_by_text("ready", exact=True)).to_be_visible()
    page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Cancel").click()
    expect(card).to_be_visible()
    page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("button", name="Delete the adapter").click()
    expect(card).to_have_count(0)


# --- keys and usage -----------------------------------------------------------------------------------------------


def issue_key(page: Page, name: str) -> str:
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("button", name="Issue a key").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Issue the key").click()
    key: str = page.get_by_text(re.compile(r"^vnr_\w+_[\w-]{20,}$")).inner_text()
    return key


def rotate_key(page: Page, row: Locator, name: str) -> str:
    row.get_by_role("button", name=f"Actions for {name}").click()
    page.get_by_role("menuitem", name="Rotate").click()
    page.get_by_role("button", name="Rotate the key").click()
    raw = page.get_by_text(re.compile(r"vnr_\w{10}_\w{38}")).inner_text()
    page.get_by_role("button", name="I have stored it").click()
    expect(row.get_by_text("the text before works until")).to_be_visible()
    return raw


def test_a_key_is_shown_once_works_is_rotated_and_revoked(page: Page, site: Site) -> None:
    name = unique("program")
    sign_in(page, site.globex)
    key = issue_key(page, name)
    page.get_by_role("button", name="Copy the key").click()
    assert page.evaluate("navigator.clipboard.readText()") == key
    page.get_by_role("button", name="I have stored it").click()
    assert complete(site, key, site.base_model).status_code == 200
    page.reload()
    row = page.get_by_role("row", name=name)
    expect(row.get_by_text(f"…{key[-4:]}")).to_be_visible()
    assert key not in page.content()
    rotated = rotate_key(page, row, name)
    assert [complete(site, raw, site.base_model).status_code for raw in (key, rotated)] == [200, 200]
    row.get_by_role("button", name=f"Actions for {name}").click()
    page.get_by_role("menuitem", name="Revoke").click()
    page.get_by_role("button", name="Revoke the key").click()
    expect(row.get_by_text("revoked", exact=True)).to_be_visible()
    deadline = time.monotonic() + 5
    for raw in (key, rotated):
        while complete(site, raw, site.base_model).status_code != 401:
            assert time.monotonic() < deadline


def test_usage_shows_what_the_books_say(page: Page, site: Site) -> None:
    sign_in(page, site.globex)
    key = issue_key(page, unique("usage"))
    page.get_by_role("button", name="I have stored it").click()
    for _ in range(3):
        assert complete(site, key, site.base_model).status_code == 200
    page.get_by_role("link", name="Usage", exact=True).click()
    spend = page.get_by_role("region", name="Spend", exact=True)
    expect(spend).to_be_visible()
    today = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(time.time() - 7 * 86_400))
    later = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(time.time() + 86_400))
    told = page.request.get(f"/api/v1/usage?from={today}&to={later}&group_by=adapter&tz=UTC").json()
    total: dict[str, Any] = told["total"]
    row = page.get_by_role("row", name="Total")
    cells = row.get_by_role("cell").all_inner_texts()
    counts = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
    assert cells[1:5] == [f"{total[name]:,}" for name in counts]
    row.get_by_role("cell").nth(6).locator("span").hover()
    expect(page.get_by_role("tooltip")).to_have_text("$" + total["amount"].rstrip("0"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
        page.get_by_role("menuitem", name="CSV", exact=True).click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("adapter,adapter_id,requests,")
    assert any(total["amount"] in line for line in lines[1:])


# --- playground ---------------------------------------------------------------------------------------------------


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.keyboard.press("Enter")


def test_the_playground_streams_an_adapter_beside_the_base(page: Page, site: Site, tmp_path: Path) -> None:
    name = unique("talker")
    sign_in(page, site.acme)
    card = upload(page, write_folder(tmp_path, name, peft_folder(seed=7)))
    expect(card.get_by_text("ready", exact=True)).to_be_visible()
    page.get_by_role("link", name="Playground").click()
    page.get_by_role("combobox", name="Model of column 1").click()
    page.get_by_role("option", name=name, exact=True).click()
    site.engine.received.clear()
    site.engine.script = Script(pieces=("Ahoy", ", ", "matey", "!"), delay=0.02, cached=3)
    ask(page, "hello")
    for model in (name, site.base_model):
        lane = page.get_by_role("region", name=f"Conversation with {model}")
        expect(lane.get_by_test_id("answer")).to_have_text("Ahoy, matey!")
        figures = lane.get_by_role("list", name="What this answer took")
        expect(figures.get_by_text("out 4")).to_be_visible()
        expect(figures.get_by_text("cached 3")).to_be_visible()
        expect(figures.get_by_text(re.compile(r"cost \$0\.0000\d+"))).to_be_visible()
    versions = {request.adapter.version if request.adapter else None for request in generated(site)}
    assert len(versions) == 2
    assert None in versions


def generated(site: Site) -> list[Any]:
    return [request for request in site.engine.received if type(request).__name__ == "Generate"]


def test_an_answer_is_stopped_and_an_error_is_told(page: Page, site: Site) -> None:
    sign_in(page, site.globex, "/playground")
    site.engine.script = Script(pieces=("word ",) * 200, delay=0.05)
    ask(page, "go on for ever")
    expect(page.get_by_test_id("answer")).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. Tokens generated until then are billed.")).to_be_visible()
    site.engine.script = Script(pieces=("half",), error=EngineError("", "engine_failed", "broke", None, False))
    ask(page, "break")
    expect(page.get_by_role("alert")).to_contain_text("The answer broke off")
    site.engine.script = Script()
    ask(page, "again")
    expect(page.get_by_test_id("answer").last).to_have_text("Ahoy, matey!")


# --- operators ----------------------------------------------------------------------------------------------------


def test_an_operator_creates_a_tenant_whose_owner_signs_in(page: Page, site: Site) -> None:
    slug = unique("initech")
    sign_in(page, site.operator, "/")
    page.get_by_role("button", name="New tenant").click()
    page.get_by_label("Name", exact=True).fill("Initech")
    page.get_by_label("Short name").fill(slug)
    page.get_by_label("Owner's e-mail").fill(f"owner@{slug}.example")
    page.get_by_label("Owner's first password").fill("correct horse battery")
    page.get_by_role("button", name="Create the tenant").click()
    expect(page.get_by_role("row", name=slug)).to_be_visible()
    page.get_by_role("button", name="Limits of Initech").first.click()
    page.get_by_role("textbox", name="Budget", exact=True).fill("2.50")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The limits of Initech are saved.")).to_be_visible()
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    page.get_by_label("E-mail").fill(f"owner@{slug}.example")
    page.get_by_label("Password", exact=True).fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Home", level=1)).to_be_visible()
