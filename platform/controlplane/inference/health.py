"""GET /health: for supervisors and load balancers. Says nothing that a stranger may not know."""

from django.http import HttpRequest, HttpResponse

from controlplane.inference.replies import json_reply
from controlplane.inference.resources import door_of


async def health(request: HttpRequest) -> HttpResponse:
    """200 as long as the door answers. An engine that is away is told, and is no reason to restart the door."""
    is_up = door_of(request).engine.is_up
    body = {"status": "ok" if is_up else "degraded", "engine": "up" if is_up else "away"}
    return json_reply(body)
