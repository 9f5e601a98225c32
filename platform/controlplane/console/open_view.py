"""Views for pages that nobody is signed in to yet."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.middleware.csrf import get_token
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from controlplane.api_view import APIView
from tenants.api_auth import SessionAuthentication


class WithCsrfCookie(APIView):
    """Every answer sets the CSRF cookie, so that a page's first request may be one that changes something."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        get_token(request)
        return super().dispatch(request, *args, **kwargs)


class OpenToAll(WithCsrfCookie):
    """Nobody is signed in yet. What is secret travels in the body: an address is kept by logs."""

    permission_classes = (AllowAny,)
    authentication_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        SessionAuthentication().enforce_csrf(request)
