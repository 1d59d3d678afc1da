"""An engine that refuses connections: one retry, then the next engine, and a circuit that opens and closes again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from gateway.engine.engines import Engines, RetryBudget
from gateway.settings import GatewaySettings
from memloop.ports import ChatModel, Completion, Prompt, Sampling
from memloop.templates import ChatTemplate
from memloop.wire.chat import Json
from memloop.wire.errors import ConnectRefused, EngineError, MemloopError, Timeout, Unavailable, Unreachable
from memloop_clients import Dialect, EngineBusy, EngineClient, RawResponse
from tests.fakes.streaming_engine import MODEL, FakeEngine, fake_engine
from tests.gateway.rig import eventually
from tests.gateway.running import running_gateway

REFUSED = ConnectRefused("refused")


class Answered:
    """A response of which only the status is looked at."""

    status = 200


ANSWER = cast(RawResponse, Answered())


@dataclass
class Engine:
    """Fails calls with these, then answers; ``health`` is what its check raises."""

    failures: list[MemloopError] = field(default_factory=list[MemloopError])
    health: MemloopError | None = None
    calls: int = 0

    async def send_raw(self, body: bytes, *, path: str) -> RawResponse:
        del body, path
        self._call()
        return ANSWER

    async def ask(self, prompt: Prompt, *, model: str) -> Completion:
        del prompt
        self._call()
        return Completion(content=model)

    def of_model(self, model: str) -> ChatModel:
        return guard(self, model=model)

    async def get_json(self, path: str) -> Json:
        self._call()
        return {"path": path}

    async def window(self, model: str) -> None:
        del model

    async def in_other_roles(self, body: bytes, refused: RawResponse) -> RawResponse:
        del body
        return refused

    def describe(self, model: str, template: ChatTemplate) -> None:
        del model, template

    async def dialect(self, model: str) -> Dialect:
        return Dialect(model)

    async def check(self) -> None:
        if self.health is not None:
            raise self.health

    def _call(self) -> None:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)


def guard(*engines: Engine, model: str = "m") -> Engines:
    return Engines(cast(Sequence[EngineClient], engines), model=model)


async def outcomes(guarded: Engines, count: int) -> Sequence[type[object]]:
    """What each of some calls came to."""

    async def outcome() -> type[object]:
        try:
            return type(await guarded.send(b"{}", path="chat/completions"))
        except MemloopError as error:
            return type(error)

    return [await outcome() for _ in range(count)]


async def test_a_refused_connection_is_tried_once_more() -> None:
    engine = Engine([REFUSED])
    assert await outcomes(guard(engine), 1) == [Answered]
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


@pytest.mark.parametrize("error", [REFUSED, Unreachable("u"), EngineBusy("503")], ids=repr)
async def test_the_next_engine_gets_what_the_one_before_cannot_have_begun(error: MemloopError) -> None:
    first, second = Engine([error]), Engine()
    assert await outcomes(guard(first, second), 2) == [Answered, Answered]
    assert (first.calls, second.calls) == (2, 1)


@pytest.mark.parametrize("error", [Timeout("t"), Unavailable("lost"), EngineError("e")], ids=repr)
async def test_what_may_have_broken_an_engine_is_not_sent_to_the_next(error: MemloopError) -> None:
    first, second = Engine([error]), Engine()
    assert await outcomes(guard(first, second), 1) == [type(error)]
    assert second.calls == 0


async def test_when_all_engines_refuse_all_are_tried_once_more() -> None:
    first, second = Engine([REFUSED] * 2), Engine([REFUSED])
    assert await outcomes(guard(first, second), 1) == [Answered]
    assert (first.calls, second.calls) == (2, 2)


async def test_the_loops_fall_back_and_leave_retries_to_their_hosts() -> None:
    prompt = Prompt((), Sampling(max_tokens=1))
    first, second = Engine([REFUSED] * 2), Engine([REFUSED])
    guarded = guard(first, second)
    with pytest.raises(ConnectRefused):
        await guarded.complete(prompt)
    assert (await guarded.of_model("other").complete(prompt)).content == "other"
    assert (first.calls, second.calls) == (2, 2)


async def test_engines_are_there_when_one_of_them_is() -> None:
    gone = Engine(health=Unreachable("u"))
    await guard(gone, Engine()).check()
    with pytest.raises(Unreachable):
        await guard(gone, gone).check()


async def test_chats_go_to_the_fallback_while_the_first_engine_is_down(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    async with fake_engine() as other:
        changes = {"model": MODEL, "engine_breaker_open_s": 0.1, "engine_fallback_urls": f" {other.url} ,"}
        async with running_gateway(settings.model_copy(update=changes)) as gateway:
            await engine.stop()
            answers = [await gateway.chat(), await gateway.chat(stream=True), await gateway.get("/v1/models")]
            assert [answer.status for answer in answers] == [200] * 3
            assert (await gateway.get("/readyz")).json["dependencies"]["engine"] == "ok"
            assert await gateway.metric(f'upstream_fallback_total{{model="{MODEL}"}}') == 3
            await engine.start()

            async def first_again() -> bool:
                await gateway.chat()
                return bool(engine.received)

            await eventually(first_again)


async def test_questions_to_an_engine_that_starts_leave_the_first_chat_alone(
    settings: GatewaySettings, engine: FakeEngine
) -> None:
    changes = {"model": MODEL, "engine_breaker_failures": 2, "engine_breaker_open_s": 600.0}
    async with running_gateway(settings.model_copy(update=changes)) as gateway:
        await engine.stop()
        for _ in range(5):
            assert (await gateway.get("/readyz")).json["dependencies"]["engine"] != "ok"
            await gateway.get("/v1/models")
        await engine.start()
        assert (await gateway.chat()).status == 200


async def test_a_loop_asks_the_only_engine_itself_and_falls_back_where_there_is_another() -> None:
    prompt = Prompt((), Sampling(max_tokens=1))
    only, failing, second = Engine(), Engine([REFUSED]), Engine()
    assert (await guard(only).as_model().complete(prompt)).content == "m"
    assert (await guard(failing, second).as_model().complete(prompt)).content == "m"
    assert (only.calls, failing.calls, second.calls) == (1, 1, 1)
