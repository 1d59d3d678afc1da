"""Logs: one JSON object a line, the request's id through all processes, and no word of a user."""

import json
import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import AsyncExitStack
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from gateway.worker import working
from memloop_service.logs import JsonLines
from tests.fakes.real_store import real_store
from tests.fakes.streaming_engine import MODEL, FakeEngine, Refuses, Says
from tests.gateway.long_reads import asked
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import Gateway, running_gateway

SECRET = "the violet lighthouse"


@pytest.fixture
def written() -> Generator[StringIO]:
    """What all loggers write, at the lowest level, in the format of our processes."""
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines("test"))
    root, before = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def _lines(written: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


def _of(written: StringIO, logger: str) -> list[dict[str, Any]]:
    return [line for line in _lines(written) if line["logger"].startswith(logger)]


def _jobs(written: StringIO, request_id: str) -> list[dict[str, Any]]:
    """What is written of the request's jobs."""
    return [line for line in _of(written, "gateway.queue.runner") if line.get("request_id") == request_id]


def _refuses_loops(messages: Sequence[Mapping[str, Any]]) -> None:
    if len(messages) > 1:
        raise ValueError(SECRET)


async def _use(gateway: Gateway, engine: FakeEngine) -> str:
    """A secret goes every way there is, good and bad; the request id of the chat whose write fails."""
    engine.will(Says(SECRET), Says(SECRET), Says(SECRET))
    engine.template = _refuses_loops
    answer = await gateway.chat(SECRET, memory={"user_id": SECRET})
    await gateway.chat(SECRET, stream=True, memory={"user_id": SECRET})
    await gateway.post("/v1/long-read", asked(model=MODEL, question=SECRET, document={"text": SECRET * 40}))
    await gateway.post("/v1/memory/search", {"query": SECRET, "user_id": SECRET, "filters": {"x": {SECRET: 1}}})
    await gateway.post("/v1/memory/add", {"messages": SECRET, "user_id": SECRET})
    await gateway.chat(SECRET, messages=SECRET)
    return answer.headers["x-request-id"]


async def test_no_process_logs_a_users_words_and_the_request_id_goes_through_all(
    written: StringIO, redis_url: str, tmp_path: Path, engine: FakeEngine
) -> None:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(real_store(redis_url, tmp_path))
        settings = settings_for(redis_url, engine_url=engine.url, store_url=store, model=MODEL, job_attempts=2)
        gateway = await stack.enter_async_context(running_gateway(settings))
        await stack.enter_async_context(working(gateway.work, settings))
        request_id = await _use(gateway, engine)
        await eventually(lambda: any("failures 1 of 2" in line["message"] for line in _jobs(written, request_id)))
        engine.will(Refuses(500, {"error": {"message": SECRET}}))  # not before: the write's job asks the engine too
        await gateway.chat(SECRET)
    assert SECRET not in written.getvalue()
    assert [line["level"] for line in _jobs(written, request_id)] == ["warning"]


async def test_store_and_engine_receive_the_request_id_and_the_store_uses_it(
    redis_url: str, tmp_path: Path, engine: FakeEngine, gateway: Gateway
) -> None:
    request_id = (await gateway.chat("Hi.")).headers["x-request-id"]
    assert engine.last.headers["x-client-request-id"] == request_id
    async with real_store(redis_url, tmp_path) as store:
        told = {"X-Client-Request-Id": request_id}
        async with gateway.http.get(f"{store}/v1/buffers?tenant=local", headers=told) as answer:
            assert answer.headers["x-request-id"] == request_id
