"""Finds the replicas of a service by its SRV records, which hold a port, a priority and a weight for each of them.

``http+srv://_http._tcp.engines.ns.svc/v1`` is the URL of a service at ``engines.ns.svc``: each replica is asked as
``http://engines.ns.svc:PORT/v1`` at an address of its own. A certificate is compared with the service's name, not with
the name of a replica, which comes from an answer that is not signed. Sources: RFC 2782; RFC 6125, section 6.2.1.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from yarl import URL

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
