"""Finds the replicas of a service: by the addresses behind a base URL's name, or by its SRV records.

A headless Service of Kubernetes has an address for each pod. SRV records hold a port, a priority and a weight for each
replica: ``http+srv://_http._tcp.engines.ns.svc/v1`` is the URL of a service at ``engines.ns.svc``, and each replica
is asked as ``http://engines.ns.svc:PORT/v1`` at an address of its own. A certificate is compared with the service's
name, not with the name of a replica, which comes from an answer that is not signed. Sources: RFC 2782; RFC 6125,
section 6.2.1.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

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


_SRV: Final = "+srv"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a service. Those of the lowest priority serve; ``weight`` is a share of their requests."""

    address: str
    port: int
    priority: int
    weight: int


Endpoints: TypeAlias = Callable[[str], Awaitable[Sequence[Endpoint]]]
"""Returns the endpoints of an SRV name, at least one. Raises OSError when there are none or the lookup failed."""


def is_srv(url: URL) -> bool:
    """Return whether a URL names a service by its SRV records."""
    return url.scheme.endswith(_SRV)


def plain(url: URL) -> URL:
    """Return the URL over HTTP of the service that an SRV URL names; another URL as it is."""
    if not is_srv(url):
        return url
    labels = (url.host or "").split(".")
    while len(labels) > 1 and labels[0].startswith("_"):
        labels.pop(0)
    return url.with_scheme(url.scheme.removesuffix(_SRV)).with_host(".".join(labels))
