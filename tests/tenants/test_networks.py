"""Where a caller is, whoever claims what, and which networks hold them."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from tenants.networks import BadNetwork, client_address, is_covered, is_inside, read_network


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "", "10.0.0.9"),
        (0, "198.51.100.7", "10.0.0.9"),  # nobody in front: what the header says is the caller's own invention
        (1, "198.51.100.7", "198.51.100.7"),
        (1, "6.6.6.6, 198.51.100.7", "198.51.100.7"),  # a forged hop stands left of the true one
        (2, "6.6.6.6, 198.51.100.7, 10.0.0.8", "198.51.100.7"),
        (2, "198.51.100.7", "198.51.100.7"),
        (1, "", "10.0.0.9"),
        (1, " , ,198.51.100.7, ", "198.51.100.7"),
    ],
)
def test_the_hop_that_our_own_proxies_saw(settings: Settings, proxies: int, forwarded: str, address: str) -> None:
    settings.TRUSTED_PROXIES = proxies
    assert client_address({"REMOTE_ADDR": "10.0.0.9", "HTTP_X_FORWARDED_FOR": forwarded}) == address


def test_an_ipv4_caller_on_a_socket_for_both() -> None:
    assert is_inside("::ffff:10.1.2.3", ["10.0.0.0/8"])
    assert not is_inside("::ffff:11.1.2.3", ["10.0.0.0/8"])


@pytest.mark.parametrize("address", ["", "unix:", "10.0.0", "10.0.0.1:80", "evil\x00"])
def test_what_is_no_address_is_nowhere(address: str) -> None:
    assert not is_inside(address, ["0.0.0.0/0", "::/0"])


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("office", "is no network: write it like"), ("10.0.0.0/33", "is no network"), ("10.1.2.3/8", "write 10.0.0.0/8")],
)
def test_a_network_that_is_none(text: str, remedy: str) -> None:
    with pytest.raises(BadNetwork, match=remedy):
        read_network(text)


@given(st.ip_addresses(v=4), st.integers(0, 32), st.ip_addresses(v=4), st.integers(0, 32))
def test_covered_is_what_the_library_calls_a_subnet(a: object, a_bits: int, b: object, b_bits: int) -> None:
    inner, outer = ip_network((str(a), a_bits), strict=False), ip_network((str(b), b_bits), strict=False)
    assert is_covered(str(inner), [str(outer)]) == inner.subnet_of(outer)  # type: ignore[arg-type]
    assert is_inside(str(a), [str(outer)]) == (ip_address(str(a)) in outer)
