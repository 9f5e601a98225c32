"""A lean engine for benchmarks of the door: it speaks the real wire, and each of its steps brings every request one
more word. `python -m benchmarks.serving.engine URL`."""

import sys
import time

import zmq

from benchmarks.serving.work import STEP_SECONDS, WORDS
from engine import protocol as wire

_CONTEXT = 8192
_USAGE_NS = 2_000_000


class LeanEngine:
    """Requests under way, by the gateway that asked for them; one frame per step and gateway, as the real one sends."""

    def __init__(self, url: str) -> None:
        self._socket = zmq.Context.instance().socket(zmq.ROUTER)
        self._socket.linger = 0
        self._socket.rcvhwm = self._socket.sndhwm = 0
        self._socket.bind(url)
        self._running: dict[bytes, dict[str, tuple[int, int]]] = {}

    def serve(self) -> None:
        due = time.monotonic()
        while True:
            wait = max(0.0, due - time.monotonic()) if any(self._running.values()) else 1.0
            if self._socket.poll(int(-(-wait * 1000 // 1))):
                self._receive(*self._socket.recv_multipart())
            if time.monotonic() >= due:
                self._step()
                due = time.monotonic() + STEP_SECONDS

    def _receive(self, peer: bytes, frame: bytes) -> None:
        match wire.decode_request(frame):
            case wire.Describe(call_id):
                self._send(peer, [_description(call_id)])
            case wire.Prepare(call_id, messages):
                text = "".join(message.content for message in messages or ())
                self._send(peer, [wire.Prepared(call_id, tuple(text.encode()))])
            case wire.Generate() as asked:
                self._running.setdefault(peer, {})[asked.request_id] = (len(asked.token_ids), 0)
            case wire.Abort(request_id):
                prompt, at = self._running.get(peer, {}).pop(request_id, (0, 0))
                usage = wire.Usage(prompt, 0, at, _USAGE_NS)
                self._send(peer, [wire.TokenEvent(request_id, "", (), "cancelled", usage)])

    def _step(self) -> None:
        for peer, jobs in self._running.items():
            events: list[wire.Event] = []
            for request_id, (prompt, at) in list(jobs.items()):
                is_last = at + 1 == len(WORDS)
                usage = wire.Usage(prompt, 0, at + 1, _USAGE_NS) if is_last else None
                reason = "stop" if is_last else None
                events.append(wire.TokenEvent(request_id, WORDS[at], (at,), reason, usage))
                if is_last:
                    del jobs[request_id]
                else:
                    jobs[request_id] = (prompt, at + 1)
            if events:
                self._send(peer, events)

    def _send(self, peer: bytes, events: list[wire.Event]) -> None:
        self._socket.send_multipart([peer, wire.encode_events(events)])


def _description(call_id: str) -> wire.Description:
    return wire.Description(call_id, "bench", "boot-1", "base", _CONTEXT, 10**6, 64, 4, "cpu", False)


if __name__ == "__main__":
    LeanEngine(sys.argv[1]).serve()
