"""Registrations as JSON schemas."""

from typing import Any, Final

from controlplane.inference.openapi_answers import record

Json = dict[str, Any]
_TEXT: Final[Json] = {"type": "string"}


def registration_body() -> Json:
    """Of POST /v1/models."""
    return {
        "type": "object",
        "required": ["model_name", "model_source"],
        "properties": {
            "model_name": {**_TEXT, "minLength": 1, "maxLength": 200, "description": "The adapter's."},
            "model_source": {
                **_TEXT, "minLength": 1, "maxLength": 2000,
                "description": "A folder's https URL, s3://bucket/prefix, or org/name[@revision] of the hub.",
            },
            "model_type": {"enum": ["adapter", None]},
            "base_model": {"type": ["string", "null"], "maxLength": 200, "description": "By default the one served."},
            "description": {"type": ["string", "null"], "maxLength": 1000, "description": "Taken and not kept."},
        },
        "additionalProperties": False,
    }  # fmt: skip


def started() -> Json:
    """Its answer."""
    return record(
        data=record(job_id=_TEXT, model_name=_TEXT, model_id=_TEXT, model_source=_TEXT),
        message=_TEXT,
    )


def job() -> Json:
    """Of GET /v1/jobs/{id}."""
    return record(
        type=_TEXT,
        job_id=_TEXT,
        status={"enum": ["Queued", "Running", "Complete", "Failed"]},
        status_updates={"type": "array", "items": record(status=_TEXT, message=_TEXT, timestamp=_TEXT)},
        args={"type": "object"},
        created_at=_TEXT,
        updated_at=_TEXT,
    )
