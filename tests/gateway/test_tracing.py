"""Traces: one chat is one trace through gateway, store, engine and worker; a read has a span for each chunk."""

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gateway.main import build_app
from gateway.settings import GatewaySettings
from gateway.worker import working
from memloop_service import start_tracing
from memloop_service.tracing import is_tracing, use_provider
from tests.fakes.real_store import real_store
from tests.fakes.spans import Spans, collected_spans
from tests.fakes.streaming_engine import MODEL, FakeEngine, Hangs, Refuses, Says
from tests.fakes.web_server import serving
from tests.gateway.long_reads import asked
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import CHAT, Gateway, question, running_gateway

SECRET = "the violet lighthouse"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACED = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "vendor=1"}
SERVER = f"POST {CHAT}"
CALL = f"chat {MODEL}"
BY_THE_CLOCK = "GET /v1/buffers/idle"
"""What the worker asks the store now and then, for nobody."""


@pytest.fixture
def spans() -> Generator[Spans]:
    with collected_spans() as collected:
        yield collected


@pytest.fixture
async def traced_gateway(spans: Spans, settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway that traces, between fakes."""
    assert spans.all() == []
    async with running_gateway(settings) as running:
        yield running


@asynccontextmanager
async def _whole_stack(redis_url: str, folder: Path, engine: FakeEngine) -> AsyncGenerator[Gateway]:
    """API and worker on the real store."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(real_store(redis_url, folder))
        settings = settings_for(redis_url, engine_url=engine.url, store_url=store, model=MODEL, job_attempts=1)
        gateway = await stack.enter_async_context(running_gateway(settings))
        await stack.enter_async_context(working(gateway.work, settings))
        yield gateway


@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_chat_is_one_trace_through_all_processes(
    spans: Spans, redis_url: str, tmp_path: Path, engine: FakeEngine, *, stream: bool
) -> None:
    body = question(SECRET, memory={"user_id": SECRET}, stream=stream)
    async with _whole_stack(redis_url, tmp_path, engine) as gateway:
        answer = await gateway.post(CHAT, body, headers=TRACED)
        await eventually(lambda: bool(spans.named("job memory")))
    assert answer.status == 200
    server, call = spans.one(SERVER), spans.named(CALL)[0]
    assert (server.trace, server.parent) == (TRACE, CALLER)
    assert {span.name for span in spans.all() if span.trace != TRACE} <= {BY_THE_CLOCK}
    assert spans.path_to(call) == (SERVER, CALL)
    search = (SERVER, "memory.recall", "POST /v1/items/search", "memory.search.total")
    assert spans.path_to(spans.one("memory.search.embed")) == (*search, "memory.search.embed")
    assert spans.path_to(spans.one("memory.search.vectors")) == (*search, "memory.search.vectors")
    assert spans.path_to(spans.named("POST /v1/items")[0]) == (SERVER, "job memory", "POST /v1/items")
    assert spans.path_to(spans.named(CALL)[-1]) == (SERVER, "job memory", CALL)
    assert engine.received[0].headers["traceparent"] == f"00-{TRACE}-{call.id}-01"
    assert engine.received[0].headers["tracestate"] == "vendor=1"
    assert SECRET not in spans.text()


async def test_call_has_the_conventions_names(spans: Spans, traced_gateway: Gateway) -> None:
    await traced_gateway.chat(memory={"user_id": "u1"})
    assert spans.one(CALL).attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }
    server = spans.one(SERVER).attributes
    assert (server["http.route"], server["http.response.status_code"]) == (CHAT, 200)
    assert str(server["memloop.request_id"]).startswith("req_")


async def test_pass_through_names_its_operation(spans: Spans, traced_gateway: Gateway) -> None:
    await traced_gateway.post("/v1/completions", {"model": MODEL, "prompt": SECRET})
    assert spans.one(f"text_completion {MODEL}").attributes["gen_ai.operation.name"] == "text_completion"
    assert SECRET not in spans.text()


async def test_failure_is_marked_without_its_words(spans: Spans, traced_gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(400, {"error": {"message": SECRET, "type": "T", "param": None, "code": None}}))
    assert (await traced_gateway.chat(SECRET)).status == 400
    call = spans.one(CALL)
    assert (call.failed, call.attributes["error.type"]) == (True, "Refused")
    assert SECRET not in spans.text()


async def test_span_of_a_stream_ends_when_the_client_leaves(
    spans: Spans, traced_gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Hangs("Hel"))
    async with traced_gateway.http.post(traced_gateway.url + CHAT, json=question(stream=True)) as response:
        await response.content.readany()
        assert spans.named(CALL) == []
    await eventually(lambda: bool(spans.named(CALL)))


async def test_client_without_a_trace_begins_one(spans: Spans, traced_gateway: Gateway) -> None:
    await traced_gateway.chat()
    assert spans.one(SERVER).parent is None


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_read_has_a_span_for_each_chunk(
    spans: Spans, redis_url: str, tmp_path: Path, engine: FakeEngine, *, background: bool
) -> None:
    engine.will(Says("a memory"), Says("a memory"), Says(r"\boxed{In Rome.}"))
    async with _whole_stack(redis_url, tmp_path, engine) as gateway:
        await gateway.post("/v1/long-read", asked(model=MODEL, background=background), headers=TRACED)
        await eventually(lambda: bool(spans.named("long_read")) and bool(spans.named("POST /v1/long-read")))
    above = ("POST /v1/long-read", *(("job reads",) if background else ()), "long_read")
    chunks = spans.named("long_read.chunk")
    assert [span.attributes["memloop.chunk"] for span in chunks] == [0, 1]
    assert {tuple(spans.path_to(span)) for span in chunks} == {(*above, "long_read.chunk")}
    assert [tuple(spans.path_to(span)) for span in spans.named(CALL)] == [(*above, CALL)] * 3
    assert {span.trace for span in (*chunks, *spans.named(CALL))} == {TRACE}


async def test_health_and_metrics_are_not_traced(spans: Spans, traced_gateway: Gateway) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        await traced_gateway.get(path)
    assert spans.named("GET") == []
    assert [span for span in spans.all() if span.parent is None] == []


async def test_without_tracing_nothing_is_in_the_way(
    gateway: Gateway, engine: FakeEngine, settings: GatewaySettings
) -> None:
    before = [layer.cls for layer in gateway.app.user_middleware]
    with collected_spans():
        traced = build_app(settings)
    assert len(traced.user_middleware) == len(before) + 1
    await gateway.post(CHAT, question(), headers=TRACED)
    assert "traceparent" not in engine.last.headers


async def test_spans_go_out_by_otlp_over_http(settings: GatewaySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = ExportTraceServiceRequest()

    async def receive(request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        exported.MergeFromString(await request.read())
        return web.Response()

    async with serving([web.post("/v1/traces", receive)]) as url:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        start_tracing("gateway")
        try:
            async with running_gateway(settings) as gateway:
                await gateway.chat(SECRET)
        finally:
            use_provider(None)
    names = {
        span.name for resource in exported.resource_spans for scope in resource.scope_spans for span in scope.spans
    }
    told = [pair for resource in exported.resource_spans for pair in resource.resource.attributes]
    services = {pair.value.string_value for pair in told if pair.key == "service.name"}
    assert (services, names) == ({"gateway"}, {SERVER, CALL})
    assert SECRET.encode() not in exported.SerializeToString()


def test_nothing_is_started_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    start_tracing("gateway")
    assert not is_tracing()
