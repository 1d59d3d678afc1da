"""Resolves a host name to addresses that aiohttp may connect to."""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from gateway.addresses.addresses import AddressRules
from gateway.addresses.lookup import Lookup


class CheckedResolver(AbstractResolver):
    """Resolves names and checks every address against the rules."""

    def __init__(self, rules: AddressRules, lookup: Lookup) -> None:
        self._rules = rules
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses to connect to. Raises OSError, and AddressRefused when the rules refuse one of them."""
        del family
        addresses = await self._lookup(host, port)
        for address in addresses:
            self._rules.check(address)
        return [_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Do nothing: the resolver holds no resources."""


def _result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST)
