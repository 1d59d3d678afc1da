"""Bodies that are small as bytes and huge as objects are refused before they are parsed; numbers are kept exactly."""

import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from fastapi.routing import APIRoute

from gateway.access import BatchRoom, Room
from gateway.files.routes import fetch_file, upload_file
from gateway.main import build_app
from gateway.settings import GatewaySettings
from gateway.worker import working
from memloop.wire.errors import Unprocessable
from memloop_service.http.bodies import MOST_PARTS, refuse_lost_digits, refuse_too_many_parts
from tests.fakes.real_store import real_store
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.long_reads import asked
from tests.gateway.rig import settings_for
from tests.gateway.running import CHAT, Gateway, question, running_gateway
from tests.memloop.growth import is_linear

MIB = 1024 * 1024
BOMBS = {
    "objects": b'{"a": [' + b"{}," * MIB + b"{}]}",
    "lists": b'{"a": [' + b"[]," * MIB + b"[]]}",
    "numbers": b'{"a": [' + b"1," * MIB + b"1]}",
    "keys": b"{" + b",".join(b'"%d":1' % number for number in range(MOST_PARTS)) + b"}",
    "strings": b'{"a": [' + b'"",' * MIB + b'""]}',
    "escaped quotes": b'{"\\\\": [' + b'"\\"",' * MIB + b'""]}',
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
async def test_a_body_that_grows_when_parsed_is_refused_and_never_parsed(gateway: Gateway, body: bytes) -> None:
    orjson.loads(body)  # it is JSON
    for path in (CHAT, "/v1/responses", "/v1/memory/add", "/v1/long-read", "/v3/memories/add"):
        answer = await gateway.post(path, body)
        assert (answer.status, answer.json["error"]["code"]) == (422, "too_many_values"), path
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        answer = await gateway.post(path, body)
        assert (answer.status, answer.error["code"]) == (400, "too_many_values"), path


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_looking_takes_no_more_memory_than_a_few_bodies(body: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(Unprocessable):
        refuse_too_many_parts(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(body) + 64 * 2 * MOST_PARTS


TEXTS = {
    "prose": "One, two: [three], {four}. " * 40_000,
    "quotes": 'He said: "yes", and "no, never": [a], {b}.\n' * 40_000,
    "backslashes": "C:\\[a]\\,{b}\\" * 60_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_punctuation_inside_of_strings_does_not_count(text: str) -> None:
    body = orjson.dumps({"document": {"text": text}, "question": "What?"})
    assert sum(map(body.count, (b",", b":", b"[", b"{"))) > MOST_PARTS / 2
    refuse_too_many_parts(body)
    refuse_too_many_parts(orjson.dumps([text] * 4))


def test_twice_the_body_costs_at_most_twice_the_time() -> None:
    assert is_linear(lambda size: orjson.dumps({"text": 'a,"[{:\\' * size}), refuse_too_many_parts, size=2_000_000)


WINDOW = 1 << 18


@pytest.mark.parametrize("before", [*range(WINDOW - 24, WINDOW + 3), 2 * WINDOW - 9])
def test_an_integer_beyond_64_bits_is_found_across_the_windows_borders(before: int) -> None:
    text = orjson.dumps({"text": "x" * (before - 15)})[:-1]
    with pytest.raises(Unprocessable, match="64 bits"):
        refuse_lost_digits(text + b',"n":-%d}' % 2**64)
    refuse_lost_digits(text + b',"n":%d}' % (2**63 - 1))


@pytest.mark.parametrize("before", range(WINDOW - 40, WINDOW + 2))
def test_strings_and_escapes_across_the_windows_borders_are_no_numbers(before: int) -> None:
    texts = ["x" * before, '\\"' * 3 + "9" * 30, "\\" * 9, "8" * 30 + '"', '"' * 5]
    raw = orjson.dumps(texts)
    refuse_lost_digits(raw)
    with pytest.raises(Unprocessable, match="64 bits"):
        refuse_lost_digits(raw[:-1] + b",%d]" % 2**64)


@pytest.mark.parametrize(
    "number",
    [b"0.1234567890123456789012", b"12345678901234567890123.5", b"1e-00000000000000000000001", b"1" * 25 + b"E2"],
)
def test_digits_of_a_fraction_or_an_exponent_are_no_integer(number: bytes) -> None:
    refuse_lost_digits(b'{"n":' + number + b"}")


def test_looking_for_integers_grows_with_the_body() -> None:
    made = (b'{"a":%d,"b":' % 2**62 + b'"\\\\\\"9",' * 9 + b"}").ljust(200)
    assert is_linear(lambda size: made * (size // 200), refuse_lost_digits, size=4_000_000)


@pytest.mark.parametrize("path", [CHAT, "/v1/memory/add", "/v1/messages", "/v1/responses", "/v1/memory/batch"])
async def test_a_list_of_faults_costs_no_more_than_its_first(gateway: Gateway, path: str) -> None:
    body = b'{"model":"m","user_id":"u","max_tokens":9,"%b":[' + b"{}," * 100_000 + b"{}]}"
    named = {"/v1/responses": b"input", "/v1/memory/batch": b"adds"}.get(path, b"messages")
    began = time.process_time()
    answer = await gateway.post(path, body % named)
    assert answer.status in (400, 422)
    assert time.process_time() - began < 1.0


async def test_json_has_a_limit_of_its_own_but_documents_and_batches_do_not(settings: GatewaySettings) -> None:
    body = orjson.dumps(question("x" * 5_000))
    async with running_gateway(settings.model_copy(update={"max_json_bytes": 4_000})) as gateway:
        refused = await gateway.post(CHAT, body)
        assert (refused.status, refused.error["code"]) == (413, "too_large")
        assert (await gateway.post(CHAT + "/", body)).status == 413
        for path in ("/v1/long-read", "/v1/long-read/estimate", "/v1/memory/batch", "/mcp"):
            assert (await gateway.post(path, body)).status != 413, path


READS_NO_BODY = {"/v1/admin/keys/{key_id}", "/v1/admin/memory-webhooks/{hook_id}"}
"""Take the request for its address."""


def reading_routes(settings: GatewaySettings) -> Iterator[APIRoute]:
    """The routes that may be sent a body."""
    for route in build_app(settings).routes:
        if (
            isinstance(route, APIRoute)
            and route.methods & {"POST", "PUT", "PATCH", "DELETE"}
            and route.path not in READS_NO_BODY
        ):
            yield route


def test_every_route_that_reads_a_body_takes_room(settings: GatewaySettings) -> None:
    routes = list(reading_routes(settings))
    assert len(routes) > 20
    roomless = [
        route.path
        for route in routes
        if route.dependant.request_param_name == "request"
        and not {needed.call for needed in route.dependant.dependencies} & {Room.dependency, BatchRoom.dependency}
        and route.endpoint not in (upload_file, fetch_file)  # they have room of their own kind
    ]
    assert roomless == []


TURN = {"messages": [{"role": "user", "content": "Tea."}], "user_id": "u1", "infer": False}


async def test_integer_may_have_a_fraction_of_zero(gateway: Gateway) -> None:
    read = await gateway.post("/v1/long-read/estimate", asked(max_rereads=2.0, memory_tokens=64.0))
    assert (read.status, read.json["chunks"]) == (200, 2)
    assert (await gateway.post("/v1/memory/search", {"query": "tea", "user_id": "u1", "top_k": 3.0})).status == 200
    assert (await gateway.chat(memory={"user_id": "u1", "top_k": 3.0})).status == 200


@pytest.mark.parametrize("value", [2.5, True, "2"])
async def test_no_integer_is(gateway: Gateway, value: object) -> None:
    answer = await gateway.post("/v1/long-read/estimate", asked(max_rereads=value))
    assert (answer.status, answer.error["param"]) == (422, "max_rereads")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**200], ids=["above", "below", "hundreds of digits"])
async def test_integer_beyond_64_bits_is_refused(gateway: Gateway, number: int) -> None:
    raw = b'{"messages": [{"role": "user", "content": "x"}], "user_id": "u1", "metadata": {"n": [%d]}}' % number
    answer = await gateway.post("/v1/memory/add", raw)
    assert (answer.status, answer.error["code"]) == (422, "number_out_of_range")


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1" * 400], ids=["above", "below", "without exponent"])
async def test_number_that_is_infinite_is_no_json(gateway: Gateway, number: bytes) -> None:
    raw = b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": %b}' % number
    answer = await gateway.post("/v1/chat/completions", raw)
    assert (answer.status, answer.error["code"]) == (400, "invalid_json")


async def test_numbers_of_64_bits_are_kept_exactly(redis_url: str, tmp_path: Path, engine: FakeEngine) -> None:
    kept = {"least": -(2**63), "most": 2**63 - 1}
    async with real_store(redis_url, tmp_path) as store:
        settings = settings_for(redis_url, engine_url=engine.url, store_url=store, model="m")
        async with running_gateway(settings) as gateway, working(gateway.work, settings):
            answer = await gateway.post("/v1/memory/add", {**TURN, "metadata": kept})
            item = answer.json["memories"][0]["item"]
            assert (await gateway.get(f"/v1/memory/{item['id']}")).json["metadata"] == kept
