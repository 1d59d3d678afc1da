"""The HTTP client against peers that frame their answers oddly or badly."""

import pytest

from memloop.wire.errors import DependencyError, MemloopError, Unavailable
from tests.fakes.odd_peer import answering, odd_peer
from tests.memloop.http1_rig import CHUNKED, OK, client, peer_and_client

WHOLE_ANSWERS = {
    "length": [OK],
    "byte by byte": [bytes([byte]) for byte in OK],
    "chunks": [CHUNKED, b"1\r\no\r\n", b"1;name=value\r\nk\r\n0\r\n", b"Trailer: t\r\n\r\n"],
    "chunk cut anywhere": [CHUNKED + b"2", b"\r", b"\no", b"k\r\n0\r", b"\n\r\n"],
    "interim answers first": [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", OK],
}


@pytest.mark.parametrize("pieces", WHOLE_ANSWERS.values(), ids=WHOLE_ANSWERS)
async def test_a_whole_answer_is_read_and_its_connection_used_again(pieces: list[bytes]) -> None:
    async with peer_and_client(answering(*pieces)) as (peer, http):
        assert [await http.json("POST", "x", body=1) for _ in range(3)] == [b"ok"] * 3
        assert (peer.connections, len(peer.requests)) == (1, 3)


ENDED_BY_CLOSING = {
    "no length": b"HTTP/1.1 200 OK\r\n\r\nok",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nok",
    "told to close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
}


@pytest.mark.parametrize("answer", ENDED_BY_CLOSING.values(), ids=ENDED_BY_CLOSING)
async def test_an_answer_that_ends_with_its_connection_is_whole(answer: bytes) -> None:
    async with peer_and_client(answering(answer, then_close=True)) as (peer, http):
        assert [await http.json("POST", "x", body=1) for _ in range(2)] == [b"ok"] * 2
        assert peer.connections == 2


BROKEN = {
    "cut body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
    "cut chunk": CHUNKED + b"5\r\nok",
    "missing last chunk": CHUNKED + b"2\r\nok\r\n",
    "cut headers": b"HTTP/1.1 200 OK\r\nContent-Le",
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    "length and chunks": CHUNKED.replace(b"X-Once: a", b"Content-Length: 2") + b"2\r\nok\r\n0\r\n\r\n",
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 80_000,
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_a_broken_answer_is_a_lost_connection(answer: bytes) -> None:
    async with peer_and_client(answering(answer, then_close=True)) as (peer, http):
        with pytest.raises(Unavailable, match="the connection to the peer was lost"):
            await http.json("POST", "x", body=1)
        assert len(peer.requests) == 1


async def test_the_request_is_what_was_asked() -> None:
    async with odd_peer(answering(OK)) as peer:
        async with client(peer.url.replace("//", "//us%40er:pass@") + "/v1?api-version=2") as http:
            await http.json("POST", "a b/ü", body={"x": 1}, params={"q": "&"}, headers={"X-Other": "o"})
        head, _, body = peer.requests[0].decode().partition("\r\n\r\n")
        line, *headers = head.split("\r\n")
        assert (line, body) == ("POST /v1/a%20b/%C3%BC?api-version=2&q=%26 HTTP/1.1", '{"x":1}')
        assert {"X-Key: k", "X-Other: o", "Content-Type: application/json", "Content-Length: 7"} <= set(headers)
        assert {f"Host: {peer.url[7:]}", "Authorization: Basic dXNAZXI6cGFzcw=="} <= set(headers)


async def test_a_header_cannot_smuggle_another() -> None:
    async with peer_and_client(answering(OK)) as (peer, http):
        with pytest.raises(ValueError, match="header injection"):
            await http.json("GET", "x", headers={"X-Other": "a\r\nX-Evil: b"})
        assert peer.requests == []


async def test_headers_are_found_in_any_case() -> None:
    async with peer_and_client(answering(CHUNKED + b"0\r\n\r\n")) as (_, http), http.open("GET", "x") as response:
        assert (response.headers["X-ONCE"], response.headers.get("nothing")) == ("a", None)


async def test_a_refusal_is_the_peers_own_error_and_the_connection_is_kept() -> None:
    answer = b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno"
    async with peer_and_client(answering(answer)) as (peer, http):
        for _ in range(2):
            with pytest.raises(MemloopError, match="409 no"):
                await http.json("GET", "x")
        assert peer.connections == 1


@pytest.mark.parametrize("status", [b"302 Found", b"307 Temporary Redirect"])
async def test_a_redirect_is_no_answer_even_if_its_body_is_json(status: bytes) -> None:
    answer = b"HTTP/1.1 %b\r\nLocation: /\r\nContent-Length: 2\r\n\r\n{}" % status
    async with peer_and_client(answering(answer)) as (_, http):
        with pytest.raises(MemloopError, match=status[:3].decode()):
            await http.json("GET", "x")


async def test_a_compressed_answer_is_distinguished_from_garbage() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx"
    async with peer_and_client(answering(answer)) as (_, http):
        with pytest.raises(DependencyError, match="compressed"):
            await http.json("GET", "x")
