"""Where a call comes from, and whether a key may be used from there."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings


class BadNetwork(ValueError):
    """The message says what is wrong with the network, and how to write it."""


def client_address(meta: Mapping[str, str]) -> str:
    """The caller's address by a request's META.

    Each of the VENEER_TRUSTED_PROXIES in front of us appends who called it to X-Forwarded-For. What stands further left
    was written by the caller, and proves nothing.
    """
    forwarded = meta.get("HTTP_X_FORWARDED_FOR", "")
    hops = [*(hop.strip() for hop in forwarded.split(",") if hop.strip()), meta.get("REMOTE_ADDR", "")]
    return hops[-1 - min(settings.TRUSTED_PROXIES, len(hops) - 1)]


def read_network(text: str) -> str:
    """As it is stored: "10.0.0.0/8"; one address becomes a network of one. Raises BadNetwork."""
    try:
        return str(ip_network(text.strip()))
    except ValueError:
        pass
    try:
        meant = ip_network(text.strip(), strict=False)
    except ValueError:
        raise BadNetwork(f"{text[:60]!r} is no network: write it like 203.0.113.0/24 or 2001:db8::/32") from None
    raise BadNetwork(f"{text[:60]!r} has bits set behind its prefix: write {meant}")


def is_inside(address: str, networks: Iterable[str]) -> bool:
    """False for what is no address: fails closed."""
    try:
        found = _plain(ip_address(address))
    except ValueError:
        return False
    return any(found in ip_network(network) for network in networks)


def is_covered(network: str, by: Iterable[str]) -> bool:
    """Whether every address of the network is in one of those."""
    inner = ip_network(network)
    outers = [ip_network(each) for each in by]
    return any(
        int(outer.network_address) <= int(inner.network_address)
        and int(inner.broadcast_address) <= int(outer.broadcast_address)
        for outer in outers
        if outer.version == inner.version
    )


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """A socket that takes both kinds shows an IPv4 caller as ::ffff:a.b.c.d."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
