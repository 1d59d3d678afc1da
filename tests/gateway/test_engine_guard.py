"""An engine that refuses connections: one retry, and a circuit that opens and closes again."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from yarl import URL

from gateway.engine_guard import Breaker, CircuitOpen, EngineGuard, RetryBudget
from gateway.settings import GatewaySettings
from memloop.clients import RawResponse
from memloop.wire.errors import ConnectRefused, EngineError, MemloopError, Timeout, Unavailable, Unreachable
from tests.fakes.streaming_engine import MODEL, FakeEngine
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway, running_gateway

REFUSED = ConnectRefused("refused")
ANSWER = cast(RawResponse, object())


@dataclass
class Engine:
    """Fails calls with these, then answers; ``health`` is what its check raises."""

    failures: list[MemloopError] = field(default_factory=list[MemloopError])
    health: MemloopError | None = None
    calls: int = 0
    checks: int = 0

    @asynccontextmanager
    async def stream_raw(self, body: bytes, *, path: str) -> AsyncGenerator[RawResponse]:
        del body, path
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        yield ANSWER

    async def check(self) -> None:
        self.checks += 1
        if self.health is not None:
            raise self.health


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def guard(engine: Engine, clock: Clock | None = None, *, failures: int = 100) -> EngineGuard:
    return EngineGuard(engine, Breaker(failures=failures, open_s=5.0, clock=clock or Clock()))


async def outcomes(guarded: EngineGuard, count: int) -> Sequence[type[object]]:
    """What each of some calls came to."""

    async def outcome() -> type[object]:
        try:
            async with guarded.open(b"{}", path="chat/completions") as response:
                return type(response)
        except MemloopError as error:
            return type(error)

    return [await outcome() for _ in range(count)]


async def test_a_refused_connection_is_tried_once_more() -> None:
    engine = Engine([REFUSED])
    assert await outcomes(guard(engine), 1) == [object]
    assert engine.calls == 2


async def test_a_second_refusal_is_the_answer() -> None:
    engine = Engine([REFUSED] * 3)
    assert await outcomes(guard(engine), 1) == [ConnectRefused]
    assert engine.calls == 2


@pytest.mark.parametrize("error", [Timeout("t"), Unreachable("u"), Unavailable("lost"), EngineError("e")], ids=repr)
async def test_what_may_have_been_sent_is_not_tried_again(error: MemloopError) -> None:
    engine = Engine([error])
    assert await outcomes(guard(engine), 1) == [type(error)]
    assert engine.calls == 1


def test_retries_are_a_tenth_of_the_calls_after_the_first_ten() -> None:
    budget = RetryBudget()
    made = 0
    for _ in range(101):
        budget.earn()
        made += budget.spend()
    assert 19 <= made <= 20


async def test_the_circuit_opens_after_failures_in_a_row_and_the_engine_is_left_alone() -> None:
    engine = Engine([REFUSED] * 100)
    assert await outcomes(guard(engine, failures=4), 5) == [ConnectRefused, ConnectRefused, *[CircuitOpen] * 3]
    assert engine.calls == 4


async def test_an_answer_in_between_starts_the_count_again() -> None:
    engine = Engine([Unreachable("u"), EngineError("500"), Unreachable("u")])
    assert await outcomes(guard(engine, failures=2), 4) == [Unreachable, EngineError, Unreachable, object]


async def test_a_probe_that_is_answered_closes_the_circuit() -> None:
    engine, clock = Engine([Unreachable("u")], health=EngineError("no such route", engine_status=404)), Clock()
    guarded = guard(engine, clock, failures=1)
    before = await outcomes(guarded, 2)
    clock.now = 5.0
    assert [*before, *await outcomes(guarded, 2)] == [Unreachable, CircuitOpen, object, object]
    assert engine.checks == 1


async def test_a_probe_that_fails_keeps_the_circuit_open() -> None:
    engine, clock = Engine([Unreachable("u")], health=Unreachable("u")), Clock()
    guarded = guard(engine, clock, failures=1)
    before = await outcomes(guarded, 1)
    clock.now = 5.0
    assert [*before, *await outcomes(guarded, 2)] == [Unreachable, Unreachable, CircuitOpen]
    assert (engine.calls, engine.checks) == (1, 1)


async def test_clients_are_told_at_once_while_the_engine_is_gone_and_served_when_it_is_back(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    changes = {"model": MODEL, "engine_breaker_failures": 2, "engine_breaker_open_s": 0.3}
    port = URL(engine.url).port
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        await engine.stop()
        await gateway.chat()
        refused = await gateway.chat()
        assert (refused.status, refused.error["code"]) == (503, "engine_circuit_open")
        assert int(refused.headers["Retry-After"]) >= 1
        assert await kinds(gateway) == {"connectrefused": 1, "circuitopen": 1}
        assert port is not None
        await engine.start(port=port)

        async def served() -> bool:
            return (await gateway.chat()).status == 200

        await eventually(served)


async def kinds(gateway: Gateway) -> dict[str, float]:
    """The failures that were counted, by kind."""
    names = ("connectrefused", "unreachable", "circuitopen", "unavailable", "timeout")
    counts = {name: await gateway.metric(f'upstream_errors_total{{kind="{name}"}}') for name in names}
    return {name: count for name, count in counts.items() if count}
