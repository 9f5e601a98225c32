"""Who may change whose role, and that an owner always stays."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from django.db import connections

from tenants.members import GRANTED_BY, Refused, check_may_grant, remove_member
from tenants.models import AuditRow, Membership, Role, Tenant, User
from tests.controlplane.conftest import Api, Cast, signed_in


def member_of(cast: Cast, role: str) -> Membership:
    return Membership.objects.get(tenant=cast.acme, user=cast.people[role])


def roles_of(tenant: Tenant) -> dict[str, str]:
    return dict(Membership.objects.filter(tenant=tenant).values_list("user__email", "role"))


def test_the_list_is_the_tenants_own(owner: Api, cast: Cast) -> None:
    status, body = owner.get("members")
    assert status == 200
    assert {row["email"]: row["role"] for row in body["data"]} == roles_of(cast.acme)
    assert "globex" not in str(body)


@pytest.mark.parametrize("own", list(Role.values))
@pytest.mark.parametrize("theirs", list(Role.values))
@pytest.mark.parametrize("new", list(Role.values))
def test_nobody_grants_above_their_own_role(cast: Cast, own: str, theirs: str, new: str) -> None:
    """Every pair of roles, and every role given: an admin neither makes owners nor touches them."""
    second = User.objects.create(email="second@acme.example")
    member = Membership.objects.create(tenant=cast.acme, user=second, role=theirs)
    allowed = own == Role.OWNER or (own == Role.ADMIN and Role.OWNER not in (theirs, new))
    status, body = signed_in(cast.people[own]).patch(f"members/{member.id}", {"role": new})
    member.refresh_from_db()
    if allowed:
        assert (status, body["role"], member.role) == (200, new, new)
    else:
        assert (status, member.role) == (403, theirs)


def test_the_last_owner_stays(owner: Api, cast: Cast) -> None:
    own = member_of(cast, Role.OWNER)
    for answer in (
        owner.patch(f"members/{own.id}", {"role": "viewer"}),
        owner.delete(f"members/{own.id}"),
        owner.post("members/leave"),
    ):
        assert (answer[0], answer[1]["error"]["code"]) == (409, "last_owner")
    owner.patch(f"members/{member_of(cast, Role.ADMIN).id}", {"role": "owner"})
    assert owner.post("members/leave")[0] == 204
    assert owner.get("members")[0] == 404


def test_an_owner_who_cannot_sign_in_is_none(owner: Api, cast: Cast) -> None:
    gone = User.objects.create(email="gone@acme.example", is_active=False)
    Membership.objects.create(tenant=cast.acme, user=gone, role=Role.OWNER)
    assert owner.post("members/leave")[0] == 409


def test_whoever_is_removed_is_refused_at_once(owner: Api, cast: Cast) -> None:
    developer = signed_in(cast.people[Role.DEVELOPER])
    assert developer.get("keys")[0] == 200
    member = member_of(cast, Role.DEVELOPER)
    assert owner.delete(f"members/{member.id}") == (204, None)
    assert developer.get("keys")[0] == 404
    row = AuditRow.objects.get(action="member.remove")
    assert (row.target, row.details) == (member.id, {"user": cast.people[Role.DEVELOPER].id, "role": "developer"})


def test_a_viewer_may_leave(cast: Cast) -> None:
    assert signed_in(cast.people[Role.VIEWER]).post("members/leave")[0] == 204
    assert "viewer@acme.example" not in roles_of(cast.acme)


def test_foreign_members_are_missing(stranger: Api, cast: Cast) -> None:
    member = member_of(cast, Role.VIEWER)
    assert stranger.patch(f"members/{member.id}", {"role": "owner"})[0] == 404
    assert stranger.delete(f"members/{member.id}")[0] == 404
    assert roles_of(cast.acme)["viewer@acme.example"] == "viewer"


def test_a_role_that_is_none_is_named(owner: Api, cast: Cast) -> None:
    status, body = owner.patch(f"members/{member_of(cast, Role.VIEWER).id}", {"role": "king"})
    assert (status, body["error"]["param"]) == (400, "role")


def test_the_table_of_grants_names_every_role() -> None:
    assert GRANTED_BY[Role.OWNER] == set(Role.values)
    for nobody in (None, "king", Role.DEVELOPER, Role.BILLING, Role.VIEWER):
        with pytest.raises(Refused):
            check_may_grant(nobody, Role.VIEWER)


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_remove_each_other_leave_one() -> None:
    """Each alone is allowed; both at once would leave the tenant to nobody. Real threads, real locks."""
    tenant = Tenant.objects.create(slug="duel", name="Duel")
    owners = [User.objects.create(email=f"{name}@duel.example") for name in ("a", "b")]
    members = [Membership.objects.create(tenant=tenant, user=user, role=Role.OWNER) for user in owners]

    def remove(index: int) -> str:
        try:
            remove_member(tenant=tenant, member_id=members[index].id, actor=owners[1 - index].id, own_role=Role.OWNER)
        except Refused as refused:
            return refused.code
        finally:
            connections.close_all()
        return "removed"

    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(copy_context().run, remove, index) for index in (0, 1)]
        assert sorted(job.result() for job in jobs) == ["last_owner", "removed"]
    assert Membership.objects.filter(tenant=tenant, role=Role.OWNER).count() == 1
