"""What POST /v1/batches asks for, parsed and checked."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from controlplane.batches.files import KEPT
from controlplane.batches.form import SHORTEST_KEPT
from controlplane.errors import InvalidRequest
from controlplane.inference.fields import Body, read_object, read_text, wrong
from controlplane.inference.whole import ANSWERS

WINDOW: Final = "24h"
MAX_METADATA: Final = 16


@dataclass(frozen=True)
class Asked:
    """output_kept: how long the files of answers stay."""

    input_file_id: str
    endpoint: str
    metadata: dict[str, str] | None
    output_kept: timedelta


def parse_batch(body: Body) -> Asked:
    file_id = _needed(body, "input_file_id")
    endpoint = _needed(body, "endpoint")
    if endpoint not in ANSWERS:
        raise wrong("endpoint", endpoint, f"it must be one of {', '.join(ANSWERS)}")
    if _needed(body, "completion_window") != WINDOW:
        raise wrong("completion_window", body["completion_window"], f"it must be {WINDOW}")
    return Asked(file_id, endpoint, _read_metadata(body), _read_output_kept(body))


def _needed(body: Body, param: str) -> str:
    value = read_text(body, param, longest=300)
    if not value:
        raise InvalidRequest(f"`{param}` is missing.", param=param, code="missing_required_parameter")
    return value


def _read_metadata(body: Body) -> dict[str, str] | None:
    found = read_object(body, "metadata")
    if len(found) > MAX_METADATA:
        raise wrong("metadata", f"{len(found)} keys", f"at most {MAX_METADATA} are kept")
    for key, value in found.items():
        _check_pair(key, value)
    return found or None


def _check_pair(key: str, value: Any) -> None:
    name = f"metadata.{key[:64]}"
    if not isinstance(value, str):
        raise wrong(name, value, "metadata values must be strings", "invalid_type")
    if not key or len(key) > 64 or len(value) > 512 or "\x00" in key + value:
        raise wrong(name, value, "a key may have 64 characters, a value 512, and neither a NUL")


def _read_output_kept(body: Body) -> timedelta:
    found = read_object(body, "output_expires_after")
    if body.get("output_expires_after") is None:
        return KEPT
    seconds, longest = found.get("seconds"), int(KEPT.total_seconds())
    if found.get("anchor") != "created_at":
        raise wrong("output_expires_after.anchor", found.get("anchor"), "it must be created_at")
    is_number = isinstance(seconds, int) and not isinstance(seconds, bool)
    if not is_number or not SHORTEST_KEPT <= (seconds or 0) <= longest:
        remedy = f"it must be a whole number of seconds from {SHORTEST_KEPT} to {longest}"
        raise wrong("output_expires_after.seconds", seconds, remedy)
    return timedelta(seconds=int(seconds or 0))
