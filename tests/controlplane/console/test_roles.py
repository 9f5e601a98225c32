"""Who may do what: every route of the management API, for every role, scope, operator and stranger.

The routes are those of the URLconf: one that this table does not name fails the test.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.key_services import issue_key
from tenants.permissions import ACTIONS, ROLE_ACTIONS, SCOPE_ACTIONS, SCOPES, role_can, scopes_can
from tests.controlplane.conftest import Api, Cast, signed_in, with_key

PEOPLE = "owner admin developer billing viewer"
READ = "owner admin developer viewer manage"
WRITE = "owner admin developer manage"
ADMIN = "owner admin"
USAGE = f"{PEOPLE} usage:read"
MONEY = "owner admin billing usage:read"
OPERATOR = "operator"
ANYBODY = f"{PEOPLE} operator {' '.join(SCOPES)} nobody"

# Who may, by method and route. A scope stands for a key that has only that one.
MAY = {
    "GET schema": ANYBODY,
    "GET session": f"{PEOPLE} operator",
    "POST session": ANYBODY,
    "DELETE session": f"{PEOPLE} operator",
    "POST session/code": ANYBODY,
    "POST session/passkey": ANYBODY,
    "POST session/passkey/start": ANYBODY,
    "POST session/company": ANYBODY,
    "POST session/company/finish": ANYBODY,
    "GET account/companies": f"{PEOPLE} operator",
    "POST account/companies": f"{PEOPLE} operator",
    "POST account/companies/<link_id>/remove": f"{PEOPLE} operator",
    "GET account/second-factor": f"{PEOPLE} operator",
    "POST account/totp": f"{PEOPLE} operator",
    "POST account/totp/confirm": f"{PEOPLE} operator",
    "POST account/totp/end": f"{PEOPLE} operator",
    "POST account/recovery-codes": f"{PEOPLE} operator",
    "POST account/passkeys/start": f"{PEOPLE} operator",
    "POST account/passkeys": f"{PEOPLE} operator",
    "POST account/passkeys/<passkey_id>/remove": f"{PEOPLE} operator",
    "GET tenant/second-factor": "owner admin",
    "PUT tenant/second-factor": "owner",
    "GET tenant/single-sign-on": ADMIN,
    "PUT tenant/single-sign-on": ADMIN,
    "DELETE tenant/single-sign-on": ADMIN,
    "POST tenant/single-sign-on/domains": ADMIN,
    "DELETE tenant/single-sign-on/domains/<domain_id>": ADMIN,
    "POST tenant/single-sign-on/domains/<domain_id>/confirm": ADMIN,
    "PUT account/password": f"{PEOPLE} operator",
    "POST account/password/reset": ANYBODY,
    "POST account/password/new": ANYBODY,
    "GET account/sessions": f"{PEOPLE} operator",
    "POST account/sessions/end-others": f"{PEOPLE} operator",
    "DELETE account/sessions/<session_id>": f"{PEOPLE} operator",
    "GET keys": WRITE,
    "POST keys": WRITE,
    "GET keys/<key_id>": WRITE,
    "PATCH keys/<key_id>": WRITE,
    "POST keys/<key_id>/rotate": WRITE,
    "POST keys/<key_id>/revoke": WRITE,
    "GET keys/<key_id>/limits": WRITE,
    "PUT keys/<key_id>/limits": WRITE,
    "GET limits": USAGE,
    "GET limits/near": USAGE,
    "GET members/<member_id>/limits": ADMIN,
    "PUT members/<member_id>/limits": ADMIN,
    "GET adapters/<adapter_id>/limits": READ,
    "PUT adapters/<adapter_id>/limits": ADMIN,
    "POST playground/key": "owner admin developer",
    "GET adapters": READ,
    "POST adapters": WRITE,
    "POST adapters/import": WRITE,
    "GET adapters/residency": READ,
    "GET adapters/shared": READ,
    "DELETE adapters/shared/<adapter_id>": WRITE,
    "GET adapters/<adapter_id>": READ,
    "DELETE adapters/<adapter_id>": WRITE,
    "PUT adapters/<adapter_id>/alias": WRITE,
    "POST adapters/<adapter_id>/rollback": WRITE,
    "GET adapters/<adapter_id>/grants": READ,
    "POST adapters/<adapter_id>/grants": WRITE,
    "DELETE adapters/<adapter_id>/grants/<grant_id>": WRITE,
    "PUT adapters/<adapter_id>/grants/<grant_id>/markup": WRITE,
    "GET markups": USAGE,
    "GET price-plan": USAGE,
    "GET earnings": MONEY,
    "PUT adapters/<adapter_id>/pin": ADMIN,
    "GET adapters/<adapter_id>/traffic": READ,
    "GET adapters/<adapter_id>/prompt-sets": READ,
    "POST adapters/<adapter_id>/prompt-sets": WRITE,
    "GET prompt-sets/<prompt_set_id>": READ,
    "DELETE prompt-sets/<prompt_set_id>": WRITE,
    "GET adapters/<adapter_id>/evaluations": READ,
    "POST adapters/<adapter_id>/evaluations": "owner admin developer",
    "GET evaluations/<evaluation_id>": READ,
    "DELETE evaluations/<evaluation_id>": WRITE,
    "POST evaluations/<evaluation_id>/cancel": WRITE,
    "GET versions/<version_id>": READ,
    "DELETE versions/<version_id>": WRITE,
    "GET versions/<version_id>/files/<name>": READ,
    "PUT versions/<version_id>/files/<name>": WRITE,
    "POST versions/<version_id>/finish": WRITE,
    "GET batches": USAGE,
    "GET batches/<batch_id>": USAGE,
    "GET batches/<batch_id>/lines": USAGE,
    "POST batches/<batch_id>/cancel": "owner admin developer inference",
    "GET usage": USAGE,
    "GET usage/timeseries": USAGE,
    "GET usage/composition": USAGE,
    "GET usage/latency": USAGE,
    "GET usage/generations": USAGE,
    "GET usage/generations/export": USAGE,
    "GET usage/generations/<request_id>": USAGE,
    "GET prices": USAGE,
    "GET balance": MONEY,
    "GET statements": MONEY,
    "GET statements/<statement_id>": MONEY,
    "GET invoices": MONEY,
    "GET invoices/<invoice_id>": MONEY,
    "GET invoices/<invoice_id>/csv": MONEY,
    "GET invoices/<invoice_id>/pdf": MONEY,
    "GET alerts": MONEY,
    "GET webhooks": ADMIN,
    "POST webhooks": ADMIN,
    "GET webhooks/<endpoint_id>": ADMIN,
    "PATCH webhooks/<endpoint_id>": ADMIN,
    "DELETE webhooks/<endpoint_id>": ADMIN,
    "POST webhooks/<endpoint_id>/rotate": ADMIN,
    "POST webhooks/<endpoint_id>/test": ADMIN,
    "GET webhooks/<endpoint_id>/deliveries": ADMIN,
    "POST deliveries/<delivery_id>/resend": ADMIN,
    "GET operator/alerts": OPERATOR,
    "GET agreement": MONEY,
    "GET grants": MONEY,
    "GET payments": MONEY,
    "POST payments": "owner admin billing",
    "GET payments/options": MONEY,
    "POST stripe/notices": ANYBODY,
    "GET billing-profile": MONEY,
    "PATCH billing-profile": "owner admin billing",
    "GET members": "owner admin",
    "GET members/<member_id>": "owner admin",
    "PATCH members/<member_id>": "owner admin",
    "DELETE members/<member_id>": "owner admin",
    "POST members/leave": PEOPLE,
    "GET invitations": "owner admin",
    "POST invitations": "owner admin",
    "DELETE invitations/<invitation_id>": "owner admin",
    "POST invitations/look": ANYBODY,
    "POST invitations/accept": ANYBODY,
    "GET audit": "owner admin",
    "GET audit/export": "owner admin",
    "GET operator/audit": OPERATOR,
    "GET operator/fleet": OPERATOR,
    "POST operator/fleet/<replica>/drain": OPERATOR,
    "POST operator/fleet/<replica>/resume": OPERATOR,
    "POST operator/fleet/<replica>/restart": OPERATOR,
    "GET operator/base-models": OPERATOR,
    "GET operator/health": OPERATOR,
    "GET operator/jobs": OPERATOR,
    "GET operator/incoming": OPERATOR,
    "GET operator/batches": OPERATOR,
    "GET operator/tenant-alerts": OPERATOR,
    "POST operator/tenants/<tenant_id>/suspend": OPERATOR,
    "POST operator/tenants/<tenant_id>/reactivate": OPERATOR,
    "POST operator/tenants/<tenant_id>/act-for": OPERATOR,
    "POST operator/act-for/end": OPERATOR,
    "GET operator/people": OPERATOR,
    "GET operator/people/<user_id>": OPERATOR,
    "PATCH operator/people/<user_id>": OPERATOR,
    "POST operator/people/<user_id>/reset-link": OPERATOR,
    "POST operator/people/<user_id>/forget-factors": OPERATOR,
    "GET operator/tenants": OPERATOR,
    "POST operator/tenants": OPERATOR,
    "GET operator/tenants/<tenant_id>/limits": OPERATOR,
    "PUT operator/tenants/<tenant_id>/limits": OPERATOR,
    "GET operator/tenants/<tenant_id>/grants": OPERATOR,
    "POST operator/tenants/<tenant_id>/grants": OPERATOR,
    "POST operator/tenants/<tenant_id>/close": OPERATOR,
    "GET operator/tenants/<tenant_id>/agreements": OPERATOR,
    "POST operator/tenants/<tenant_id>/agreements": OPERATOR,
    "GET operator/tenants/<tenant_id>/billing-profile": OPERATOR,
    "PATCH operator/tenants/<tenant_id>/billing-profile": OPERATOR,
    "GET operator/tenants/<tenant_id>/invoices": OPERATOR,
    "GET operator/tenants/<tenant_id>/invoices/<invoice_id>": OPERATOR,
    "GET operator/tenants/<tenant_id>/invoices/<invoice_id>/pdf": OPERATOR,
    "POST operator/tenants/<tenant_id>/invoices/<invoice_id>/entries": OPERATOR,
    "GET operator/prices": OPERATOR,
    "POST operator/prices": OPERATOR,
    "POST operator/prices/preview": OPERATOR,
    "GET operator/margin": OPERATOR,
    "GET operator/margin/export": OPERATOR,
    "GET operator/discrepancies": OPERATOR,
    "POST operator/discrepancies/<discrepancy_id>/resolve": OPERATOR,
}
# Not the management API: the door checks keys itself, the rest shows nothing of anybody.
ELSEWHERE = r"v1/|healthz$|api/docs$|\^\(\?!"


def patterns(entries: list[Any], before: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in entries:
        path = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry.url_patterns, path)
        else:
            yield path, entry


def routes() -> Iterator[str]:
    for path, entry in patterns(get_resolver().url_patterns):
        if re.match(ELSEWHERE, path):
            continue
        assert path.startswith("api/v1/"), f"{path}: a new kind of address; say here who may call it"
        view = entry.callback.cls  # type: ignore[attr-defined]  # every management view is a class
        route = re.sub(r"<\w+:(\w+)>", r"<\1>", path.removeprefix("api/v1/"))
        for method in ("get", "post", "put", "patch", "delete"):
            if hasattr(view, method):
                yield f"{method.upper()} {route}"


def test_every_route_has_an_entry_and_every_entry_a_route() -> None:
    assert sorted(routes()) == sorted(MAY)


@pytest.fixture
def callers(cast: Cast) -> dict[str, Api]:
    """Everybody who might call: people by role, the operator, keys by their one scope, and nobody."""
    people = {role: signed_in(user) for role, user in cast.people.items()}
    keys = {
        scope: with_key(issue_key(tenant=cast.acme, name=scope, scopes=(scope,), actor=cast.owner)[1])
        for scope in SCOPES
    }
    return {**people, **keys, "operator": signed_in(cast.operator), "nobody": Api()}


@pytest.mark.parametrize("route", sorted(MAY))
def test_only_those_who_may_get_through(callers: dict[str, Api], route: str) -> None:
    method, path = route.split()
    path = re.sub(r"<(discrepancy|delivery)_id>", "999", path)
    path = re.sub(r"<\w+>", "none", path)
    let_in = set()
    for who, api in callers.items():
        response = api.raw(method, path)
        status = response.status_code
        assert status < 500, (who, response.content)
        if status == 401 and response.json()["error"]["code"] == "sign_in_again":
            let_in.add(who)  # the second step of signing in, which asks nobody for more than to begin with the first
        elif status in {401, 403}:
            assert status == (401 if who == "nobody" else 403), (who, response.content)
        elif not (status == 404 and response.json()["error"]["code"] == "no_tenant"):
            let_in.add(who)
    assert let_in == set(MAY[route].split())


def test_an_operator_of_no_tenant_is_told_so(operator: Api) -> None:
    status, body = operator.get("keys")
    assert (status, body["error"]["code"]) == (404, "no_tenant")


def test_what_the_tables_do_not_grant_is_denied() -> None:
    for action in ACTIONS:
        assert not role_can("nobody", action)
        assert not scopes_can((), action)
    granted = frozenset().union(*ROLE_ACTIONS.values(), *SCOPE_ACTIONS.values())
    assert granted == frozenset(ACTIONS)
    assert [scope for scope, actions in SCOPE_ACTIONS.items() if "members:write" in actions] == []


@pytest.mark.parametrize("path", ["keys/%00/limits", "operator/tenants/%00/limits", "statements/%00", "adapters/%00"])
def test_an_address_with_a_nul_is_missing(operator: Api, owner: Api, path: str) -> None:
    api = operator if path.startswith("operator") else owner
    assert api.get(path)[0] == 404
