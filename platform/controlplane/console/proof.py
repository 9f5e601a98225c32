"""Proving who one is, with too many wrong tries refused: at the door, and again before what matters most."""

from django.contrib.auth import authenticate
from django.contrib.auth.hashers import check_password as is_password
from django.http import HttpRequest
from rest_framework.request import Request

from controlplane.errors import Forbidden, NotAuthenticated, RateLimited
from controlplane.rest import caller
from tenants.lockout import LockedOut, count_attempt_plan, forget_attempts
from tenants.models import User
from tenants.networks import client_address
from tenants.scope import ALL_TENANTS
from tenants.sql import run_sync


def counted(email: str, where: str) -> None:
    """One more try for the account. where: an address, or one of `tenants.lockout`'s words. Raises RateLimited."""
    try:
        run_sync(count_attempt_plan(email=email, address=where), tenant=ALL_TENANTS)
    except LockedOut as locked:
        raise RateLimited(
            f"Too many attempts for this account: try again in {locked.retry_after} s.",
            code="too_many_attempts",
            headers={"Retry-After": str(locked.retry_after)},
        ) from None


def check_password(request: HttpRequest, *, email: str, password: str) -> User:
    """The person, or NotAuthenticated; RateLimited after too many wrong passwords, right or wrong. The tries are
    forgotten by whoever lets them in."""
    counted(email, client_address(request.META))
    user = authenticate(request, username=email, password=password)
    if user is None:
        raise NotAuthenticated("E-mail address or password is wrong.", code="invalid_credentials")
    assert isinstance(user, User)
    return user


def prove_password(request: Request, password: str, param: str = "password") -> None:
    """Whoever is signed in knows the password too: an open browser alone may not change what guards the account."""
    user = caller(request).user
    assert user is not None
    address = client_address(request.META)
    counted(user.email, address)
    if not is_password(password, user.password):  # not user.check_password: a new hash would end this session
        raise Forbidden(f"{param}: this is not your password", param=param, code="wrong_password")
    forget_attempts(email=user.email, address=address)
