"""The OpenAI-shaped door, served by its own process and, on the same origin, by the console's."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from controlplane.inference.accounts import generation, key, usage
from controlplane.inference.api import chat_completions, completions
from controlplane.inference.catalog import model, models
from controlplane.inference.embeddings import embeddings
from controlplane.inference.endpoint import unknown_url
from controlplane.inference.registrations import job
from controlplane.inference.responses import responses
from controlplane.inference.tokens import detokenize, tokenize

urlpatterns: list[URLPattern | URLResolver] = [
    path("chat/completions", chat_completions),
    path("completions", completions),
    path("responses", responses),
    path("embeddings", embeddings),
    path("tokenize", tokenize),
    path("detokenize", detokenize),
    path("models", models),
    path("models/<path:name>", model),
    path("jobs/<slug:job_id>", job),
    path("usage", usage),
    path("key", key),
    path("generation", generation),
    path("", include("controlplane.batches.door_urls")),
    re_path(".*", unknown_url),
]
