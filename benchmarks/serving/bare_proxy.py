"""The least that a proxy in Python can do: Starlette hands each request on and streams the answer back. No key is
checked, nothing is counted. Run by uvicorn with UPSTREAM set."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    limits = httpx.Limits(max_connections=256, max_keepalive_connections=256)
    async with httpx.AsyncClient(base_url=os.environ["UPSTREAM"], limits=limits, timeout=60) as client:
        app.state.client = client
        yield


async def _forward(request: Request) -> StreamingResponse:
    client: httpx.AsyncClient = request.app.state.client
    asked = client.build_request(
        "POST", request.url.path, content=await request.body(), headers={"content-type": "application/json"}
    )
    answer = await client.send(asked, stream=True)
    headers = {name: answer.headers[name] for name in ("content-type", "content-length") if name in answer.headers}
    return StreamingResponse(
        answer.aiter_raw(), status_code=answer.status_code, headers=headers, background=BackgroundTask(answer.aclose)
    )


app = Starlette(routes=[Route("/v1/chat/completions", _forward, methods=["POST"])], lifespan=_lifespan)
