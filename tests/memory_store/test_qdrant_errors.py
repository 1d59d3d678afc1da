"""Each kind of a Qdrant server's failure: status, code and one sentence of ours; the raw body in the log alone.

The real client, over HTTP, against a stand-in with the statuses and messages of Qdrant's REST API.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
from aiohttp import web
from qdrant_client import AsyncQdrantClient

from memloop.wire.errors import DependencyError
from memory_store.settings import Settings
from memory_store.vectors.filters import AllOf
from memory_store.vectors.qdrant_server import QdrantServer
from memory_store.vectors.schema import CollectionSpec
from tests.fakes.ports import free_port
from tests.fakes.qdrant_server import Answer, QdrantStandIn, failed
from tests.memory_store.conftest import app_over, serving

_ALL = AllOf(())
_SHARD = "The replica set for shard 3 on peer 6358360577973509"


def _answering(status: int, error: str, *, retry_after: str | None = None) -> Answer:
    async def answer() -> web.Response:
        return failed(status, error, retry_after=retry_after)

    return answer


def _plain(status: int, text: str) -> Answer:
    async def answer() -> web.Response:
        return web.Response(status=status, text=text)

    return answer


async def _never() -> web.Response:
    await asyncio.Event().wait()
    raise AssertionError


def _client(url: str, *, timeout_s: int = 60) -> AsyncQdrantClient:
    return AsyncQdrantClient(url=url, timeout=timeout_s, check_compatibility=False)


@asynccontextmanager
async def _opened(answer: Answer, *, timeout_s: int = 60) -> AsyncGenerator[QdrantServer]:
    server = QdrantStandIn()
    async with server.running() as url:
        vectors = QdrantServer(_client(url, timeout_s=timeout_s))
        await vectors.open(CollectionSpec("m", 4))
        server.answers_points = answer
        yield vectors
        await vectors.close()


_CASES = [
    (500, f"Service internal error: {_SHARD} does not have enough active replicas", 503, "qdrant_no_live_copy"),
    (500, "Service internal error: 1 of 1 read operations failed: Tonic status", 503, "qdrant_no_live_copy"),
    (503, "Shard temporarily unavailable: shard 2 recovers", 503, "qdrant_no_live_copy"),
    (
        500,
        "Service internal error: Failed to apply operation to at least one `Active` replica. Please retry.",
        503,
        "qdrant_consistency",
    ),
    (500, "Pre-condition failure: shard 2 is in transfer", 503, "qdrant_consistency"),
    (429, "Rate limiting exceeded: Write rate limit exceeded", 503, "qdrant_rate_limited"),
    (408, "Timeout: Operation 'Search' timed out after 10s", 504, "qdrant_timeout"),
    (401, "Invalid API key or JWT", 502, "qdrant_key_refused"),
    (403, "Forbidden: Write access to collection m is required", 502, "qdrant_key_refused"),
    (403, "Storage locked: maintenance", 503, "qdrant_locked"),
    (
        400,
        'Bad request: Index required but not found for "tenant". Help: Create an index for this key',
        502,
        "qdrant_strict_mode",
    ),
    (404, "Not found: Collection `memloop_m_4` doesn't exist!", 502, "qdrant_no_collection"),
    (507, "Insufficient storage: disk", 503, "qdrant_storage_full"),
    (400, "Format error in JSON body: secret", 502, "qdrant_refused"),
    (500, "Service internal error: No such file or directory", 502, "qdrant_failed"),
]


@pytest.mark.parametrize(("status", "error", "ours", "code"), _CASES, ids=lambda value: str(value)[:40])
async def test_each_kind_of_error_has_its_status_code_and_sentence(
    status: int, error: str, ours: int, code: str
) -> None:
    async with _opened(_answering(status, error)) as vectors:
        with pytest.raises(DependencyError) as raised:
            await vectors.count(where=_ALL)

    assert (raised.value.http_status, raised.value.code) == (ours, code)
    assert (raised.value.retry_after_s is not None) == (ours in {503, 504})
    assert error.split(": ")[-1] not in raised.value.message


@pytest.mark.parametrize(("retry_after", "expected"), [("7", 7), ("Mon, 23 Nov 2026 06:00:00 GMT", 2)])
async def test_a_rate_limit_keeps_the_servers_time_to_come_back_if_it_is_a_number(
    retry_after: str, expected: float
) -> None:
    async with _opened(_answering(429, "Rate limiting exceeded", retry_after=retry_after)) as vectors:
        with pytest.raises(DependencyError) as raised:
            await vectors.count(where=_ALL)

    assert (raised.value.code, raised.value.retry_after_s) == ("qdrant_rate_limited", expected)


async def test_a_proxy_without_a_server_behind_it_is_unavailable() -> None:
    async with _opened(_plain(502, "<html>Bad Gateway</html>")) as vectors:
        with pytest.raises(DependencyError) as raised:
            await vectors.count(where=_ALL)

    assert (raised.value.http_status, raised.value.code) == (503, "qdrant_unavailable")


async def test_a_server_that_does_not_answer_is_a_timeout_with_a_sentence() -> None:
    async with _opened(_never, timeout_s=1) as vectors:
        with pytest.raises(DependencyError) as raised:
            await vectors.count(where=_ALL)

    assert (raised.value.http_status, raised.value.code) == (504, "qdrant_timeout")
    assert raised.value.message == "Qdrant did not answer in time."


async def test_a_response_that_is_no_result_is_unreadable() -> None:
    async with _opened(_plain(200, '{"result": {"count": "many"}}')) as vectors:
        with pytest.raises(DependencyError) as raised:
            await vectors.count(where=_ALL)

    assert (raised.value.http_status, raised.value.code) == (502, "qdrant_unreadable")


async def test_a_server_that_is_away_is_unreachable() -> None:
    vectors = QdrantServer(_client(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(DependencyError) as raised:
        await vectors.open(CollectionSpec("m", 4))
    await vectors.close()

    assert (raised.value.http_status, raised.value.code) == (503, "qdrant_unreachable")
    assert raised.value.message == "Qdrant cannot be reached."


async def test_the_body_is_logged_and_not_shown_to_the_client(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    server = QdrantStandIn(answers_points=_answering(500, f"{_SHARD} does not have enough active replicas"))
    async with server.running() as url:
        app = app_over(QdrantServer(_client(url)), settings)
        with caplog.at_level(logging.WARNING):
            async with serving(app) as http:
                answer = await _searched(http)

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert answer.json()["error"]["code"] == "qdrant_no_live_copy"
    assert "6358360577973509" not in answer.text
    assert "6358360577973509" in caplog.text


async def test_a_refused_request_may_quote_user_text_and_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        async with _opened(_answering(400, "Format error in JSON body: my diary")) as vectors:
            with pytest.raises(DependencyError):
                await vectors.count(where=_ALL)

    assert "Qdrant answered 400: qdrant_refused" in caplog.text
    assert "my diary" not in caplog.text


async def _searched(http: httpx.AsyncClient) -> httpx.Response:
    return await http.post("/v1/items/search", json={"namespace": {"tenant": "t", "user_id": "u"}, "query": "harbour"})
