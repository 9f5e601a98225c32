"""What operators do about people who cannot get in, or should not."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api_view import APIView
from controlplane.console.reset_mail import reset_link
from controlplane.console.sessions import person
from controlplane.errors import Conflict, NotFound
from controlplane.rest import PAGE_PARAMETERS, ErrorBody, OperatorOnly, caller, keyset_page, page_of
from tenants.models import User
from tenants.passwords import HANDED_LIFETIME, start_reset
from tenants.people import set_active
from tenants.second_factor import forget_factors


class PersonShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    email = serializers.EmailField()
    is_operator = serializers.BooleanField()
    is_active = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    tenants = serializers.ListField(child=serializers.CharField(), help_text="short names of those they belong to")


def person_body(user: User) -> dict[str, Any]:
    fields = {name: getattr(user, name) for name in ("id", "email", "is_operator", "is_active", "created_at")}
    return {**fields, "tenants": sorted(m.tenant.slug for m in user.memberships.all())}


def find_person(user_id: str) -> User:
    found = User.objects.filter(id=user_id).prefetch_related("memberships__tenant").first()
    if found is None:
        raise NotFound(f"There is no person {user_id}.")
    return found


class PeopleApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(
        operation_id="operator_people_list",
        parameters=[OpenApiParameter("email", str, description="a part of the address"), *PAGE_PARAMETERS],
        responses={200: page_of("PersonPage", PersonShape), 400: ErrorBody},
    )
    def get(self, request: Request) -> Response:
        rows = User.objects.prefetch_related("memberships__tenant")
        wanted = request.GET.get("email", "").replace("\x00", "")
        return Response(keyset_page(rows.filter(email__icontains=wanted), request).body(person_body))


class OnePersonApi(APIView):
    permission_classes = (OperatorOnly,)

    class Input(serializers.Serializer[Any]):
        is_active = serializers.BooleanField()

        class Meta:
            ref_name = "ChangePerson"

    @extend_schema(operation_id="operator_people_get", responses={200: PersonShape, 404: ErrorBody})
    def get(self, request: Request, user_id: str) -> Response:
        return Response(person_body(find_person(user_id)))

    @extend_schema(
        operation_id="operator_people_change",
        request=Input,
        responses={200: PersonShape, 400: ErrorBody, 404: ErrorBody, 409: ErrorBody},
    )
    def patch(self, request: Request, user_id: str) -> Response:
        """Deactivated: every session ends at once, and nobody signs in. Their keys stay: they are the tenant's."""
        data = self.Input(data=request.data)
        data.is_valid(raise_exception=True)
        found = find_person(user_id)
        if found == person(request):
            raise Conflict("This is you: ask another operator to do it.", code="yourself")
        return Response(person_body(set_active(user=found, actor=caller(request).actor, **data.validated_data)))


class ResetLinkApi(APIView):
    permission_classes = (OperatorOnly,)

    class Output(serializers.Serializer[Any]):
        link = serializers.CharField(help_text="to hand over; works once, and is shown only here")
        lifetime_seconds = serializers.IntegerField()

        class Meta:
            ref_name = "ResetLink"

    @extend_schema(operation_id="operator_people_reset_link", request=None, responses={201: Output, 404: ErrorBody})
    def post(self, request: Request, user_id: str) -> Response:
        """For somebody who has forgotten their password. Links given out before end."""
        token = start_reset(user=find_person(user_id), issued_by=person(request))
        seconds = int(HANDED_LIFETIME.total_seconds())
        return Response({"link": reset_link(token), "lifetime_seconds": seconds}, status=201)


class ForgetFactorsApi(APIView):
    permission_classes = (OperatorOnly,)

    @extend_schema(operation_id="operator_people_forget_factors", request=None, responses={204: None, 404: ErrorBody})
    def post(self, request: Request, user_id: str) -> Response:
        """For somebody who has lost every second factor, once you know that it is them: the password alone lets them
        in, and every session of theirs ends."""
        forget_factors(user=find_person(user_id), actor=caller(request).actor)
        return Response(status=204)
