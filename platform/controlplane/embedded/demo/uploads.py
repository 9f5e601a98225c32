"""Adapters go in: through the API in parts, through the console in a browser, and one that must be refused."""

import subprocess
import sys
import tempfile
from pathlib import Path

from controlplane.embedded.client import ApiFailure, Client
from controlplane.embedded.demo.steps import expect
from controlplane.embedded.terminal import say
from controlplane.embedded.upload import start_upload, upload_adapter, wait_for_verdict
from controlplane.env import ROOT

EXAMPLES = ROOT / "examples" / "adapters"
BREAKER = ROOT / "examples" / "make_broken_adapter.py"
WAYS_IT_IS_BROKEN = 3
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
    """An adapter spoiled in several ways: every one of them is named."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, BREAKER, folder], check=True, capture_output=True)
        found = upload_adapter(session, name=MALFORMED, base_model=base_model, folder=Path(folder))
    problems = (found["report"] or {}).get("problems", [])
    expect(found["state"] == "rejected", f"a malformed adapter should be rejected: {found}")
    expect(len(problems) >= WAYS_IT_IS_BROKEN, f"every fault should be named, not only these: {problems}")
    for problem in problems:
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
