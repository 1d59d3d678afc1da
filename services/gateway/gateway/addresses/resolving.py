"""Resolves a host name to addresses that the gateway may connect to.

Clients choose these names, and a slow name server holds a thread for half a minute. Names are therefore resolved in a
few threads of their own: they never hold those in which the process does its other work.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
        reserved = address not in _UNICAST_6 if address.version == 6 else address.is_reserved
        never = any(address in network for network in _NEVER) or address.is_multicast or not address.is_global
        if (never or reserved) and not any(address in network for network in self._allowed):
            raise AddressRefused("the host's address is not public")

    def open_socket(self, info: tuple[int, int, int, str, tuple[str | int, ...]]) -> socket.socket:
        """Open a socket after a last check of the address. Raises AddressRefused."""
        family, kind, protocol, _, target = info
        self.check(str(target[0]))
        return socket.socket(family, kind, protocol)


if TYPE_CHECKING:
    from aiohttp import ClientSession
    from aiohttp.abc import AbstractResolver, ResolveResult
else:  # aiohttp is large, and a gateway that downloads nothing does not need it
    AbstractResolver = object

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host name and port to addresses. Raises OSError."""
_THREADS: Final = ThreadPoolExecutor(16, thread_name_prefix="names")


class CheckedResolver(AbstractResolver):
    """Resolves names and checks every address against the rules."""

    def __init__(self, rules: AddressRules, lookup: Lookup) -> None:
        self._rules = rules
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> "list[ResolveResult]":
        """Return the addresses to connect to. Raises OSError, and AddressRefused when the rules refuse one of them."""
        del family
        addresses = await self._lookup(host, port)
        for address in addresses:
            self._rules.check(address)
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": 0,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in addresses
        ]

    async def close(self) -> None:
        """Do nothing: the resolver holds no resources."""


def checked_session(rules: AddressRules, lookup: Lookup, **options: Any) -> "ClientSession":
    """Create a client for one request; it calls no other addresses, and keeps no connections, names or cookies."""
    import aiohttp

    connector = aiohttp.TCPConnector(
        resolver=CheckedResolver(rules, lookup), socket_factory=rules.open_socket, use_dns_cache=False, force_close=True
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, **options
    )


async def check_host(host: str, port: int, *, rules: AddressRules, lookup: Lookup, timeout_s: float) -> None:
    """Raise AddressRefused when a URL's host is an address, or a name of addresses, that the rules refuse.

    Every form that a resolver takes for an address counts: ``127.1``, ``0x7f000001``, ``017700000001``, ``0``. A name
    that cannot be resolved within ``timeout_s`` passes: the connection checks it again.
    """
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        name = "127.0.0.1"  # whatever a resolver says (RFC 6761, section 6.3)
    with suppress(OSError, ValueError):  # not an address in any form that inet_aton takes
        name = socket.inet_ntoa(socket.inet_aton(name))
    addresses: Sequence[str] = ()
    try:
        rules.check(name)
    except AddressRefused:
        raise
    except ValueError:  # a name
        with suppress(OSError, ValueError, TimeoutError):
            async with asyncio.timeout(timeout_s):
                addresses = await lookup(host, port)
    for address in addresses:
        rules.check(address)


async def system_lookup(host: str, port: int) -> Sequence[str]:
    """Resolve the name with the system's resolver."""
    resolve = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, resolve)
    return [str(target[0]) for *_, target in found]
