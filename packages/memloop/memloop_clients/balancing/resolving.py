"""Finds the addresses behind a base URL's name: a headless Service of Kubernetes has one for each pod."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from yarl import URL

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host for a port. Raises OSError when it has none."""


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Resolve by the system's resolver, in a thread. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def replicas_at(addresses: Sequence[str]) -> tuple[str | None, ...]:
    """Return the addresses of the replicas: those of IPv4, else of IPv6; a replica may have one of each.

    One address of each family is one server: then the answer is None, which connects by name and tries both.
    """
    known = set(addresses)
    four = sorted(address for address in known if ":" not in address)
    six = sorted(address for address in known if ":" in address)
    return (None,) if len(four) == len(six) == 1 else (*(four or six),)


def has_a_name(url: URL) -> bool:
    """Return whether the host is a name that may have several addresses; loopback is one server."""
    host = url.host or ""
    if host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False
