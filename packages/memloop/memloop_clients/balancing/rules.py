"""The settings of a balancing client."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memloop_clients.balancing.resolving import Endpoint, Endpoints, Resolve, system_addresses


async def system_endpoints(name: str) -> Sequence[Endpoint]:
    """Resolve by the name servers and search list of ``/etc/resolv.conf``. Raises OSError."""
    from memloop_clients.balancing.lookup import by_the_system  # dnspython is slow to import

    return await by_the_system(name)


@dataclass(frozen=True, slots=True)
class Balancing:
    """How a client balances.

    ``also`` are base URLs of further replicas. ``ready_path`` below a server's root answers 503 while it takes no new
    requests; ``ready_port`` is the port of that path, if it is another one. Names are resolved every
    ``resolve_every_s`` and readiness is read every ``examine_every_s`` seconds, for at most ``examine_s``. A replica
    is ejected for ``open_s`` seconds after ``failures`` in a row. With ``suspends_one`` so is a server without other
    replicas, until it answers a probe. ``on_unresolved`` is called at each failed lookup. A name may stand for
    ``several`` servers.
    """

    also: tuple[str, ...] = ()
    ready_path: str = "health"
    ready_port: int | None = None
    several: bool = True
    resolve: Resolve = system_addresses
    endpoints: Endpoints = system_endpoints
    resolve_every_s: float = 2.0
    examine_every_s: float = 0.5
    examine_s: float = 1.0
    failures: int = 5
    open_s: float = 5.0
    suspends_one: bool = False
    on_unresolved: Callable[[], object] = lambda: None
