"""A browser's end of a WebSocket, straight into the ASGI application."""

import json
from typing import Any
from urllib.parse import urlsplit

from asgiref.testing import ApplicationCommunicator


class WebSocket(ApplicationCommunicator):
    def __init__(self, application: Any, address: str, headers: list[tuple[bytes, bytes]]) -> None:
        url = urlsplit(address)
        scope = {
            "type": "websocket",
            "path": url.path,
            "query_string": url.query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        super().__init__(application, scope)

    async def connect(self) -> bool:
        """Whether we were let in."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout=10)
        return bool(answer["type"] == "websocket.accept")

    async def send(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def receive(self) -> Any:
        message = await self.receive_output(timeout=10)
        assert message["type"] == "websocket.send", message
        return json.loads(message["text"])

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=10)
