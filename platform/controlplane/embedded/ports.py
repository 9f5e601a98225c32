"""Ports on 127.0.0.1."""

import random
import socket
from pathlib import Path

LOWEST = 10_000
HIGHEST = 65_535
KERNEL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
TRIES = 100


def free_port() -> int:
    """A port to listen at, now and after a restart, that no outgoing connection can take meanwhile.

    The kernel gives outgoing connections any port of its own range. One chosen there (as `bind` to port 0 does) may be
    gone before its server starts; worse, a client that redials a server that is down can connect to itself and hold
    the port. So the choice is made outside that range. Raises OSError when nothing is free.
    """
    ports = listening_ports()
    for _ in range(TRIES):
        port = random.choice(ports)
        if not is_busy(port):
            return port
    raise OSError(f"no free port on 127.0.0.1 in {TRIES} tries: end some of the servers that listen there")


def listening_ports() -> list[int]:
    """All but the kernel's own; every one where the kernel's range leaves nothing else."""
    try:
        low, high = map(int, KERNEL_RANGE.read_text().split())
    except OSError:
        low, high = 32_768, 60_999
    outside = [*range(LOWEST, min(low, HIGHEST)), *range(max(high + 1, LOWEST), HIGHEST + 1)]
    return outside or list(range(LOWEST, HIGHEST + 1))


def is_busy(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
        return False
