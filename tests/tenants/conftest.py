"""Tests look at all tenants' rows, as operators do, unless they say otherwise."""

from tests.controlplane.conftest import everybody

__all__ = ["everybody"]
