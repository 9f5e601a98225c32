"""A gateway for tests: one DEALER, one call at a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import zmq

from engine.protocol import (
    EngineError,
    Event,
    Ping,
    Request,
    TokenEvent,
    decode_events,
    encode_request,
)


class Gateway:
    def __init__(self, url: str) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.connect(url)
        self.frames: list[list[Event]] = []

    def send(self, request: Request) -> None:
        self.socket.send(encode_request(request))

    def receive(self, seconds: float = 20.0) -> list[Event]:
        """The next frame. Pings while it waits, as a gateway has to."""
        deadline = time.monotonic() + seconds
        while not self.socket.poll(500):
            if time.monotonic() > deadline:
                raise TimeoutError("the engine says nothing")
            self.send(Ping())
        frame = decode_events(self.socket.recv())
        self.frames.append(frame)
        return frame

    def ask(self, request: Request) -> Event:
        """The answer to a call that has exactly one."""
        self.send(request)
        (answer,) = self.receive()
        return answer

    def until(self, wanted: Callable[[Event], bool]) -> list[Event]:
        """Every event up to the first one wanted."""
        seen: list[Event] = []
        while True:
            for event in self.receive():
                seen.append(event)
                if wanted(event):
                    return seen

    def close(self) -> None:
        self.socket.close(linger=0)
        self.context.term()


def is_last(event: Event) -> bool:
    return isinstance(event, EngineError) or (isinstance(event, TokenEvent) and event.usage is not None)


@contextmanager
def gateway(url: str) -> Iterator[Gateway]:
    connected = Gateway(url)
    try:
        yield connected
    finally:
        connected.close()
