"""Setting up a tenant's identity provider and proving its domains."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controlplane.console import domain_proof, single_sign_on
from controlplane.fetcher import FetchFailed
from tenants.identity import IdentityProvider, LinkedIdentity, SignInDomain
from tenants.models import AuditRow, Role, Tenant
from tests.controlplane.conftest import Api, Cast, signed_in
from tests.controlplane.console.company_trips import NEW, add_domain, code_of, come_in, connect, set_up
from tests.controlplane.oidc_provider import Provider


def test_what_is_set_up_is_shown_without_the_secret(cast: Cast, owner: Api, provider: Provider) -> None:
    status, before = owner.get("tenant/single-sign-on")
    assert (status, before["provider"], before["is_required"], before["domains"]) == (200, None, False, [])
    assert before["redirect_uri"].endswith("/sign-in/company")
    status, body = set_up(owner, provider)
    assert status == 200
    assert body["provider"].items() >= {"issuer": provider.issuer, "default_role": "viewer"}.items()
    assert "secret" not in str(body["provider"])
    row = AuditRow.objects.get(action="single_sign_on.set")
    assert row.details["issuer"] == provider.issuer


@pytest.mark.parametrize("role", ["owner", "admin", "billing"])
def test_nobody_joins_as_more_than_a_developer(cast: Cast, owner: Api, provider: Provider, role: str) -> None:
    status, body = set_up(owner, provider, default_role=role)
    assert (status, body["error"]["param"]) == (400, "default_role")


@pytest.mark.parametrize(
    "discovery, text",
    [
        ({"issuer": "https://other.example"}, "https://other.example"),
        ({"token_endpoint": None}, "token_endpoint"),
        ({"jwks_uri": "ftp://files"}, "jwks_uri"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
    ],
)
def test_a_discovery_document_that_is_wrong_is_told(
    cast: Cast, owner: Api, provider: Provider, discovery: dict[str, Any], text: str
) -> None:
    provider.discovery = discovery
    status, body = set_up(owner, provider)
    assert (status, body["error"]["param"]) == (400, "issuer")
    assert text in body["error"]["message"]
    assert IdentityProvider.objects.count() == 0


@pytest.mark.parametrize(
    "issuer",
    ["nonsense", "ftp://a.example", "https://u:p@a.example", "http://169.254.169.254", "http://127.0.0.1:{port}"],
)
def test_an_issuer_inside_our_own_network_is_not_called(
    cast: Cast, owner: Api, provider: Provider, settings: Any, issuer: str
) -> None:
    settings.FETCH_ALLOWED_NETWORKS = ""
    status, body = set_up(owner, provider, issuer=issuer.format(port=provider.web.port))
    assert (status, body["error"]["param"]) == (400, "issuer")
    assert provider.web.asked == []


def test_another_issuer_knows_nobody_and_is_sent_no_old_secret(cast: Cast, owner: Api, ready: Provider) -> None:
    api, _, _ = come_in(ready, NEW)
    kept = {"issuer": ready.issuer, "client_id": "other id", "default_role": "developer"}
    assert owner.put("tenant/single-sign-on", kept)[0] == 200
    assert api.get("session")[0] == 200
    with Provider() as other:
        status, body = owner.put("tenant/single-sign-on", kept | {"issuer": other.issuer})
        assert (status, body["error"]["param"]) == (400, "client_secret")
        assert set_up(owner, other)[0] == 200
        assert api.get("session")[0] == 401
        assert LinkedIdentity.objects.count() == 0
        assert code_of(come_in(other, NEW)[2]) == "link_needed"


def test_taking_it_away_ends_what_it_opened_and_what_it_required(cast: Cast, owner: Api, ready: Provider) -> None:
    api, _, _ = come_in(ready, NEW)
    Tenant.objects.update(requires_single_sign_on=True)
    assert owner.delete("tenant/single-sign-on") == (204, None)
    assert api.get("session")[0] == 401
    assert signed_in(cast.people[Role.VIEWER]).get("adapters")[0] == 200
    assert owner.delete("tenant/single-sign-on")[0] == 404
    assert Api().post("session/company", {"tenant": "acme"})[0] == 404


def test_required_of_members_but_not_of_owners(cast: Cast, owner: Api, ready: Provider) -> None:
    kept = {"issuer": ready.issuer, "client_id": "veneer at acme", "default_role": "viewer", "is_required": True}
    status, body = owner.put("tenant/single-sign-on", kept)
    assert (status, code_of(body)) == (409, "nobody_linked")
    connect(cast, ready, cast.people[Role.DEVELOPER])
    assert owner.put("tenant/single-sign-on", kept)[1]["is_required"]
    developer = signed_in(cast.people[Role.DEVELOPER])
    assert developer.get("session")[1]["memberships"][0]["barred"] == "single_sign_on_needed"
    status, body = developer.get("keys")
    assert (status, code_of(body)) == (403, "single_sign_on_needed")
    through = come_in(ready, {"sub": "u-own", "email": "developer@acme.example"})[0]
    assert through.get("keys")[0] == 200
    assert owner.get("keys")[0] == 200
    viewer = signed_in(cast.people[Role.VIEWER])
    assert viewer.get("account/companies")[1]["data"][0]["tenant"]["slug"] == "acme", "the way in is still shown"


def test_the_tenants_own_second_factor_is_the_providers_business(cast: Cast, ready: Provider) -> None:
    Tenant.objects.filter(id=cast.acme.id).update(requires_second_factor=True)
    api, status, body = come_in(ready, NEW)
    assert (status, body["memberships"][0]["barred"]) == (200, None)
    assert api.get("adapters")[0] == 200


# --- domains ------------------------------------------------------------------------------------------------------


class Website:
    """Stands for the fetcher: what one address answers."""

    def __init__(self, status: int, content: bytes | None) -> None:
        self.status, self.content, self.asked = status, content, ""

    @contextmanager
    def open(self, url: str) -> Iterator["Website"]:
        self.asked = url
        if self.content is None:
            raise FetchFailed("the host 'acme.example' cannot be resolved")
        yield self

    def read(self, max_bytes: int) -> bytes:
        assert self.content is not None
        return self.content[:max_bytes]


def test_a_domain_is_confirmed_by_a_line_on_its_website(
    cast: Cast, owner: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, row = owner.post("tenant/single-sign-on/domains", {"name": " @Acme.Example "})
    assert (status, row["name"], row["confirmed_at"]) == (201, "acme.example", None)
    assert row["proof_url"] == "https://acme.example/.well-known/veneer-sign-in.txt"
    path = f"tenant/single-sign-on/domains/{row['id']}/confirm"
    line = row["proof_line"].encode()
    for website in (Website(200, None), Website(404, line), Website(200, line[:-1]), Website(200, b"\xff" + line)):
        monkeypatch.setattr(single_sign_on, "new_fetcher", lambda website=website: website)
        status, body = owner.post(path)
        assert (status, code_of(body)) == (409, "domain_not_proved")
        assert website.asked == row["proof_url"]
        assert row["proof_line"] in body["error"]["message"]
    monkeypatch.setattr(single_sign_on, "new_fetcher", lambda: Website(200, b"hello\r\n" + line + b"\r\n"))
    status, body = owner.post(path)
    assert status == 200
    assert body["confirmed_at"]
    assert owner.post(path)[1]["confirmed_at"] == body["confirmed_at"]
    assert AuditRow.objects.filter(action="single_sign_on.domain_confirm").count() == 1


def test_a_domain_is_one_tenants(cast: Cast, stranger: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    add_domain(cast.acme, "acme.example")
    monkeypatch.setattr(domain_proof, "proof_line", lambda domain: "same")
    monkeypatch.setattr(single_sign_on, "new_fetcher", lambda: Website(200, b"same"))
    row = stranger.post("tenant/single-sign-on/domains", {"name": "acme.example"})[1]
    status, body = stranger.post(f"tenant/single-sign-on/domains/{row['id']}/confirm")
    assert (status, code_of(body)) == (409, "domain_taken")
    assert SignInDomain.objects.get(id=row["id"]).confirmed_at is None


@pytest.mark.parametrize(
    "name", ["acme", "acme..example", "-acme.example", "10.0.0.1", "a b.example", "é.example", "x" * 254]
)
def test_what_is_no_domain_is_told(cast: Cast, owner: Api, name: str) -> None:
    status, body = owner.post("tenant/single-sign-on/domains", {"name": name})
    assert (status, body["error"]["param"]) == (400, "name")


def test_a_domain_is_listed_once_and_removed(cast: Cast, owner: Api, stranger: Api) -> None:
    row = owner.post("tenant/single-sign-on/domains", {"name": "acme.example"})[1]
    assert code_of(owner.post("tenant/single-sign-on/domains", {"name": "acme.example"})[1]) == "domain_known"
    assert stranger.delete(f"tenant/single-sign-on/domains/{row['id']}")[0] == 404
    assert owner.delete(f"tenant/single-sign-on/domains/{row['id']}") == (204, None)
    assert owner.get("tenant/single-sign-on")[1]["domains"] == []
