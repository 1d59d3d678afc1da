"""The engine's own routes, and the process's health."""

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import MODEL, FakeEngine, Refuses, SendsBytes
from tests.gateway.running import Gateway, running_gateway

ROUTES = ["embeddings", "completions"]


async def test_models_are_the_engines(gateway: Gateway) -> None:
    listed = await gateway.get("/v1/models")
    assert [model["id"] for model in listed.json["data"]] == [MODEL]
    assert (await gateway.get(f"/v1/models/{MODEL}")).json == listed.json["data"][0]


async def test_the_folders_of_the_engine_are_not_shown(gateway: Gateway) -> None:
    listed = await gateway.get("/v1/models")
    assert "root" not in listed.json["data"][0]


async def test_the_configured_model_is_the_first_of_the_engines_list(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    """Clients that name no model take the first: of a provider's hundred it would be any."""
    engine.models = ("embedder", "wanted", "other")
    async with running_gateway(settings.model_copy(update={"model": "wanted"})) as gateway:
        listed = await gateway.get("/v1/models")
    assert [model["id"] for model in listed.json["data"]] == ["wanted", "embedder", "other"]


@pytest.mark.parametrize("models", [None, ("other",)], ids=["no list", "not in the list"])
async def test_the_configured_model_is_listed_where_the_engine_does_not(
    settings: GatewaySettings, engine: FakeEngine, models: tuple[str, ...] | None
) -> None:
    engine.models = models
    async with running_gateway(settings.model_copy(update={"model": "deployment"})) as gateway:
        listed = await gateway.get("/v1/models")
        alone = await gateway.get("/v1/models/deployment")
    assert listed.json["object"] == "list"
    assert [model["id"] for model in listed.json["data"]] == ["deployment", *(models or ())]
    assert alone.json == listed.json["data"][0]


async def test_unknown_model_is_not_found(gateway: Gateway) -> None:
    answer = await gateway.get("/v1/models/org/none")
    assert (answer.status, answer.error["code"]) == (404, "model_not_found")


async def test_models_of_a_lost_engine_are_worth_another_try(settings: GatewaySettings, engine: FakeEngine) -> None:
    async with running_gateway(settings.model_copy(update={"model": MODEL})) as gateway:
        await engine.stop()
        answer = await gateway.get("/v1/models")
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("route", ROUTES)
async def test_body_and_answer_pass_untouched(gateway: Gateway, engine: FakeEngine, route: str) -> None:
    engine.will(SendsBytes([b'{"odd" :1}']))
    answer = await gateway.post(f"/v1/{route}", b'{"model":"m",  "input":"x", "memory": {"kept": true}}')
    assert answer.raw == b'{"odd" :1}'
    assert (engine.last.path, engine.last.raw) == (route, b'{"model":"m",  "input":"x", "memory": {"kept": true}}')


@pytest.mark.parametrize("route", ["completions"])
async def test_stream_passes_untouched(gateway: Gateway, engine: FakeEngine, route: str) -> None:
    raw = b'event: response.completed\ndata: {"type":"response.completed"}\n\n'
    engine.will(SendsBytes([raw], "text/event-stream; charset=utf-8"))
    assert (await gateway.post(f"/v1/{route}", {"model": "m", "stream": True})).raw == raw


@pytest.mark.parametrize("route", ["completions", "embeddings"])
async def test_a_route_without_memory_says_so_in_its_header(gateway: Gateway, route: str) -> None:
    for stream in (False, True):
        answer = await gateway.post(f"/v1/{route}", {"model": "m", "input": "x", "user": "u1", "stream": stream})
        assert (answer.status, answer.headers["X-Memloop-Memory"]) == (200, "none")


async def test_refusal_passes(gateway: Gateway, engine: FakeEngine) -> None:
    engine.will(Refuses(404, {"error": {"message": "no such model", "type": "NotFoundError", "code": 404}}))
    answer = await gateway.post("/v1/embeddings", {"model": "none", "input": "x"})
    assert (answer.status, answer.error["message"]) == (404, "no such model")


@pytest.mark.parametrize("route", [*ROUTES, "chat/completions"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "odd",
    [
        Refuses(204, b""),
        Refuses(302, b"<html>moved</html>", {"Location": "https://login.example/"}),
        Refuses(304, b""),
        Refuses(307, {"detail": "moved"}, {"Content-Type": "text/event-stream"}),
        Refuses(200, b""),
        Refuses(200, b"<html>Please log in.</html>"),
    ],
    ids=["204", "302", "304", "307", "empty", "a page"],
)
async def test_what_is_neither_an_answer_nor_a_refusal_is_the_engines_fault(
    gateway: Gateway, engine: FakeEngine, route: str, stream: bool, odd: Refuses
) -> None:
    engine.will(odd)
    body = {"model": MODEL, "input": "x", "prompt": "x", "messages": [{"role": "user", "content": "x"}]}
    answer = await gateway.post(f"/v1/{route}", {**body, "stream": stream})
    assert (answer.status, answer.error["type"], "Location" in answer.headers) == (502, "upstream_error", False)
    assert int(answer.headers["Retry-After"]) >= 1


async def test_readiness_names_each_dependency(gateway: Gateway, store: FakeStore) -> None:
    assert (await gateway.get("/readyz")).json["dependencies"] == {"redis": "ok", "store": "ok", "engine": "ok"}
    await store.stop()
    answer = await gateway.get("/readyz")
    assert answer.status == 503
    assert answer.json["dependencies"]["store"] == "the memory store cannot be reached"
    assert (await gateway.get("/livez")).status == 200


async def test_loops_ask_the_model_of_the_settings_else_the_engines_first(
    settings: GatewaySettings, gateway: Gateway
) -> None:
    assert gateway.backend.models.chat.id == MODEL
    async with running_gateway(settings.model_copy(update={"model": "mine"})) as other:
        assert other.backend.models.chat.id == "mine"


@pytest.mark.parametrize(
    "row", [{"object": "model"}, {"created": None, "owned_by": None}, {"created": "2026-01-31", "object": 7}]
)
async def test_a_row_of_the_engines_list_gets_openais_fields(
    settings: GatewaySettings, engine: FakeEngine, row: dict[str, object]
) -> None:
    """LM Studio leaves ``created`` out; strict clients, such as those in Rust, refuse the list."""
    engine.model_row = row
    async with running_gateway(settings) as gateway:
        [shown] = (await gateway.get("/v1/models")).json["data"]
    assert (type(shown["created"]), type(shown["owned_by"]), shown["object"]) == (int, str, "model")
