"""`Idempotency-Key`: a POST that is sent again has its effect once, and is answered as the first time.

The deed and its answer are one transaction. A refusal had no effect, so none is kept: the key is free for another try.
What the first answer showed once (a new key's text) the second shows again, to the same caller, for a day; it is kept
sealed. Calls without a caller (signing in) take no key: there would be nobody to whom the answer belongs.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404
from django.http.response import HttpResponseBase
from rest_framework.exceptions import APIException
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.errors import ApiError, Conflict, InvalidRequest, Unprocessable
from tenants.answers import Answer, AnswerUnreadable, Place, answer_at, keep_answer, lock_place
from tenants.api_auth import Caller

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
_SHAPE: Final = re.compile(r"[\x21-\x7e]{1,255}")
Handle = Callable[[], HttpResponseBase]


def answer_once(request: Request, handle: Handle) -> HttpResponseBase:
    """The handler's answer, or the one that it gave before under the request's key."""
    key, who = request.headers.get(HEADER), request.user
    if key is None or not isinstance(who, Caller):
        return handle()
    if not _SHAPE.fullmatch(key):
        raise InvalidRequest(
            f"{HEADER} is {key[:40]!r}: send 1 to 255 visible ASCII characters, such as a UUID", param=HEADER
        )
    tenant = who.tenant
    place = Place(tenant.id if tenant else None, who.actor, f"{request.method} {request.path}", key)
    asked = _digest(request)
    return committed(lambda: _at_place(place, asked, handle))


def committed(handle: Handle, within: AbstractContextManager[None] | None = None) -> HttpResponseBase:
    """The handler in one transaction. A refusal is an outcome like others: what it counted stays counted."""
    refusal: Exception | None = None
    with within or transaction.atomic():
        try:
            response = handle()
        except (ApiError, APIException, Http404, PermissionDenied) as exc:
            refusal = exc
    if refusal is not None:
        raise refusal
    return response


def _at_place(place: Place, asked: str, handle: Handle) -> HttpResponseBase:
    if not lock_place(place):
        raise Conflict(
            f"{HEADER} {place.key!r}: the first request with it is still being answered; ask again in a second",
            param=HEADER, code="idempotency_key_in_flight", headers={"Retry-After": "1"},
        )  # fmt: skip
    before = _before(place)
    if before is None:
        response = handle()
        if isinstance(response, Response) and 200 <= response.status_code < 300:
            body = None if response.data is None else json.loads(JSONRenderer().render(response.data))
            keep_answer(place, Answer(response.status_code, body, asked))
        return response
    if before.asked != asked:
        raise Unprocessable(
            f"{HEADER} {place.key!r} was used for another body: choose a new key for a new request",
            param=HEADER, code="idempotency_key_reused",
        )  # fmt: skip
    return Response(before.body, status=before.status, headers={REPLAYED: "true"})


def _before(place: Place) -> Answer | None:
    try:
        return answer_at(place)
    except AnswerUnreadable:
        raise Conflict(
            f"{HEADER} {place.key!r}: the request was carried out, but its answer can be read no more; look at what it "
            "made, and choose a new key for a new request",
            param=HEADER, code="idempotency_key_spent",
        ) from None  # fmt: skip


def _digest(request: Request) -> str:
    query = request.META.get("QUERY_STRING", "")
    return hashlib.sha256(f"{request.content_type}\n{query}\n".encode() + request.body).hexdigest()
