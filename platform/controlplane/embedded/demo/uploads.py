"""Adapters go in: through the API in parts, through the console in a browser, and one that must be refused."""

import struct

from controlplane.embedded.client import ApiFailure, Client
from controlplane.embedded.demo.steps import expect
from controlplane.embedded.terminal import say
from controlplane.embedded.upload import ADAPTER_FILES, start_upload, upload_adapter, wait_for_verdict
from controlplane.env import ROOT

EXAMPLES = ROOT / "examples" / "adapters"
WITH_BROWSER = "pirate"
MALFORMED = "broken"
VERDICT_SECONDS = 120.0


def upload_by_api(session: Client, *, name: str, base_model: str) -> None:
    version = upload_adapter(session, name=name, base_model=base_model, folder=EXAMPLES / name)
    expect(
        version["state"] == "ready",
        f"adapter {name} should be ready, but it is {version['state']}: {version['report']}",
    )


def wait_until_ready(session: Client, name: str) -> None:
    """For an adapter that somebody else uploaded."""
    adapters = {adapter["name"]: adapter for adapter in session.get("/api/v1/adapters")["data"]}
    expect(name in adapters, f"adapter {name} should be listed; there are {sorted(adapters)}")
    version = wait_for_verdict(session, adapters[name]["versions"][0]["id"], seconds=VERDICT_SECONDS)
    expect(
        version["state"] == "ready",
        f"adapter {name} should be ready, but it is {version['state']}: {version['report']}",
    )


def expect_refusal(session: Client, *, base_model: str) -> None:
    """Pirate's configuration with weights whose header promises more than the file holds."""
    config = (EXAMPLES / WITH_BROWSER / ADAPTER_FILES[0]).read_bytes()
    weights = (EXAMPLES / WITH_BROWSER / ADAPTER_FILES[1]).read_bytes()
    header_len = struct.unpack("<Q", weights[:8])[0]
    files = {ADAPTER_FILES[0]: config, ADAPTER_FILES[1]: weights[: 8 + header_len + 1000]}
    version = start_upload(session, name=MALFORMED, base_model=base_model, files=files)
    for name, content in files.items():
        session.put_bytes(f"/api/v1/versions/{version['id']}/files/{name}?offset=0", content)
    session.post(f"/api/v1/versions/{version['id']}/finish")
    found = wait_for_verdict(session, version["id"], seconds=VERDICT_SECONDS)
    problems = (found["report"] or {}).get("problems", [])
    expect(found["state"] == "rejected" and problems, f"a truncated adapter should be rejected with reasons: {found}")
    for problem in problems[:3]:
        say(
            f"    refused: {problem['where']}: {problem['found']} (expected {problem['expected']}). {problem['remedy']}"
        )


def expect_pickle_refused(session: Client, *, base_model: str) -> None:
    """`adapter_model.bin` is a pickle: not even its upload begins."""
    try:
        start_upload(session, name=MALFORMED, base_model=base_model, files={"adapter_model.bin": b"\x80\x04."})
    except ApiFailure as refusal:
        expect(refusal.status == 400, f"a pickle should be refused with 400, not {refusal.status}")
        return
    expect(False, "an upload of adapter_model.bin (a pickle) should be refused")
