"""The simulator drives all tenants, as the platform does."""

from tests.controlplane.conftest import everybody

__all__ = ["everybody"]
