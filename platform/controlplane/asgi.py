"""The console's process: management API, pages and events, on stock Django. The door has its own (`inference`)."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django.setup(set_prefix=False)

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402  # all below need the apps to be loaded
from channels.sessions import CookieMiddleware  # noqa: E402
from django.core.handlers.asgi import ASGIHandler  # noqa: E402
from django.urls import path  # noqa: E402

from controlplane.console.body_limit import BodyLimit  # noqa: E402
from controlplane.console.consumer import EventsConsumer  # noqa: E402
from controlplane.inference.resources import WithDoor  # noqa: E402

# The playground talks to /v1 on the pages' own origin, so this process has a door as well.
application = WithDoor(
    ProtocolTypeRouter(
        {
            "http": BodyLimit(ASGIHandler()),
            "websocket": CookieMiddleware(URLRouter([path("ws/events", EventsConsumer.as_asgi())])),
        }
    )
)
