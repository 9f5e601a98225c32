"""Veneer's management API from Python. `Veneer` is the client, `models` are the types of the API's schema."""

from veneer_client.client import Veneer
from veneer_client.login import NotLoggedIn
from veneer_client.transport import Refused, Unreachable

__all__ = ["NotLoggedIn", "Refused", "Unreachable", "Veneer"]
