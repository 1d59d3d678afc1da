"""Where a webhook may go: only to public addresses, unless the operator has named the network.

The check is made on the addresses that the connection then uses, not on the name: a name that answers differently the
second time (DNS rebinding) gains nothing. Source of what is not public: IANA's special-purpose address registries.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from gateway.settings import Network

Address: TypeAlias = IPv4Address | IPv6Address

_UNICAST_6 = ip_network("2000::/3")
_NEVER = tuple(map(ip_network, ("192.88.99.0/24", "2002::/16", "3fff::/20")))
"""6to4, which carries an IPv4 address inside, and documentation."""


class AddressRefused(OSError):
    """The name stands for an address that webhooks must not reach."""


class AddressRules:
    """Which addresses may be connected to. ``allowed`` are networks that need not be public."""

    def __init__(self, allowed: Sequence[Network] = ()) -> None:
        self._allowed = tuple(allowed)

    def check(self, text: str) -> None:
        """Raise AddressRefused for an address that is neither public nor allowed."""
        address = ip_address(text)
        if not _public(address) and not any(address in network for network in self._allowed):
            raise AddressRefused("the host's address is not public")

    def open_socket(self, info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
        """A socket for this address, the last gate before a connection. Raises AddressRefused."""
        family, kind, protocol, _, target = info
        self.check(str(target[0]))
        return socket.socket(family, kind, protocol)


def _public(address: Address) -> bool:
    if any(address in network for network in _NEVER) or address.is_multicast or not address.is_global:
        return False
    return address in _UNICAST_6 if address.version == 6 else not address.is_reserved
