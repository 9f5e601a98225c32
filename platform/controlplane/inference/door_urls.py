"""All that the door's own process serves."""

from django.urls import include, path

from controlplane.inference.health import health
from controlplane.inference.openapi import openapi
from controlplane.inference.tokens import detokenize, tokenize

urlpatterns = [
    path("v1/", include("controlplane.inference.urls")),
    path("tokenize", tokenize),  # where vLLM has them
    path("detokenize", detokenize),
    path("health", health),
    path("openapi.json", openapi),
]
