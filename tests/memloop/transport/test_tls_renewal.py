"""TLS by files: who is trusted, who must show a certificate, and files that are renewed."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memloop.wire.errors import MemloopError, Unavailable
from memloop_clients import Timeouts
from memloop_clients.http import Http
from memloop_clients.tls import Certificate, RenewedContext, client_context, server_context
from tests.fakes.authority import Authority, Pair
from tests.fakes.odd_peer import answering, odd_peer
from tests.memloop.http1_rig import OK, refused

LIMITS = Timeouts(connect_s=60.0, read_s=60.0, total_s=120.0)


def certificate(pair: Pair) -> Certificate:
    return Certificate(pair.chain, pair.key)


async def asked(url: str, tls: RenewedContext | None) -> bytes:
    """An answer over a new connection."""
    async with Http(url, peer="peer", error_of=refused, headers={}, timeouts=LIMITS, tls=tls) as http:
        return await http.json("GET", "x")


@asynccontextmanager
async def served(context: RenewedContext) -> AsyncGenerator[str]:
    async with odd_peer(answering(OK), tls=context) as peer:
        yield peer.url


async def test_a_given_authority_is_trusted_and_no_other(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    context = server_context(certificate(ours.issue("store")))

    async with served(context) as url:
        assert await asked(url, client_context(authorities=ours.file)) == b"ok"
        for wrong in (client_context(authorities=other.file), None):
            with pytest.raises(Unavailable):
                await asked(url, wrong)


async def test_a_server_with_client_authorities_answers_nobody_without_a_certificate_of_theirs(tmp_path: Path) -> None:
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    context = server_context(certificate(ours.issue("store")), client_authorities=ours.file)

    async with served(context) as url:
        own = certificate(ours.issue("gateway"))
        assert await asked(url, client_context(authorities=ours.file, own=own)) == b"ok"
        foreign = certificate(other.issue("stranger"))
        for wrong in (client_context(authorities=ours.file), client_context(authorities=ours.file, own=foreign)):
            with pytest.raises(MemloopError):
                await asked(url, wrong)


async def test_both_sides_go_on_with_renewed_files_and_drop_the_authority_of_before(tmp_path: Path) -> None:
    ours, old = Authority(tmp_path), Authority(tmp_path, "old")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(old.file.read_bytes())
    server, client = old.issue("store"), old.issue("gateway")
    of_server = server_context(certificate(server), client_authorities=trusted)
    of_client = client_context(authorities=trusted, own=certificate(client))
    (tmp_path / "before").mkdir()
    before = Authority(tmp_path / "before", "stays")
    stays = before.issue("stays")  # what a client of before goes on showing
    stays.chain.write_bytes(client.chain.read_bytes())
    stays.key.write_bytes(client.key.read_bytes())

    async with served(of_server) as url:
        assert await asked(url, of_client) == b"ok"
        trusted.write_bytes(ours.file.read_bytes())
        assert (ours.issue("store"), ours.issue("gateway")) == (server, client)
        assert await asked(url, of_client) == b"ok"
        with pytest.raises(MemloopError):
            await asked(url, client_context(authorities=trusted, own=certificate(stays)))


async def test_files_that_do_not_fit_together_leave_the_ones_of_before_in_use(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    pair = ours.issue("store")
    context = server_context(certificate(pair))

    async with served(context) as url:
        trust = client_context(authorities=ours.file)
        for spoilt in (b"", b"no key", None):
            pair.key.unlink() if spoilt is None else pair.key.write_bytes(spoilt)
            assert await asked(url, trust) == b"ok"
        ours.issue("store")
        assert await asked(url, trust) == b"ok"


def test_wrong_files_are_refused_at_the_start(tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("store")
    with pytest.raises(OSError, match="No such file"):
        server_context(Certificate(tmp_path / "absent.crt", pair.key))
    with pytest.raises(ssl.SSLError):
        client_context(authorities=pair.key)


async def test_a_connection_that_is_open_goes_on_while_files_are_renewed(tmp_path: Path) -> None:
    ours = Authority(tmp_path)
    context = server_context(certificate(ours.issue("store")))

    async with odd_peer(answering(OK), tls=context) as peer:
        tls = client_context(authorities=ours.file)
        async with Http(peer.url, peer="peer", error_of=refused, headers={}, timeouts=LIMITS, tls=tls) as http:
            assert await http.json("GET", "x") == b"ok"
            ours.issue("store")
            await asyncio.sleep(0)
            assert await http.json("GET", "x") == b"ok"
        assert peer.connections == 1
