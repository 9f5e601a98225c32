"""Which addresses a tenant may have us call. Pure: no name is resolved here, nothing is connected to.

Public addresses only, whatever notation hides another; and the networks that the operator names besides.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# As browsers tell a number from a name (WHATWG URL, "ends in a number"): 127.1, 0x7f.1, 2130706433 are numbers.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_GLOBAL_V6: Final = ip_network("2000::/3")
# Global by their prefix, yet they carry an IPv4 address, or lead nowhere (RFC 6890 and its registry).
_NOT_GLOBAL: Final = tuple(
    ip_network(each)
    for each in ("192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")
)


class AddressRefused(ValueError):
    """The text says why, and names no address that the caller did not name."""


def read_networks(text: str) -> tuple[Network, ...]:
    """`10.0.0.0/8,fd00::/8`. Raises ValueError."""
    return tuple(ip_network(each.strip()) for each in text.split(",") if each.strip())


def check_host(host: str) -> str:
    """The host of a URL, lower case: a name, or an IP address written the one plain way. Raises AddressRefused."""
    lower = host.lower().removesuffix(".")
    if ":" in lower:
        if "%" in lower or _parsed(lower) is None:
            raise AddressRefused(f"{host[:100]!r} is not an IPv6 address")
        return lower
    labels = lower.split(".")
    if len(lower) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused(f"{host[:100]!r} is not a host name (names outside ASCII are written in punycode)")
    if _NUMBER.fullmatch(labels[-1]) and _parsed(lower) is None:
        raise AddressRefused(f"{host[:100]!r} is an address in a notation that is not taken: write a.b.c.d")
    return lower


def _parsed(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def check_address(text: str, allowed: Iterable[Network] = ()) -> None:
    """What a name resolved to. Raises AddressRefused unless it is public, or within `allowed`."""
    address = ip_address(text)
    if not is_allowed(address, allowed) and not is_public(address):
        raise AddressRefused("its host is not a public address")


def is_allowed(address: Address | str, allowed: Iterable[Network]) -> bool:
    found = ip_address(address)
    return any(found in network for network in allowed if network.version == found.version)


def is_public(address: Address) -> bool:
    """Somewhere on the internet: not this host, this network, a multicast group, a carrier's NAT, documentation, nor
    an IPv6 address that stands for an IPv4 one."""
    if any(address in network for network in _NOT_GLOBAL if network.version == address.version):
        return False
    if isinstance(address, IPv6Address):
        return address in _GLOBAL_V6 and address.is_global
    return address.is_global and not (address.is_multicast or address.is_reserved)
