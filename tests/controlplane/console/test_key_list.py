"""Keys are found by their name and state."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tenants.key_services import issue_key, revoke_key
from tests.controlplane.conftest import Api, Cast


@pytest.fixture
def keys(cast: Cast) -> None:
    def issue(name: str, **more: object) -> str:
        scopes = ("inference",)
        return issue_key(tenant=cast.acme, name=name, scopes=scopes, actor=None, **more)[0].id  # type: ignore[arg-type]

    past = timezone.now() - timedelta(seconds=1)
    issue("Bot %", expires_at=timezone.now() + timedelta(days=1))
    issue("bot over", expires_at=past)
    gone = issue("bot gone", expires_at=past)
    revoke_key(tenant=cast.acme, key_id=gone, actor="usr")


def names(api: Api, query: str) -> set[str]:
    return {each["name"] for each in api.get(f"keys?{query}")[1]["data"]}


def test_keys_are_found_by_name_and_state(keys: None, owner: Api) -> None:
    assert names(owner, "q=BOT") == {"Bot %", "bot over", "bot gone"}
    assert names(owner, "q=%25") == {"Bot %"}
    assert names(owner, "state=active") == {"Bot %", "acme program"}
    assert names(owner, "state=expired") == {"bot over"}
    assert names(owner, "state=revoked") == {"bot gone"}
    assert names(owner, "q=bot&state=active") == {"Bot %"}
    assert owner.get("keys?state=odd")[1]["error"]["param"] == "state"
