"""A middleware for both worlds: what stands around a request is said once, for synchronous and asynchronous serving."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

Handler = Callable[[HttpRequest], Awaitable[HttpResponseBase] | HttpResponseBase]
Finish = Callable[[HttpResponseBase], HttpResponseBase]


def as_it_is(response: HttpResponseBase) -> HttpResponseBase:
    return response


class AroundMiddleware:
    """`around` is entered before the request is served; what it yields turns the answer into the one that is sent."""

    sync_capable = async_capable = True

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    @contextmanager
    def around(self, request: HttpRequest) -> Iterator[Finish]:
        yield as_it_is

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponseBase] | HttpResponseBase:
        if iscoroutinefunction(self.get_response):
            return self._serve_async(request)
        with self.around(request) as finish:
            response = self.get_response(request)
            assert isinstance(response, HttpResponseBase)
            return finish(response)

    async def _serve_async(self, request: HttpRequest) -> HttpResponseBase:
        with self.around(request) as finish:
            response = self.get_response(request)
            assert not isinstance(response, HttpResponseBase)
            return finish(await response)
