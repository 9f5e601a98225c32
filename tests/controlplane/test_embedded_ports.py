"""A port that a server is given must still be free when the server starts, and when it starts again."""

import socket
from pathlib import Path

import pytest

from controlplane.embedded import ports


def kernel_range() -> range:
    low, high = map(int, ports.KERNEL_RANGE.read_text().split())
    return range(low, high + 1)


def test_no_outgoing_connection_can_take_it() -> None:
    assert not {ports.free_port() for _ in range(200)} & set(kernel_range())


def test_bind_to_zero_would_hand_out_what_connections_take() -> None:
    """What the choice avoids: the kernel's own pick lies in the range that it gives to connections."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        assert probe.getsockname()[1] in kernel_range()


def test_a_port_that_is_listened_at_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports.free_port()))
        taken.listen()
        busy = taken.getsockname()[1]
        monkeypatch.setattr(ports, "listening_ports", lambda: [busy])
        with pytest.raises(OSError, match=r"no free port on 127\.0\.0\.1 in 100 tries: end some"):
            ports.free_port()


@pytest.mark.parametrize(
    ("kernel", "some", "none"),
    [("32768\t60999", {10_000, 32_767, 61_000, 65_535}, {32_768, 60_999}), ("1024\t65535", {10_000, 65_535}, set())],
)
def test_kernel_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, some: set[int], none: set[int]
) -> None:
    """The usual range, and one that leaves nothing outside."""
    (tmp_path / "range").write_text(kernel)
    monkeypatch.setattr(ports, "KERNEL_RANGE", tmp_path / "range")
    found = set(ports.listening_ports())
    assert some <= found
    assert not none & found
