"""Keys as text, and the HMAC that stands for them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.auth import InvalidKey, authenticate_plan
from tenants.key_services import issue_key
from tenants.keys import digest_of, is_same, new_key_text, parse_key
from tenants.models import ApiKey, Tenant
from tenants.scope import tenant_scope
from tenants.sql import run_sync


def test_a_new_key_parses_and_no_two_are_alike() -> None:
    keys = [new_key_text() for _ in range(200)]
    assert len({key.raw for key in keys}) == len({key.prefix for key in keys}) == 200
    assert [parse_key(key.raw) for key in keys] == keys


@given(st.integers(0, 55), st.sampled_from("0Az_-é \x00"))
def test_one_wrong_character_is_no_key(at: int, char: str) -> None:
    raw = new_key_text().raw
    at = min(at, len(raw) - 1)
    changed = raw[:at] + char + raw[at + 1 :]
    assert changed == raw or parse_key(changed) is None


@given(st.text())
def test_text_is_no_key(text: str) -> None:
    assert parse_key(text) is None


def test_a_digest_is_of_its_pepper(settings: Any) -> None:
    settings.KEY_PEPPERS = {1: b"a" * 32, 2: b"b" * 32}
    raw = new_key_text().raw
    old, new = digest_of(raw, 1), digest_of(raw, 2)
    assert old is not None
    assert new is not None
    assert old != new
    assert is_same(raw, old, 1)
    assert not is_same(raw, old, 2)
    assert not is_same(raw, old, 3)


@pytest.mark.django_db
def test_a_new_pepper_leaves_old_keys_alive_and_a_retired_one_ends_them(settings: Any) -> None:
    settings.KEY_PEPPERS = {1: b"a" * 32}
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    _, old = issue_key(tenant=tenant, name="old", scopes=("inference",), actor=None)
    settings.KEY_PEPPERS = {1: b"a" * 32, 2: b"b" * 32}
    key, new = issue_key(tenant=tenant, name="new", scopes=("inference",), actor=None)
    assert key.pepper_version == 2
    assert [run_sync(authenticate_plan(raw)).key_name for raw in (old, new)] == ["old", "new"]
    settings.KEY_PEPPERS = {2: b"b" * 32}
    assert run_sync(authenticate_plan(new)).key_name == "new"
    with pytest.raises(InvalidKey):
        run_sync(authenticate_plan(old))


@pytest.mark.django_db
def test_the_prefix_alone_opens_nothing() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    key, raw = issue_key(tenant=tenant, name="ci", scopes=("inference",), actor=None)
    forged = new_key_text().raw
    body = f"vnr_{key.prefix}_{forged.split('_')[2]}"
    assert parse_key(body) is None  # the checksum covers the prefix
    with tenant_scope(tenant.id):
        ApiKey.objects.filter(id=key.id).update(digest="0" * 64)
    with pytest.raises(InvalidKey):
        run_sync(authenticate_plan(raw))


@pytest.mark.django_db
def test_a_closed_tenants_keys_open_nothing() -> None:
    tenant = Tenant.objects.create(slug="acme", name="Acme")
    _, raw = issue_key(tenant=tenant, name="ci", scopes=("inference",), actor=None)
    Tenant.objects.update(is_active=False)
    with pytest.raises(InvalidKey):
        run_sync(authenticate_plan(raw))
