"""The engine's client behind an outgoing proxy, which alone can reach ``engine.test``."""

from pathlib import Path

import pytest
from yarl import URL

from memloop.wire.errors import ConnectRefused, Unavailable, Unreachable
from memloop_clients import EngineClient, StoreClient, Timeouts
from memloop_clients.urls import proxy_for
from tests.fakes.forward_proxy import forward_proxy
from tests.fakes.odd_peer import answering, odd_peer
from tests.memloop.http1_rig import certified

MODELS = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"data":[]}'
PATIENT = Timeouts(connect_s=60.0, read_s=60.0, total_s=120.0)
BASIC = b"Proxy-Authorization: Basic dXNlcjpwQHNz"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "request_method"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def engine(scheme: str, port: int) -> EngineClient:
    return EngineClient(f"{scheme}://engine.test:{port}/v1", model="m", api_key="k", timeouts=PATIENT)


def port_of(url: str) -> int:
    return URL(url).port or 0


async def test_an_https_engine_is_reached_through_a_tunnel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, file = certified(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    async with odd_peer(answering(MODELS), tls=context) as peer, forward_proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        async with engine("https", port_of(peer.url)) as client:
            assert [await client.get_json("models") for _ in range(2)] == [{"data": []}] * 2
    (head,) = proxy.heads
    assert head.startswith(b"CONNECT engine.test:%d HTTP/1.1\r\n" % port_of(peer.url))
    assert BASIC in head
    assert b"Bearer" not in head
    assert all(request.startswith(b"GET /v1/models HTTP/1.1\r\n") for request in peer.requests)
    assert not any(b"Proxy-" in request for request in peer.requests)
    assert peer.connections == 1


async def test_a_tunnel_to_an_unknown_certificate_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, _ = certified(tmp_path)

    async with odd_peer(answering(MODELS), tls=context) as peer, forward_proxy() as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        async with engine("https", port_of(peer.url)) as client:
            with pytest.raises(ConnectRefused, match="through the proxy"):
                await client.get_json("models")
    assert peer.requests == []


async def test_an_http_engine_is_asked_for_by_its_whole_url(monkeypatch: pytest.MonkeyPatch) -> None:
    async with odd_peer(answering(MODELS)) as peer, forward_proxy() as proxy:
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        async with engine("http", port_of(peer.url)) as client:
            assert [await client.get_json("models") for _ in range(2)] == [{"data": []}] * 2
    (head,) = proxy.heads
    assert head.startswith(b"GET http://engine.test:%d/v1/models HTTP/1.1\r\n" % port_of(peer.url))
    assert BASIC in head
    assert b"Host: engine.test:%d\r\n" % port_of(peer.url) in head


@pytest.mark.parametrize("status", [403, 407, 502])
async def test_a_proxy_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    async with forward_proxy(refuses_with=status) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        async with engine("https", 443) as client:
            with pytest.raises(ConnectRefused, match=f"the proxy refused the connection to the engine .* {status}"):
                await client.get_json("models")


async def test_a_proxy_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with forward_proxy() as proxy:
        pass
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
    async with engine("https", 443) as client:
        with pytest.raises(ConnectRefused, match="cannot be reached through the proxy"):
            await client.get_json("models")


@pytest.mark.parametrize("pieces", [[], [b"HTTP/1.1 2"], [b"SSH-2.0\r\n"]], ids=["hangs up", "cut", "no HTTP"])
async def test_a_proxy_that_speaks_no_http_is_named(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    async with odd_peer(answering(*pieces, then_close=True)) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        async with engine("https", 443) as client:
            with pytest.raises(Unavailable, match="through the proxy"):
                await client.get_json("models")


async def test_a_proxy_that_is_silent_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    async with odd_peer(answering(b"")) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        limits = Timeouts(connect_s=0.3)
        async with EngineClient("https://engine.test/v1", model="m", timeouts=limits) as client:
            with pytest.raises(Unreachable, match="through the proxy"):
                await client.get_json("models")
        assert await proxy.left.wait()


async def test_the_environment_is_read_once_and_only_for_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    async with odd_peer(answering(MODELS)) as peer, forward_proxy() as proxy:
        early = engine("http", port_of(peer.url))
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        async with early, StoreClient(f"http://store.test:{port_of(peer.url)}") as store:
            for client in (early.check, store.check):
                with pytest.raises(Unavailable):
                    await client()
    assert proxy.heads == []


@pytest.mark.parametrize(
    ("url", "no_proxy", "proxied"),
    [
        ("https://api.example/v1", "", True),
        ("http://api.example/v1", "", False),
        ("https://api.example/v1", "api.example", False),
        ("https://eu.api.example/v1", ".example", False),
        ("https://eu.api.example/v1", "example", False),
        ("https://notexample/v1", "example", True),
        ("https://api.example:8443/v1", "api.example:8443", False),
        ("https://api.example/v1", "api.example:8443", True),
        ("https://api.example/v1", "*", False),
        ("https://10.0.0.7/v1", "10.0.0.7", False),
        ("https://localhost/v1", "", False),
        ("https://127.0.0.5/v1", "", False),
        ("https://[::1]:8000/v1", "", False),
        ("https://engine.localhost/v1", "", False),
    ],
)
def test_which_engines_are_behind_the_proxy(
    monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str, *, proxied: bool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert proxy_for(URL(url)) == (URL("http://proxy.example:3128") if proxied else None)


@pytest.mark.parametrize("address", ["https://proxy.example:3128", "socks5://proxy.example:1080"])
def test_a_proxy_of_another_kind_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("https_proxy", address)
    with pytest.raises(ValueError, match="HTTPS_PROXY"):
        engine("https", 443)
