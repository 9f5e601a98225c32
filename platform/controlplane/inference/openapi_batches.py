"""What the description says of files and batches."""

from typing import Any, Final

from controlplane.inference import openapi_answers as answers

Json = dict[str, Any]
_TEXT: Final[Json] = {"type": "string"}
_TIME: Final[Json] = {"type": ["integer", "null"], "description": "Unix seconds."}
_COUNT: Final[Json] = {"type": "integer", "minimum": 0}
_ID: Final[Json] = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_FILE: Final = answers.record(
    id=_TEXT, object={"enum": ["file"]}, bytes=_COUNT, created_at=_COUNT, expires_at=_COUNT, filename=_TEXT,
    purpose={"enum": ["batch", "batch_output"]}, status={"enum": ["processed"]},
)  # fmt: skip
_BATCH: Final = answers.record(
    id=_TEXT, object={"enum": ["batch"]}, endpoint=_TEXT, input_file_id=_TEXT, completion_window=_TEXT,
    status={
        "enum": [
            "validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled",
        ]
    },
    errors={"type": ["object", "null"]}, output_file_id={"type": ["string", "null"]},
    error_file_id={"type": ["string", "null"]}, created_at=_COUNT, in_progress_at=_TIME, expires_at=_TIME,
    finalizing_at=_TIME, completed_at=_TIME, failed_at=_TIME, expired_at=_TIME, cancelling_at=_TIME, cancelled_at=_TIME,
    request_counts=answers.record(total=_COUNT, completed=_COUNT, failed=_COUNT),
    metadata={"type": ["object", "null"]}, usage={"type": "object"},
    cost={"type": "string", "description": "Exact, of the lines that have run."},
)  # fmt: skip
_KEPT: Final[Json] = {
    "type": ["object", "null"],
    "required": ["anchor", "seconds"],
    "properties": {
        "anchor": {"enum": ["created_at"]},
        "seconds": {"type": "integer", "minimum": 3600, "maximum": 30 * 86400},
    },
}
_METADATA: Final[Json] = {
    "type": ["object", "null"],
    "maxProperties": 16,
    "propertyNames": {"minLength": 1, "maxLength": 64},
    "additionalProperties": {"type": "string", "maxLength": 512},
}
_NEW_BATCH: Final[Json] = {
    "type": "object",
    "required": ["input_file_id", "endpoint", "completion_window"],
    "properties": {
        "input_file_id": {"type": "string", "minLength": 1, "maxLength": 300},
        "endpoint": {"enum": ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"]},
        "completion_window": {"enum": ["24h"]},
        "metadata": _METADATA,
        "output_expires_after": _KEPT,
    },
}
_NEW_FILE: Final[Json] = {
    "type": "object",
    "required": ["purpose", "file"],
    "properties": {
        "purpose": {"enum": ["batch"]},
        "file": {"type": "string", "format": "binary", "minLength": 1},
        "expires_after[anchor]": {"enum": ["created_at"]},
        "expires_after[seconds]": {"type": "integer", "minimum": 3600, "maximum": 30 * 86400},
    },
}


def paths() -> Json:
    gone = answers.record(id=_TEXT, object={"enum": ["file"]}, deleted={"enum": [True]})
    purpose = _query("purpose", {"enum": ["batch", "batch_output"]})
    order = _query("order", {"enum": ["asc", "desc"]})
    created = _operation("A file, uploaded.", _FILE, [], 400, 413, 415, body=("multipart/form-data", _NEW_FILE))
    started = _operation(
        "A batch, created.", _BATCH, [], 400, 402, 404, 413, 415, 429, body=("application/json", _NEW_BATCH)
    )
    return {
        "/v1/files": {
            "get": _operation("This key's files.", _listed(_FILE), [purpose, order, *_page(10_000)], 400),
            "post": created,
        },
        "/v1/files/{id}": {
            "get": _operation("One file.", _FILE, [_ID], 404),
            "delete": _operation("A file is gone.", gone, [_ID], 404, 409),
        },
        "/v1/files/{id}/content": {"get": _content()},
        "/v1/batches": {
            "get": _operation("This key's batches, newest first.", _listed(_BATCH), _page(100), 400),
            "post": started,
        },
        "/v1/batches/{id}": {"get": _operation("One batch.", _BATCH, [_ID], 404)},
        "/v1/batches/{id}/cancel": {"post": _operation("No more lines of it are begun.", _BATCH, [_ID], 404, 409)},
    }


def _operation(
    text: str, answer: Json, parameters: list[Json], *also: int, body: tuple[str, Json] | None = None
) -> Json:
    found = {
        "summary": text,
        "parameters": parameters,
        "responses": {**answers.answered(text, answer), **answers.errors(*also)},
    }
    if body:
        found["requestBody"] = {"required": True, "content": {body[0]: {"schema": body[1]}}}
    return found


def _content() -> Json:
    found = _operation("The bytes of a file.", {}, [_ID], 404)
    found["responses"]["200"]["content"] = {"application/octet-stream": {"schema": {}}}
    return found


def _query(name: str, schema: Json) -> Json:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _page(most: int) -> list[Json]:
    return [
        _query("after", {"type": "string", "minLength": 1}),
        _query("limit", {"type": "integer", "minimum": 1, "maximum": most}),
    ]


def _listed(item: Json) -> Json:
    end = {"type": ["string", "null"]}
    return answers.record(
        object={"enum": ["list"]}, data={"type": "array", "items": item}, first_id=end, last_id=end,
        has_more={"type": "boolean"},
    )  # fmt: skip
