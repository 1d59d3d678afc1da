"""Restricts what clients can make the gateway call to public addresses and networks that the operator allows.

The check covers the addresses that the connection uses, not the name, so DNS rebinding gains nothing. Source of the
non-public ranges: IANA's special-purpose address registries.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from gateway.settings import Network

Address: TypeAlias = IPv4Address | IPv6Address

_UNICAST_6 = ip_network("2000::/3")
_NEVER = tuple(map(ip_network, ("192.88.99.0/24", "2002::/16", "3fff::/20")))
"""6to4, which embeds an IPv4 address, and documentation ranges."""


class AddressRefused(OSError):
    """The name resolves to an address that the gateway must not call for a client."""


class AddressRules:
    """Decides which addresses may be called for a client. ``allowed`` lists networks that need not be public."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def check(self, text: str) -> None:
        """Raise AddressRefused for an address that is neither public nor allowed."""
        address = ip_address(text)
        if not _public(address) and not any(address in network for network in self._allowed):
            raise AddressRefused("the host's address is not public")

    def open_socket(self, info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
        """Open a socket after a last check of the address. Raises AddressRefused."""
        family, kind, protocol, _, target = info
        self.check(str(target[0]))
        return socket.socket(family, kind, protocol)


def _public(address: Address) -> bool:
    if any(address in network for network in _NEVER) or address.is_multicast or not address.is_global:
        return False
    return address in _UNICAST_6 if address.version == 6 else not address.is_reserved
