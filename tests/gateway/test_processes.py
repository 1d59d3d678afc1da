"""Gateway and worker as real processes: every line that they print is JSON, and both export their part of one trace."""

import json
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.fakes.job_engine import add_memory, engine_server
from tests.fakes.real_store import real_store
from tests.fakes.service_process import started
from tests.fakes.web_server import serving
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, question

SECRET = "the violet lighthouse"
FIELDS = {"time", "level", "service", "logger", "message"}


async def test_real_processes_log_json_and_export_one_trace(redis_url: str, tmp_path: Path) -> None:
    exported = ExportTraceServiceRequest()

    async def receive(request: web.Request) -> web.Response:
        exported.MergeFromString(await request.read())
        return web.Response()

    async with AsyncExitStack() as stack:
        collector = await stack.enter_async_context(serving([web.post("/v1/traces", receive)]))
        engine = await stack.enter_async_context(engine_server(lambda _: add_memory(SECRET)))
        store = await stack.enter_async_context(real_store(redis_url, tmp_path / "store"))
        environment = {
            "MEMLOOP_REDIS_URL": redis_url,
            "MEMLOOP_STORE_URL": store,
            "MEMLOOP_ENGINE_URL": engine.url,
            "MEMLOOP_MODEL": "m",
            "MEMLOOP_LOG_LEVEL": "debug",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
        }
        async with (
            started("gateway.main", tmp_path, environment) as gateway,
            started("gateway.worker", tmp_path, environment) as worker,
            aiohttp.ClientSession() as http,
        ):
            body = question(SECRET, memory={"user_id": "u1"})
            async with http.post(gateway.url + CHAT, json=body) as answer:
                assert answer.status == 200
            await eventually(lambda: len(engine.calls) == 2)
    logs = {log: log.read_text() for log in (gateway.log, worker.log)}
    for text in logs.values():
        assert text
        assert all(_names(line) >= FIELDS for line in text.splitlines())
        assert SECRET not in text
    spans = [
        (_service(resource.resource.attributes), span)
        for resource in exported.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    job = next(span for service, span in spans if (service, span.name) == ("memloop-worker", "job memory"))
    request = next(span for service, span in spans if (service, span.name) == ("gateway", f"POST {CHAT}"))
    assert (job.trace_id, job.parent_span_id) == (request.trace_id, request.span_id)
    assert SECRET.encode() not in exported.SerializeToString()


def _names(line: str) -> set[str]:
    return set(json.loads(line))


def _service(attributes: Iterable[KeyValue]) -> str:
    return next(pair.value.string_value for pair in attributes if pair.key == "service.name")
