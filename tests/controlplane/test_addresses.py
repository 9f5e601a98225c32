"""Which addresses a tenant may have us call, in every notation that hides one."""

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.addresses import AddressRefused, check_address, check_host, is_public, read_networks

NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.1.2.3 169.254.169.254 169.254.0.1
172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8 ::127.0.0.1 64:ff9b::7f00:1
64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe::1
3fff::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 ff0e::1
"""
PUBLIC = "1.1.1.1 8.8.8.8 93.184.216.34 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 2606:4700::1111 2a00::1"


@pytest.mark.parametrize("address", NOT_PUBLIC.split())
def test_what_is_not_public_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(AddressRefused):
        check_address(address)


@pytest.mark.parametrize("address", PUBLIC.split())
def test_what_is_public_may_be_called(address: str) -> None:
    assert is_public(ip_address(address))
    check_address(address)


def test_the_operators_networks_may_be_called_too() -> None:
    allowed = read_networks("10.1.0.0/16, fd00::/8")
    assert allowed == (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))
    check_address("10.1.2.3", allowed)
    check_address("fd00::1", allowed)
    for other in ("10.2.0.1", "127.0.0.1", "::ffff:10.1.2.3"):
        with pytest.raises(AddressRefused):
            check_address(other, allowed)


@pytest.mark.parametrize(
    "host",
    [
        "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "017700000001", "0",
        "0x", "a.0x7f", "1.2.3.4.5", "256.256.256.256", "127.0.0.1.", "0x7f.1.", "①②⑦.⓪.⓪.①", "127。0。0。1", "[::1]",
        "fe80::1%eth0", "::ffff:127.0.0.1%1", ":::", "exa mple.org", "a..b", "-a.org", "a-.org", "", ".", "a" * 64,
        ".".join(["abcdefg"] * 40), "exam\x00ple.org", "exa/mple", "a@b", "a%2e", "bücher.example",
    ],
)  # fmt: skip
def test_no_other_notation_is_taken(host: str) -> None:
    if host == "127.0.0.1.":  # the plain notation, with the root's dot
        assert check_host(host) == "127.0.0.1"
        return
    with pytest.raises(AddressRefused):
        check_host(host)


def test_names_and_plain_addresses_are_taken() -> None:
    assert check_host("Files.Example.ORG.") == "files.example.org"
    assert check_host("xn--bcher-kva.example") == "xn--bcher-kva.example"
    assert check_host("8.8.8.8") == "8.8.8.8"
    assert check_host("2606:4700::1111") == "2606:4700::1111"


@given(st.ip_addresses(v=4))
def test_no_ipv6_address_smuggles_an_ipv4_one(address) -> None:
    number = int(address)
    for smuggled in (0xFFFF << 32 | number, number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert not is_public(ip_address(smuggled.to_bytes(16, "big")))
