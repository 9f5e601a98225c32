"""What every request begins with.

One request id: taken from a sane `x-request-id`, else made; on the response, in the logs. A view may have answered with
an id of its own (the door does: it names what is billed). And nobody's rows: permissions let it see some.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from django.http import HttpRequest, HttpResponseBase

from controlplane.console.around import AroundMiddleware, Finish, as_it_is
from controlplane.logs import request_id
from tenants.ids import new_id
from tenants.scope import tenant_scope

_SANE = re.compile(r"[A-Za-z0-9_.:-]{1,80}")


def request_id_for(header: str | None) -> str:
    return header if header and _SANE.fullmatch(header) else new_id("req")


class RequestIdMiddleware(AroundMiddleware):
    @contextmanager
    def around(self, request: HttpRequest) -> Iterator[Finish]:
        found = request_id_for(request.headers.get("x-request-id"))
        request_id.set(found)  # and left so: Django logs the outcome after this returns; the next request sets its own

        def named(response: HttpResponseBase) -> HttpResponseBase:
            response.headers.setdefault("x-request-id", found)
            return response

        yield named


class NoScopeMiddleware(AroundMiddleware):
    """Whatever a request's permissions let it see is over with the request."""

    @contextmanager
    def around(self, request: HttpRequest) -> Iterator[Finish]:
        with tenant_scope(None):
            yield as_it_is
