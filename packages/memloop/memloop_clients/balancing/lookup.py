"""Looks SRV records and the addresses of their targets up, by dnspython."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, cast

from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.message import Message
from dns.name import Name
from dns.rdatatype import RdataType
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA
from dns.rdtypes.IN.SRV import SRV
from dns.resolver import NXDOMAIN, Answer, NoAnswer

from memloop_clients.balancing.resolving import Endpoint

_MOST_RECORDS: Final = 256
_AT_ONCE: Final = 8


async def by_the_system(name: str) -> Sequence[Endpoint]:
    """Resolve by the name servers and search list of ``/etc/resolv.conf``. Raises OSError."""
    try:
        resolver = Resolver()
    except DNSException as error:
        raise OSError(f"no name server: {error}") from error
    return await endpoints_by(resolver, name)


async def endpoints_by(resolver: Resolver, name: str) -> Sequence[Endpoint]:
    """Return a service's endpoints, those of the lowest priority first. Raises OSError."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def located(answer: Answer, record: SRV) -> Iterable[Endpoint]:
        known = _in_message(answer.response, record.target)
        if not known:
            async with turns:
                known = await _looked_up(resolver, record.target)
        return [Endpoint(address, record.port, record.priority, record.weight) for address in known]

    try:
        answer = await resolver.resolve(name, "SRV", search=True)
        records = [each for each in _of(answer) if isinstance(each, SRV)]
        records = [record for record in records if record.port and len(record.target.labels) > 1]
        records = sorted(records, key=lambda record: record.priority)[:_MOST_RECORDS]
        located_each = await asyncio.gather(*(located(answer, record) for record in records))
    except DNSException as error:
        raise OSError(f"{name}: {error}") from error
    found = {endpoint for some in located_each for endpoint in some}
    if not found:
        raise OSError(f"{name}: no record has an address")
    return sorted(found, key=lambda each: (each.priority, each.address, each.port, -each.weight))


def _in_message(message: Message, target: Name) -> list[str]:
    """Return the addresses that came with the records: those of IPv4, else of IPv6; a replica may have one of each."""
    for kind in (RdataType.A, RdataType.AAAA):
        sets = (each for each in message.additional if each.name == target and each.rdtype == kind)
        if addresses := [address for each in sets for address in _addresses(cast("Iterable[object]", each))]:
            return addresses
    return []


def _of(answer: Answer) -> Iterable[object]:
    return cast("Iterable[object]", answer.rrset or ())


def _addresses(records: Iterable[object]) -> list[str]:
    return [str(record.address) for record in records if isinstance(record, (A, AAAA))]


async def _looked_up(resolver: Resolver, target: Name) -> list[str]:
    """Look up a target whose address did not come with its record; one that is gone has none."""
    for kind in (RdataType.A, RdataType.AAAA):
        with suppress(NoAnswer, NXDOMAIN):
            return _addresses(_of(await resolver.resolve(target, kind)))
    return []
