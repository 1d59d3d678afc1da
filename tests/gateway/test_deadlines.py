"""The time that a client waits bounds the engine's work; refusals that pass always tell when to come back."""

import pytest
from openai import AsyncOpenAI, InternalServerError

from memloop.wire.errors import InvalidRequest, MemloopError, Overloaded, RateLimited, Unavailable
from memloop_service import error_response
from memloop_service.http.admission import deadline_s
from tests.fakes.streaming_engine import FakeEngine, Hangs
from tests.gateway.running import CHAT, Gateway, question


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"x-request-timeout": "20"}, 20.0),
        ({"x-stainless-read-timeout": "600.0"}, 600.0),
        ({"x-stainless-timeout": "60", "x-stainless-read-timeout": "600"}, 60.0),
        ({"x-request-timeout": "2.5", "x-stainless-timeout": "60"}, 2.5),
        ({"x-stainless-timeout": "not-given"}, None),
        ({"x-stainless-read-timeout": "-1"}, None),
        ({"x-stainless-read-timeout": "inf"}, None),
    ],
    ids=str,
)
def test_the_shortest_of_the_clients_timeouts_counts(headers: dict[str, str], seconds: float | None) -> None:
    assert deadline_s(headers) == seconds


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", ""])
def test_a_deadline_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        deadline_s({"x-request-timeout": text})


async def test_an_answer_in_time_is_not_disturbed(gateway: Gateway) -> None:
    assert (await gateway.post(CHAT, question(), headers={"X-Request-Timeout": "20"})).status == 200


async def test_the_timeout_that_openais_client_sends_bounds_the_engine_call(
    gateway: Gateway, engine: FakeEngine
) -> None:
    engine.will(Hangs())
    client = AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="any", max_retries=0)
    with pytest.raises(InternalServerError) as refused:
        await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Hi."}],
            extra_headers={"x-stainless-read-timeout": "2"},
        )
    await client.close()
    assert (refused.value.status_code, refused.value.code) == (504, "deadline_exceeded")
    await engine.until_running(0)
    assert engine.aborted == 1


@pytest.mark.parametrize("error", [RateLimited("x"), Overloaded("x"), Unavailable("x")], ids=repr)
def test_429_and_503_always_carry_retry_after(error: MemloopError) -> None:
    assert error_response(error).headers["Retry-After"] == "1"
