"""Upload an adapter folder through the management API, in parts, and wait for the verdict."""

import hashlib
import time
from pathlib import Path

from controlplane.embedded.client import JSON, Client

PART_BYTES = 1024 * 1024
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
FINAL_STATES = ("ready", "rejected")


class UploadStuck(Exception):
    """No verdict in time."""


def upload_adapter(client: Client, *, name: str, base_model: str, folder: Path, seconds: float = 120.0) -> JSON:
    """The version as it is after the check: state `ready` or `rejected`, with its report."""
    files = {path.name: path.read_bytes() for path in (folder / file for file in ADAPTER_FILES) if path.exists()}
    version = start_upload(client, name=name, base_model=base_model, files=files)
    for file, content in files.items():
        for offset in _offsets(len(content)):
            part = content[offset : offset + PART_BYTES]
            client.put_bytes(f"/api/v1/versions/{version['id']}/files/{file}?offset={offset}", part)
    client.post(f"/api/v1/versions/{version['id']}/finish")
    return wait_for_verdict(client, version["id"], seconds=seconds)


def start_upload(client: Client, *, name: str, base_model: str, files: dict[str, bytes]) -> JSON:
    declared = [
        {"name": file, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for file, content in files.items()
    ]
    answer = client.post("/api/v1/adapters", {"name": name, "base_model": base_model, "files": declared})
    version: JSON = answer["version"]
    return version


def wait_for_verdict(client: Client, version_id: str, *, seconds: float) -> JSON:
    deadline = time.monotonic() + seconds
    while True:
        version = client.get(f"/api/v1/versions/{version_id}")
        if version["state"] in FINAL_STATES:
            return version
        if time.monotonic() > deadline:
            raise UploadStuck(f"version {version_id} is still {version['state']!r} after {seconds:.0f} s")
        time.sleep(0.1)


def _offsets(size: int) -> range:
    """Where the parts begin, the last one first: order is free, and this shows it."""
    return range((size - 1) // PART_BYTES * PART_BYTES, -1, -PART_BYTES)
