"""Where a request comes from, when proxies stand in front."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from django.conf import settings

Address = IPv4Address | IPv6Address


def address_of(meta: Mapping[str, Any]) -> str:
    """The address that called, of a request's META: the peer's, or whom proxies that are trusted say they called for.

    Each proxy appends who called it, so only what stands to the right of a stranger can be believed.
    """
    trusted: Sequence[IPv4Network | IPv6Network] = settings.ENV.trusted_proxies
    peer = str(meta.get("REMOTE_ADDR") or "")
    if not _is_of(_read(peer), trusted):
        return peer
    for entry in reversed(str(meta.get("HTTP_X_FORWARDED_FOR") or "").split(",")):
        found = _read(entry)
        if found is None:
            break
        if not _is_of(found, trusted):
            return str(found)
    return peer


def _is_of(
    address: Address | None, networks: Sequence[IPv4Network | IPv6Network]
) -> bool:
    return address is not None and any(address in network for network in networks)


def _read(text: str) -> Address | None:
    """An address; Azure's gateways write its port behind it, and a socket for both families IPv4 as IPv6."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
