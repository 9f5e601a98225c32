"""The people of a tenant."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.errors import ApiError, Conflict, Forbidden, InvalidRequest, NotFound
from controlplane.rest import PAGE_PARAMETERS, Allowed, ErrorBody, PersonOnly, caller, keyset_page, page_of, tenant_of
from tenants.members import Refused, change_role, remove_member
from tenants.models import Membership, Role

STATUS_OF: Final[dict[str, type[ApiError]]] = {
    "role_too_high": Forbidden,
    "last_owner": Conflict,
    "already_member": Conflict,
    "member_not_found": NotFound,
    "invitation_not_valid": NotFound,
    "reset_not_valid": NotFound,
    "tenant_suspended": Conflict,
    "totp_in_use": Conflict,
    "no_second_factor": Conflict,
    "no_passkey": Conflict,
    "too_many_passkeys": Conflict,
    "sign_in_first": Conflict,
    "another_account": Conflict,
    "not_a_member": Forbidden,
    "not_invited": Forbidden,
    "domain_not_allowed": Forbidden,
    "link_needed": Conflict,
    "linked_already": Conflict,
    "nobody_linked": Conflict,
    "domain_not_found": NotFound,
    "domain_known": Conflict,
    "domain_taken": Conflict,
    "too_many_domains": Conflict,
}


@contextmanager
def refusals() -> Iterator[None]:
    """What `tenants` refuses, as the API says it."""
    try:
        yield
    except Refused as refused:
        kind = STATUS_OF.get(refused.code, InvalidRequest)
        raise kind(refused.message, param=refused.param, code=refused.code) from None


class MemberShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    user_id = serializers.CharField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(choices=Role.choices)
    created_at = serializers.DateTimeField()


def member_body(member: Membership) -> dict[str, Any]:
    return {
        "id": member.id,
        "user_id": member.user_id,
        "email": member.user.email,
        "role": member.role,
        "created_at": member.created_at,
    }


class MembersApi(APIView):
    permission_classes = (Allowed,)
    action_needed = "members:read"

    @extend_schema(
        operation_id="members_list", parameters=PAGE_PARAMETERS, responses=page_of("MemberPage", MemberShape)
    )
    def get(self, request: Request) -> Response:
        members = Membership.objects.filter(tenant=tenant_of(request)).select_related("user")
        return Response(keyset_page(members, request).body(member_body))


class MemberApi(APIView):
    permission_classes = (PersonOnly, Allowed)
    action_needed: ClassVar[dict[str, str]] = {
        "GET": "members:read", "PATCH": "members:write", "DELETE": "members:write",
    }  # fmt: skip

    class Input(serializers.Serializer[Any]):
        role = serializers.ChoiceField(choices=Role.choices)

        class Meta:
            ref_name = "ChangeMember"

    @extend_schema(operation_id="members_get", responses={200: MemberShape, 404: ErrorBody})
    def get(self, request: Request, member_id: str) -> Response:
        rows = Membership.objects.filter(tenant=tenant_of(request), id=member_id)
        member = rows.select_related("user").first()
        if member is None:
            raise NotFound(f"There is no member {member_id}.", code="member_not_found")
        return Response(member_body(member))

    @extend_schema(
        operation_id="members_change",
        request=Input,
        responses={200: MemberShape, 400: ErrorBody, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def patch(self, request: Request, member_id: str) -> Response:
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        tenant, who = tenant_of(request), caller(request)
        with refusals():
            member = change_role(
                tenant=tenant, member_id=member_id, role=data.validated_data["role"], actor=who.actor,
                own_role=str(who.role),
            )  # fmt: skip
        return Response(member_body(member))

    @extend_schema(operation_id="members_remove", responses={204: None, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody})
    def delete(self, request: Request, member_id: str) -> Response:
        """Their next request is refused. Keys that they issued stay: they belong to the tenant."""
        tenant, who = tenant_of(request), caller(request)
        with refusals():
            remove_member(tenant=tenant, member_id=member_id, actor=who.actor, own_role=str(who.role))
        return Response(status=204)


class LeaveApi(APIView):
    permission_classes = (PersonOnly,)

    @extend_schema(operation_id="members_leave", request=None, responses={204: None, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Whoever calls leaves the tenant. The last owner cannot."""
        tenant, who = tenant_of(request), caller(request)
        member = Membership.objects.filter(tenant=tenant, user=who.user).first()
        if member is None:
            raise NotFound("You are no member of this tenant: end acting for it instead.", code="no_member")
        with refusals():
            remove_member(tenant=tenant, member_id=member.id, actor=who.actor, own_role=None)
        return Response(status=204)
