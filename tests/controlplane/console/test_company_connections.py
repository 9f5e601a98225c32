"""An account that exists is connected to a company's identity provider by its owner, and by nobody else."""

from controlplane.console import company_sign_in
from tenants.identity import LinkedIdentity
from tenants.models import AuditRow, Role
from tests.controlplane.conftest import PASSWORD, Cast, signed_in
from tests.controlplane.console.company_trips import code_of, come_in, connect
from tests.controlplane.oidc_provider import Provider


def test_connecting_takes_the_password_and_the_same_address(cast: Cast, ready: Provider) -> None:
    api = signed_in(cast.people[Role.ADMIN])
    wrong = api.post("account/companies", {"tenant": cast.acme.id, "password": "not it"})
    assert (wrong[0], code_of(wrong[1])) == (403, "wrong_password")
    foreign = api.post("account/companies", {"tenant": cast.globex.id, "password": PASSWORD})
    assert (foreign[0], code_of(foreign[1])) == (404, "no_company")
    url = api.post("account/companies", {"tenant": cast.acme.id, "password": PASSWORD})[1]["url"]
    back = ready.visit(url, sub="colleague", email="viewer@acme.example")
    status, body = api.post("session/company/finish", back)
    assert (status, code_of(body)) == (409, "another_account")
    assert LinkedIdentity.objects.count() == 0


def test_connecting_ends_where_somebody_else_is_signed_in_meanwhile(cast: Cast, ready: Provider) -> None:
    api, admin = signed_in(cast.people[Role.ADMIN]), cast.people[Role.ADMIN]
    url = api.post("account/companies", {"tenant": cast.acme.id, "password": PASSWORD})[1]["url"]
    back = ready.visit(url, sub="x", email=admin.email)
    session = api.client.session
    away = session[company_sign_in.AWAY]
    api.client.force_login(cast.people[Role.VIEWER])
    session = api.client.session
    session[company_sign_in.AWAY] = away
    session.save()
    status, body = api.post("session/company/finish", back)
    assert (status, code_of(body)) == (401, "begin_again")
    assert LinkedIdentity.objects.count() == 0


def test_what_is_connected_is_listed_and_disconnected(cast: Cast, ready: Provider) -> None:
    user = cast.people[Role.ADMIN]
    api = connect(cast, ready, user)
    [row] = api.get("account/companies")[1]["data"]
    assert (row["tenant"]["slug"], row["issuer"], bool(row["linked_at"])) == ("acme", ready.issuer, True)
    remove = f"account/companies/{row['link_id']}/remove"
    assert code_of(api.post(remove, {"password": "not it"})[1]) == "wrong_password"
    assert signed_in(cast.people[Role.VIEWER]).post(remove, {"password": PASSWORD})[0] == 404
    assert api.post(remove, {"password": PASSWORD}) == (204, None)
    assert api.get("account/companies")[1]["data"][0]["link_id"] is None
    assert code_of(come_in(ready, {"sub": "u-own", "email": user.email})[2]) == "link_needed"
    actions = set(AuditRow.objects.filter(actor=user.id).values_list("action", flat=True))
    assert {"single_sign_on.link", "single_sign_on.unlink", "person.company_link"} <= actions
