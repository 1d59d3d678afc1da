"""Limits begin with the first byte: what a stranger sends before its request is known is bounded, at every port."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Final

import httpx
import pytest

from tests.memloop_service.small_process import Small, small_process

MOST_MB: Final = 20
FLOOD_BYTES: Final = 20_000_000
"""More than MOST_MB, and more than the kernel's buffers of a connection hold."""
GET: Final = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Flood:
    """Bytes that begin a request and bytes that go on for ever."""

    first: bytes
    more: bytes
    status: int | None


FLOODS: Final = {
    "headers": Flood(GET, b"".join(b"X-%d: %s\r\n" % (at, b"a" * 900) for at in range(64)), 431),
    "small headers": Flood(GET, b"a:b\r\n" * 10_000, 431),
    "one header": Flood(GET + b"X: ", b"a" * 65_536, 431),
    "one header's name": Flood(GET, b"a" * 65_536, 431),
    "the URL": Flood(b"GET /", b"a" * 65_536, 414),
    "the query": Flood(b"GET /livez?", b"a=b&" * 16_384, 414),
    "trailers": Flood(
        b"POST /raw HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        b"X: aaaaaaaaaaaaaaaa\r\n" * 3000,
        431,
    ),
    "a chunk's extension": Flood(
        b"POST /raw HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n2;a=",
        b"b" * 65_536,
        431,
    ),
    "blank lines": Flood(b"", b"\r\n" * 32_768, None),
    "requests": Flood(b"", (GET + b"\r\n") * 1500, None),
}


@pytest.fixture(scope="module")
def small() -> Iterator[Small]:
    with small_process(head_timeout_s=PATIENCE_S) as started:
        yield started


@pytest.fixture(scope="module")
def hasty() -> Iterator[Small]:
    """A process that does not wait long for a head: not for requests that must be served on a busy machine."""
    with small_process(head_timeout_s=1) as started:
        yield started


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def flooded(port: int, flood: Flood) -> tuple[bool, bytes]:
    """Send the flood; whether the server stopped it, and the beginning of its answer."""
    with closing(connected(port)) as client:
        client.settimeout(2.0)
        try:
            client.sendall(flood.first)
            for _ in range(FLOOD_BYTES // len(flood.more)):
                client.sendall(flood.more)
            ended = False
        except OSError:  # reset, or not read any more
            ended = True
        with suppress(OSError):
            return ended, client.recv(200)
        return ended, b""


def received(client: socket.socket) -> bytes:
    """Whatever the server sends until it closes the connection."""
    got = b""
    with suppress(ConnectionError):
        while piece := client.recv(65_536):
            got += piece
    return got


@pytest.mark.parametrize("port", ["port", "metrics_port"])
@pytest.mark.parametrize("name", FLOODS)
def test_a_stream_without_an_end_is_stopped_and_kept_nowhere(small: Small, name: str, port: str) -> None:
    before = small.memory_mb
    stopped, answer = flooded(getattr(small, port), FLOODS[name])
    assert stopped
    if FLOODS[name].status is not None and port == "port":
        assert answer.startswith(b"HTTP/1.1 %d " % FLOODS[name].status) or not answer
    assert small.memory_mb < before + MOST_MB
    assert small.is_alive()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (GET + b"X: " + b"a" * 66_000 + b"\r\n\r\n", 431),
        (GET + b"x: y\r\n" * 100 + b"\r\n", 431),
        (b"GET /" + b"a" * 65_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (GET + b"Host: localhost\r\n\r\n", 400),
        (GET + b"host: evil.example\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
    ],
    ids=["head", "headers", "URL", "two equal hosts", "two hosts", "no HTTP"],
)
@pytest.mark.parametrize("port", ["port", "metrics_port"])
def test_a_head_over_a_limit_is_refused_with_its_status(small: Small, port: str, head: bytes, status: int) -> None:
    with closing(connected(getattr(small, port))) as client:
        client.sendall(head)
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in answer
    assert b'"error"' in answer


def test_a_head_within_the_limits_reaches_the_routes(small: Small) -> None:
    head = b"GET /" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\n" + b"X: %s\r\n" % (b"b" * 300) * 98
    with closing(connected(small.port)) as client:
        client.sendall(head + b"Connection: close\r\n\r\n")
        answer = received(client)
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b'"not_found"' in answer


def test_pipelined_requests_are_all_answered_in_order(small: Small) -> None:
    bodies = [b'{"name": "thing-%d"}' % number for number in range(500)]
    sent = b"".join(
        b"POST /things HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (len(body), body)
        for body in bodies
    )
    with closing(connected(small.port)) as client:
        client.sendall(sent + GET + b"Connection: close\r\n\r\n")
        answers = received(client)
    places = [answers.index(b'"thing-%d"' % number) for number in range(500)]
    assert places == sorted(places)
    assert answers.count(b"HTTP/1.1 200 ") == 501


@pytest.mark.parametrize("port", ["port", "metrics_port"])
@pytest.mark.parametrize(
    "sent",
    [b"", GET, b"GET /livez HT", b"\r\n", GET + b"\r\n" + GET],
    ids=["nothing", "half a head", "half a line", "a blank line", "a request and half a head"],
)
def test_a_head_that_does_not_come_in_time_ends_the_connection(hasty: Small, port: str, sent: bytes) -> None:
    with closing(connected(getattr(hasty, port))) as client:
        if sent:
            client.sendall(sent)
        answer = received(client)  # ends when the server closes
    assert answer.count(b"HTTP/1.1 408 ") == int(GET[:10] in sent)


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(hasty: Small) -> None:
    def drip(client: socket.socket) -> None:
        client.sendall(GET + b"X: ")
        for _ in range(int(PATIENCE_S * 20)):
            client.sendall(b"a")
            time.sleep(0.05)

    with closing(connected(hasty.port)) as client, pytest.raises(OSError):  # closed long before the last byte
        drip(client)


def test_a_port_without_keys_answers_no_page_and_no_other_host(small: Small) -> None:
    things = {"name": "kettle"}
    for port in (small.port, small.metrics_port):
        path = "/livez" if port == small.port else "/metrics"
        assert small.get(path, port, Host="evil.example").status_code == 403
        assert small.get(path, port, Origin="http://evil.example").status_code == 403
        answer = small.get(path, port, Host="localhost:1", Origin="http://localhost:3000")
        assert answer.status_code == 200
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    url = f"http://127.0.0.1:{small.port}/things"
    assert httpx.post(url, json=things).status_code == 200
    assert httpx.post(url, content=b'{"name": "kettle"}', headers={"Content-Type": "text/plain"}).status_code == 415


def test_a_port_that_other_machines_reach_has_any_name_but_answers_no_page() -> None:
    with small_process(host="0.0.0.0") as small:
        assert small.get("/livez", small.port, Host="worker:7804").status_code == 200
        assert small.get("/metrics", small.metrics_port, Host="10.1.2.3:7809").status_code == 200
        assert small.get("/livez", small.port, Host="worker", Origin="http://evil.example").status_code == 403


def test_a_connection_over_the_cap_is_refused_counted_and_logged() -> None:
    with small_process(max_connections=8) as small:
        held = [connected(small.port) for _ in range(8)]
        with closing(connected(small.port)) as one_more:
            answer = received(one_more)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in answer
        for each in held:
            each.close()
        assert small.settled(small.is_alive)
        metrics = small.get("/metrics", small.metrics_port).text
        assert re.search(r'http_connections_refused_total{reason="too_many"} [1-9]', metrics)
        assert "too_many" in small.log.read_text()
