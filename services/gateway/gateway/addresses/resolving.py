"""Resolves a host name to addresses that the gateway may connect to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from gateway.addresses.addresses import AddressRules

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver, ResolveResult
else:  # aiohttp is large, and a gateway that downloads nothing does not need it
    AbstractResolver = object

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a host name and port to addresses. Raises OSError."""


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
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Do nothing: the resolver holds no resources."""


async def system_lookup(host: str, port: int) -> Sequence[str]:
    """Resolve the name with the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(target[0]) for *_, target in found]


def _result(host: str, port: int, address: str) -> "ResolveResult":
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": family,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST,
    }
