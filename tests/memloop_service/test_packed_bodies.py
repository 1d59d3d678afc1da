"""A client may pack its body with gzip, deflate or zstd; the limit is on what it unpacks to."""

import gzip
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator

import httpx
import pytest
from backports import zstd

from tests.memloop_service.small_process import Small, small_process
from tests.memloop_service.small_service import client_of, post, problem

BODY = b'{"name": "' + "Zo\u00eb".encode() * 100 + b'"}'
LIMIT = 1000


def bare(raw: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(raw) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("X-GZip", gzip.compress),
    "zlib": ("deflate", zlib.compress),
    "deflate-without-a-head": ("deflate", bare),
    "zstd": ("zstd", zstd.compress),
    "gzip-in-two-members": ("gzip", lambda raw: gzip.compress(raw[:50]) + gzip.compress(raw[50:])),
    "zstd-in-two-frames": ("zstd", lambda raw: zstd.compress(raw[:50]) + zstd.compress(raw[50:])),
    "identity": ("identity", lambda raw: raw),
    "empty": ("", lambda raw: raw),
}
packed = pytest.mark.parametrize(("encoding", "pack"), PACKERS.values(), ids=PACKERS)


@packed
async def test_a_packed_body_is_read_as_what_it_unpacks_to(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    answer = await post("/things", pack(BODY), **{"content-encoding": encoding})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"name": "Zoë" * 100, "count": 1}


@packed
async def test_it_may_come_byte_by_byte(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    async def sent() -> AsyncGenerator[bytes]:
        for byte in pack(BODY):
            yield bytes([byte])

    answer = await post("/things", sent(), **{"content-encoding": encoding})
    assert answer.json() == {"name": "Zoë" * 100, "count": 1}


@packed
async def test_the_limit_is_on_what_a_body_unpacks_to(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    whole = await post("/raw", pack(b"x" * LIMIT), **{"content-encoding": encoding})
    assert whole.json() == LIMIT
    refused = await post("/raw", pack(b"x" * (LIMIT + 1)), **{"content-encoding": encoding})
    assert refused.status_code == 413
    assert problem(refused)["message"] == f"the body is over the limit of {LIMIT} bytes"


@packed
async def test_a_body_that_is_cut_or_in_another_form_is_refused(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    if encoding in {"", "identity"}:
        return
    whole = pack(BODY)
    for damaged in (whole[:-1], whole[: len(whole) // 2], BODY, whole + b"{}", b"\x00" * 40):
        refused = await post("/things", damaged, **{"content-encoding": encoding})
        assert refused.status_code == 400, damaged
        assert problem(refused)["code"] == "invalid_encoding"
        assert problem(refused)["param"] == "content-encoding"


async def test_an_empty_body_is_an_empty_body() -> None:
    answer = await post("/raw", b"", **{"content-encoding": "gzip"})
    assert answer.json() == 0


@pytest.mark.parametrize("encoding", ["br", "compress", "gzip, gzip", "zstd,gzip", "aws-chunked", "utf-8"])
async def test_another_encoding_is_refused_with_those_that_are_taken(encoding: str) -> None:
    refused = await post("/things", BODY, **{"content-encoding": encoding})
    assert refused.status_code == 415
    assert refused.headers["accept-encoding"] == "gzip, deflate, zstd"
    assert problem(refused)["code"] == "unsupported_media_type"


async def test_two_headers_are_two_encodings() -> None:
    async with client_of() as client:
        headers = [("content-encoding", "gzip"), ("content-encoding", "gzip"), ("content-type", "application/json")]
        refused = await client.post("/things", content=gzip.compress(gzip.compress(BODY)), headers=headers)
    assert refused.status_code == 415


@pytest.fixture(scope="module")
def small() -> Iterator[Small]:
    with small_process(max_body_bytes=1 << 20) as started:
        yield started


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstd.compress), ("deflate", zlib.compress)]
)
def test_a_bomb_takes_no_memory(small: Small, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    bomb, url = pack(bytes(1 << 27)), f"http://127.0.0.1:{small.port}/raw"
    headers, before = {"content-encoding": encoding, "content-type": "application/json"}, small.memory_mb
    for _ in range(3):
        assert httpx.post(url, content=bomb, headers=headers).status_code == 413
    assert small.memory_mb < before + 64
