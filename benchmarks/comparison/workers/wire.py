"""How a server without HTTP is driven: JSON over a socket that it inherits. Needs nothing but Python itself."""

import json
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Json = dict[str, Any]


def serve(make: Callable[[Json], Callable[[Json], Json]]) -> None:
    """`make` builds the server from its settings; what it returns answers one call after the other, until the far end
    is gone. argv: the socket's number, the settings."""
    connection = Connection(int(sys.argv[1]))
    answer = make(json.loads(sys.argv[2]))
    connection.send_bytes(b"{}")
    while True:
        try:
            asked = json.loads(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(json.dumps(answer(asked)).encode())
