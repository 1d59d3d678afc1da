"""Items through gateways: one job each, polled to its end."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from evaluation.ruler.items import items
from memloop.wire.long_read import LongRead, LongReadRequest, ReadStatus, ReadUsage
from tests.evaluation.ruler_rig import SETUP, evaluated, evaluation, records_of
from tests.fakes.web_server import serving

SETUP_OF_GATEWAY = replace(SETUP, kind="gateway")
QUEUED = LongRead(id="lr_1", status="queued", created_at=0, model="m", strategy="memagent")


@asynccontextmanager
async def gateway(*states: ReadStatus, answer: str = "482") -> AsyncGenerator[tuple[str, list[LongReadRequest]]]:
    """A gateway whose reads go through these states, poll by poll; its URL, and what it was asked."""
    asked: list[LongReadRequest] = []
    left = list(states)

    async def create(request: web.Request) -> web.Response:
        asked.append(LongReadRequest.model_validate_json(await request.read()))
        return _read(QUEUED, status=202)

    async def poll(request: web.Request) -> web.Response:
        del request
        state = left.pop(0) if len(left) > 1 else left[0]
        ended = {"output_text": answer, "usage": ReadUsage(total_tokens=12, input_tokens=12, llm_calls=3)}
        return _read(QUEUED.model_copy(update={"status": state, **ended}))

    async def models(request: web.Request) -> web.Response:
        del request
        return web.json_response({"data": []})

    routes = [web.post("/v1/long-read", create), web.get("/v1/long-read/lr_1", poll), web.get("/v1/models", models)]
    async with serving(routes) as url:
        yield f"{url}/v1", asked


def _read(read: LongRead, *, status: int = 200) -> web.Response:
    return web.Response(text=read.model_dump_json(by_alias=True), content_type="application/json", status=status)


async def test_a_read_is_asked_for_and_followed_to_its_end(tmp_path: Path) -> None:
    async with gateway("in_progress", "completed", answer="4711") as (url, asked):
        run = evaluation(tmp_path, [url], setup=SETUP_OF_GATEWAY, limit=1)
        await evaluated(run)
    assert {(read.background, read.chunk_tokens, read.strategy) for read in asked} == {(True, 64, "memagent")}
    assert {(read.question, read.document.text) for read in asked} == {
        (item.question, item.context) for item in items(run.sources, limit=1)
    }
    assert {(record.answer, record.raw, record.calls) for record in records_of(run)} == {("4711", None, 3)}


async def test_a_read_that_failed_is_tried_again_and_then_wrong(tmp_path: Path) -> None:
    async with gateway("failed") as (url, asked):
        run = evaluation(tmp_path, [url], setup=SETUP_OF_GATEWAY, limit=1)
        found: dict[str, Any] = await evaluated(run)
    assert len(asked) == 2 * found["items"] == 2 * found["failed"]
    assert all("the read failed" in str(record.error) for record in records_of(run))
