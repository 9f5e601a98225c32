"""Does it answer yet? Each probe is cheap, never raises, and is asked again until it says yes."""

import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress

import msgspec
import psycopg
import redis
import zmq

from engine.protocol import Describe, Description, decode_events, encode_request

Probe = Callable[[], bool]


def postgres_answers(url: str) -> Probe:
    def probe() -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=2) as conn:
            return conn.execute("SELECT 1").fetchone() == (1,)
        return False

    return probe


def valkey_answers(url: str) -> Probe:
    def probe() -> bool:
        with suppress(redis.RedisError), redis.Redis.from_url(url, socket_timeout=2) as client:
            return bool(client.ping())
        return False

    return probe


def http_answers(url: str) -> Probe:
    """Any answer below 500 will do: 401 says that the door is there."""

    def probe() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310  # our own http:// address
                return True
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code < 500
        except OSError:
            return False

    return probe


def engine_answers(url: str) -> Probe:
    """It describes itself: the model is loaded and the step thread runs."""

    def probe() -> bool:
        return describe_engine(url, seconds=0.5) is not None

    return probe


def describe_engine(url: str, *, seconds: float) -> Description | None:
    """Ask an engine what it serves; None when it does not say so in time."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    try:
        socket.connect(url)
        socket.send(encode_request(Describe(call_id="probe")))
        if not socket.poll(int(seconds * 1000)):
            return None
        events = decode_events(socket.recv())
        return next((event for event in events if isinstance(event, Description)), None)
    except (zmq.ZMQError, msgspec.MsgspecError):
        return None
    finally:
        socket.close()
        context.term()
