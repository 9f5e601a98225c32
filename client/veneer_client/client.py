"""The management API as methods. Every answer is a type of the API's schema (`models`).

Methods raise Refused, with the API's words, and Unreachable.
"""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from veneer_client import upload
from veneer_client.login import Login
from veneer_client.models import (
    AdapterPage,
    AdapterShape,
    IssuedKeyShape,
    IssueKeyRequest,
    KeyPage,
    KeyShape,
    SetAliasRequest,
    SplitShapeRequest,
    StartedUpload,
    StartUploadRequest,
    UsageShape,
    VersionShape,
)
from veneer_client.transport import Refused, Transport

POLL_S = 1.0
CHECK_SECONDS = 900.0


class Veneer:
    """`with Veneer(url, key) as api:`. url: of the console; key: of scope `manage`."""

    def __init__(self, url: str, key: str, **options: Any) -> None:
        self._transport = Transport(url, key, **options)

    @classmethod
    def open(cls) -> Self:
        """As the environment or `veneer login` says. Raises NotLoggedIn."""
        login = Login.find()
        return cls(login.url, login.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._transport.__exit__()

    def adapters(self, search: str | None = None) -> Iterator[AdapterShape]:
        for page in self._transport.pages("adapters", AdapterPage, {"q": search}):
            yield from page.data

    def adapter(self, name: str) -> AdapterShape:
        """By name or id. Raises Refused, 404."""
        for adapter in self.adapters():
            if name in (adapter.name, adapter.id):
                return adapter
        raise Refused(404, f"there is no adapter {name!r} here: `veneer adapters list` names them", "not_found")

    def version(self, version_id: str) -> VersionShape:
        return self._transport.get(f"versions/{version_id}", VersionShape)

    def push(self, folder: Path, name: str, base_model: str | None = None) -> VersionShape:
        """Upload what PEFT wrote, as a new version that is checked next. base_model: by default the one that its config
        names. The same folder again goes on where an interrupted push was. Raises NoAdapter."""
        paths = upload.files_of(folder)
        wanted = StartUploadRequest(
            name=name, base_model=base_model or _base_of(paths[0]), files=[upload.declared(path) for path in paths]
        )
        version = self._unfinished(wanted) or self._transport.post("adapters", StartedUpload, wanted).version
        upload.send(self._transport, version.id, [*upload.missing(paths, version.files)])
        return self._transport.post(f"versions/{version.id}/finish", VersionShape)

    def _unfinished(self, wanted: StartUploadRequest) -> VersionShape | None:
        """A version of the same files that was begun and is not all there."""
        files = {(file.name, file.size, file.sha256) for file in wanted.files}
        for adapter in self.adapters(wanted.name):
            for version in adapter.versions if adapter.name == wanted.name else []:
                known = {(file.name, file.size, file.sha256) for file in version.files}
                if version.state == "uploading" and version.source is None and known == files:
                    return version
        return None

    def checked(self, version_id: str, seconds: float = CHECK_SECONDS) -> VersionShape:
        """Wait until the version is ready or rejected. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while (version := self.version(version_id)).state in ("uploading", "checking"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{version_id} is {version.state} for {seconds:.0f} s now: ask again later")
            time.sleep(POLL_S)
        return version

    def pull(self, version: VersionShape, folder: Path) -> list[Path]:
        """The files of a version as they were uploaded."""
        folder.mkdir(parents=True, exist_ok=True)
        written = list[Path]()
        for file in version.files:
            path = folder / Path(file.name).name
            with self._transport.download(f"versions/{version.id}/files/{file.name}") as pieces, path.open("wb") as out:
                out.writelines(pieces)
            written.append(path)
        return written

    def promote(self, adapter: AdapterShape, number: int, canary_percent: int | None = None) -> AdapterShape:
        """Let the adapter's name answer with this version: for all, or for a part of its traffic beside what
        answers now. Raises ValueError where there is nothing beside which it could be a canary."""
        splits = [SplitShapeRequest(version=number, weight=1)]
        if canary_percent is not None:
            now = [split.version for split in adapter.alias.splits if split.version != number] if adapter.alias else []
            if len(now) != 1:
                others = ", ".join(map(str, now)) or "none"
                raise ValueError(f"a canary needs one version beside it; {adapter.name} answers with {others}")
            splits = [
                SplitShapeRequest(version=now[0], weight=100 - canary_percent),
                SplitShapeRequest(version=number, weight=canary_percent),
            ]
        body = SetAliasRequest(splits=splits, follows_newest=False)
        return self._transport.put(f"adapters/{adapter.id}/alias", AdapterShape, body)

    def rollback(self, adapter: AdapterShape) -> AdapterShape:
        return self._transport.post(f"adapters/{adapter.id}/rollback", AdapterShape)

    def keys(self) -> Iterator[KeyShape]:
        for page in self._transport.pages("keys", KeyPage):
            yield from page.data

    def issue_key(
        self, name: str, scopes: Sequence[str], models: Sequence[str] | None = None, expires_at: str | None = None
    ) -> IssuedKeyShape:
        """The key itself is in the answer and never again. models: None = all of the tenant's."""
        body: dict[str, Any] = {"name": name, "scopes": [*scopes], "allowed_models": models, "expires_at": expires_at}
        return self._transport.post("keys", IssuedKeyShape, IssueKeyRequest(**body))

    def revoke_key(self, key_id: str) -> KeyShape:
        return self._transport.post(f"keys/{key_id}/revoke", KeyShape)

    def usage(self, since: str, until: str, *, by: str = "adapter", zone: str = "UTC") -> UsageShape:
        """since, until: ISO 8601, the end excluded. by: adapter, key, member, model, hour, day or month."""
        return self._transport.get("usage", UsageShape, {"from": since, "to": until, "group_by": by, "tz": zone})


def _base_of(config: Path) -> str:
    """The last part of what PEFT noted: a folder or a name of the hub."""
    found = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path") or ""
    return str(found).rstrip("/").rsplit("/", 1)[-1]
