"""A DNS server on a UDP port of the loopback: it answers from a zone's text, or with bytes that are no answer."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdata
import dns.rrset
from dns.asyncresolver import Resolver


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """``records`` are lines of a zone file, each with its full name; ``garbage`` is sent in place of answers."""

    records: str = ""
    addresses_come_along: bool = True
    garbage: bytes | None = None
    refuses: bool = False
    port: int = 0
    questions: int = 0
    lookups_failed: int = 0
    _transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        assert self._transport is not None
        self.questions += 1
        self._transport.sendto(self._answer(data) if self.garbage is None else data[:2] + self.garbage, addr)

    def unresolved(self) -> None:
        """Count a lookup that a client could not use."""
        self.lookups_failed += 1

    def resolver(self) -> Resolver:
        """Return a resolver that asks this server alone."""
        resolver = Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], self.port
        resolver.lifetime = resolver.timeout = 2.0
        return resolver

    def _answer(self, data: bytes) -> bytes:
        query = dns.message.from_wire(data)
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.AA
        if self.refuses:
            reply.set_rcode(dns.rcode.SERVFAIL)
            return reply.to_wire()
        asked = query.question[0]
        known = [_record(line) for line in self.records.splitlines()]
        for each in known:
            if each.name == asked.name and each.rdtype == asked.rdtype:
                _add(reply, each)
            elif self.addresses_come_along:
                reply.additional.append(each)
        if not any(each.name == asked.name for each in known):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        return reply.to_wire()


def _record(line: str) -> dns.rrset.RRset:
    name, ttl, rdclass, rdtype, data = line.split(maxsplit=4)
    return dns.rrset.from_text(name, int(ttl), rdclass, rdtype, data)


def _add(reply: dns.message.Message, records: dns.rrset.RRset) -> None:
    found = reply.find_rrset(reply.answer, records.name, records.rdclass, records.rdtype, create=True)
    for record in cast("Iterable[dns.rdata.Rdata]", records):
        found.add(record, ttl=records.ttl)


@asynccontextmanager
async def name_server() -> AsyncGenerator[NameServer]:
    """A running server without records."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()
