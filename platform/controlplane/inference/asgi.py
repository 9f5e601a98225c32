"""`uvicorn controlplane.inference.asgi:application`: the door in its own process."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django.setup(set_prefix=False)

from controlplane.inference.lean import LeanHandler  # noqa: E402  # the apps must be ready before
from controlplane.inference.resources import WithDoor  # noqa: E402

application = WithDoor(LeanHandler("controlplane.inference.door_urls"))
