"""Operators and the people who cannot get in, or should not."""

from tenants.models import AuditRow
from tests.controlplane.conftest import PASSWORD, Api, Cast, signed_in


def test_people_are_found_by_a_part_of_their_address(operator: Api, cast: Cast) -> None:
    status, body = operator.get("operator/people?email=GLOBEX")
    expected = [("owner@globex.example", True, False, ["globex"])]
    assert (status, [(p["email"], p["is_active"], p["is_operator"], p["tenants"]) for p in body["data"]]) == (
        200,
        expected,
    )
    assert len(operator.get("operator/people")[1]["data"]) == 7
    assert "argon2" not in str(body)


def test_somebody_deactivated_is_out_at_once_and_back_when_told(operator: Api, cast: Cast) -> None:
    owner = signed_in(cast.owner)
    assert owner.get("session")[0] == 200
    status, body = operator.patch(f"operator/people/{cast.owner.id}", {"is_active": False})
    assert (status, body["is_active"]) == (200, False)
    assert owner.get("session")[0] == 401
    right = {"email": cast.owner.email, "password": PASSWORD}
    assert Api().post("session", right)[0] == 401
    operator.patch(f"operator/people/{cast.owner.id}", {"is_active": False})  # again changes nothing
    assert operator.patch(f"operator/people/{cast.owner.id}", {"is_active": True})[0] == 200
    assert owner.get("session")[0] == 401  # the old session stays ended
    assert Api().post("session", right)[0] == 200
    deeds = list(AuditRow.objects.filter(target=cast.owner.id).order_by("id").values_list("action", flat=True))
    assert deeds == ["person.deactivate", "person.activate"]


def test_an_operator_does_not_lock_themselves_out(operator: Api, cast: Cast) -> None:
    status, body = operator.patch(f"operator/people/{cast.operator.id}", {"is_active": False})
    assert (status, body["error"]["code"]) == (409, "yourself")
    assert operator.get("session")[0] == 200


def test_bad_requests_name_the_field_or_the_person(operator: Api, cast: Cast) -> None:
    status, body = operator.patch(f"operator/people/{cast.owner.id}", {})
    assert (status, body["error"]["param"]) == (400, "is_active")
    assert operator.patch("operator/people/usr_none", {"is_active": True})[0] == 404
    assert operator.post("operator/people/usr_none/reset-link")[0] == 404
