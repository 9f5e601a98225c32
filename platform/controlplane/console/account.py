"""Who may look at and change an account itself, rather than what a tenant lets it do."""

from typing import cast

from rest_framework.request import Request
from rest_framework.views import APIView

from controlplane.errors import Forbidden
from controlplane.rest import PersonOnly
from tenants.api_auth import Caller


class OwnAccount(PersonOnly):
    """A person who came in by themselves. Through a company one sees that company's tenant, not the account, which may
    belong to other tenants as well."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = cast(object, request.user)
        if isinstance(user, Caller) and user.company:
            raise Forbidden(
                "You came in through your company, which vouches for you in its own tenant alone: to see or change "
                "your account, sign in with its password.",
                code="came_through_company",
            )
        return super().has_permission(request, view)
