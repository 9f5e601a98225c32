"""All that the door's own process serves."""

from django.urls import include, path

from controlplane.inference.health import health

urlpatterns = [
    path("v1/", include("controlplane.inference.urls")),
    path("health", health),
]
