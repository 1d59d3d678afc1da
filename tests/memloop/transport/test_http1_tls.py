"""The HTTP client and TLS, with a certificate made for the test."""

from pathlib import Path

import pytest

from memloop.wire.errors import ConnectRefused
from memloop_clients import Balancing, Timeouts
from tests.fakes.odd_peer import answering, odd_peer
from tests.memloop.http1_rig import CHUNKED, certified, client


async def test_tls_is_spoken_and_an_unknown_certificate_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = certified(tmp_path)

    limits = Timeouts()
    async with odd_peer(answering(CHUNKED, b"2\r\nok\r\n0\r\n\r\n"), tls=context) as peer:
        async with client(peer.url, timeouts=limits) as http:
            with pytest.raises(ConnectRefused):
                await http.json("GET", "x")
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        async with client(peer.url, timeouts=limits) as http:
            assert [await http.json("POST", "x", body="y" * 300_000) for _ in range(2)] == [b"ok"] * 2
        assert len(peer.requests) == 2


async def test_a_replica_at_an_address_shows_the_certificate_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    async def loopback(host: str, port: int) -> list[str]:
        del host, port
        return ["127.0.0.1"]

    async with odd_peer(answering(CHUNKED, b"2\r\nok\r\n0\r\n\r\n"), tls=context) as peer:
        for name, reached in (("engine.test", True), ("other.test", False)):
            rules = Balancing(resolve=loopback)
            url = peer.url.replace("127.0.0.1", name)
            async with client(url, timeouts=Timeouts(), balancing=rules) as http:
                if reached:
                    assert await http.json("GET", "x") == b"ok"
                else:
                    with pytest.raises(ConnectRefused):
                        await http.json("GET", "x")
        assert b"Host: engine.test:" in peer.requests[0]
