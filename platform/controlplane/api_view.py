"""The base of every view of the management API: what POSTs and changes have in common, in one place.

A POST may carry an idempotency key. Where GET answers with one thing, the answer has an `ETag`, and PUT, PATCH and
DELETE of the same address honour `If-Match`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from rest_framework import views
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.errors import PreconditionFailed
from controlplane.etags import HEADER as IF_MATCH
from controlplane.etags import check_tag, tag_of, unchanged_until_commit
from controlplane.idempotency import answer_once, committed

CHANGES = ("put", "patch", "delete")
Handler = Callable[..., HttpResponseBase]


class APIView(views.APIView):
    """tagged_by: whose GET tells the tag; default: its own. used: members of its answer that change with use."""

    tagged_by: ClassVar["type[APIView] | None"] = None
    used: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name, wrap in (("post", _once), *((name, _if_match) for name in CHANGES)):
            if name in cls.__dict__:
                setattr(cls, name, wrap(cls.__dict__[name]))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        is_read = request.method == "GET" and response.status_code == 200 and isinstance(response, Response)
        if is_read and self.has_tag():
            response.headers.setdefault("ETag", tag_of(response.data, self.used))
        return super().finalize_response(request, response, *args, **kwargs)

    def has_tag(self) -> bool:
        """Whether its GET answers with something that it also changes, in JSON."""
        return hasattr(self, "get") and any(hasattr(self, name) for name in CHANGES)

    def current_tag(self, request: Request, **named: Any) -> str:
        """Raises what its GET raises, and PreconditionFailed where nothing can be read here."""
        source = self.tagged_by() if self.tagged_by else self
        read: Handler | None = getattr(source, "get", None)
        response = read(request, **named) if read else None
        if not isinstance(response, Response):
            raise PreconditionFailed(f"{IF_MATCH}: nothing here has an ETag; leave the header out", param=IF_MATCH)
        return tag_of(response.data, source.used)


def _once(post: Handler) -> Handler:
    @wraps(post)
    def wrapped(view: APIView, request: Request, *args: Any, **named: Any) -> HttpResponseBase:
        return answer_once(request, lambda: post(view, request, *args, **named))

    return wrapped


def _if_match(change: Handler) -> Handler:
    @wraps(change)
    def wrapped(view: APIView, request: Request, *args: Any, **named: Any) -> HttpResponseBase:
        header = request.headers.get(IF_MATCH)
        if header is None:
            return change(view, request, *args, **named)

        def checked() -> HttpResponseBase:
            check_tag(header, view.current_tag(request, **named))
            response = change(view, request, *args, **named)
            if request.method != "DELETE":
                response.headers["ETag"] = view.current_tag(request, **named)
            return response

        return committed(checked, within=unchanged_until_commit())

    return wrapped
