"""A failure frees what it failed on, at once: jobs that are tried again and again, and requests at a broken engine.

An engine may be down for hours, and every attempt at a long read holds its document.
"""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.job_engine import Body, Reply, last_text
from tests.gateway.api_rig import Api, api
from tests.gateway.cycles import MARK, cycles, holders
from tests.gateway.long_reads import PATH, asked, reader
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, question

DOCUMENT = {"text": f"{MARK} " * 40}


class Engine:
    """Answers with ``status`` where that is set."""

    status: int | None = None

    def __call__(self, body: Body) -> Reply:
        return reader(body) if self.status is None else self.status


@pytest.fixture
async def engine() -> Engine:
    return Engine()


@pytest.fixture
async def it(redis_url: str, engine: Engine) -> AsyncGenerator[Api]:
    async with api(redis_url, engine) as it:
        yield it


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("kind", ["write", "read"])
async def test_a_failed_job_frees_what_it_was_about(it: Api, engine: Engine, kind: str, status: int) -> None:
    async def failed() -> None:
        before = len(it.rig.engine.calls)
        if kind == "read":
            assert (await it.post(PATH, asked(document=DOCUMENT, background=True))).status == 202
        else:
            await it.rig.write(MARK)
        await eventually(lambda: any(MARK in last_text(call) for call in it.rig.engine.calls[before:]))
        await asyncio.sleep(0.2)

    engine.status = status
    async with it.rig.working():
        await failed()
        with cycles() as found:
            await failed()
    assert holders(found) == []


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, PATH, "/v1/messages", "/v1/responses"])
async def test_a_request_that_the_engine_fails_is_freed(
    it: Api, engine: Engine, path: str, status: int, *, stream: bool
) -> None:
    said = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": MARK}]}
    bodies = {
        CHAT: question(MARK),
        PATH: asked(document=DOCUMENT),
        "/v1/messages": said,
        "/v1/responses": {"model": "m", "input": MARK},
    }
    engine.status = status
    body = {**bodies[path], "stream": stream}
    await it.post(path, body)
    with cycles() as found:
        answer = await it.post(path, body)
        await asyncio.sleep(0.05)
    assert answer.status >= 400 or b"error" in answer.raw
    assert holders(found) == []
