"""A company with an identity provider of its own."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.conftest import Api, Cast
from tests.controlplane.console.company_trips import add_domain, set_up
from tests.controlplane.oidc_provider import Provider


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    settings.FETCH_ALLOWED_NETWORKS = "127.0.0.0/8"
    with Provider() as found:
        yield found


@pytest.fixture
def ready(cast: Cast, owner: Api, provider: Provider) -> Provider:
    """Acme has a provider, and acme.example is its own."""
    assert set_up(owner, provider)[0] == 200
    add_domain(cast.acme, "acme.example")
    return provider
