"""``/v1/admin/rollouts``: a candidate takes a share of a model's requests, and the calls of both are counted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.engine import Rollouts, for_engine
from gateway.engine.models import target_of
from gateway.metrics import Metrics
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError
from memloop.wire.rollouts import CALL_BOUNDS_S, RolloutChange
from memloop_clients.gateway import GatewayClient
from memloop_service import new_registry
from tests.gateway.long_reads import PATH as READ
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway
from tests.gateway.two_models import DOCUMENT, TwoModels, two_models

PATH = "/v1/admin/rollouts"
pytestmark = pytest.mark.usefixtures("engine_keys")
USERS = [f"user-{number}" for number in range(40)]


async def put(gateway: Gateway, share: float, *, model: str = "talker", candidate: str = "j") -> Any:
    body = {"model": model, "candidate": candidate, "share": share}
    async with gateway.http.put(gateway.url + PATH, json=body) as answer:
        return (answer.status, await answer.json())


async def served(both: TwoModels, users: Sequence[str]) -> dict[str, str]:
    """Which model's engine answered the chat of each user: the candidate's is the writer's."""
    found: dict[str, str] = {}
    for user in users:
        before = len(both.engines.writer.asked)
        answer = await both.gateway.chat(model="talker", user=user, memory={"mode": "off"})
        assert answer.status == 200, answer.raw
        found[user] = "candidate" if len(both.engines.writer.asked) > before else "incumbent"
    return found


async def rollout(gateway: Gateway) -> Any:
    (one,) = (await gateway.get(PATH)).json["data"]
    return one


async def test_a_users_chats_stay_with_one_model_and_a_larger_share_keeps_them(both: TwoModels) -> None:
    assert set((await served(both, USERS[:5])).values()) == {"incumbent"}
    assert (await put(both.gateway, 0.3))[0] == 200
    first = await served(both, USERS)
    assert set(first.values()) == {"candidate", "incumbent"}
    assert await served(both, USERS) == first
    await put(both.gateway, 0.7)
    then = await served(both, USERS)
    candidates = {user for user, by in first.items() if by == "candidate"}
    assert candidates < {user for user, by in then.items() if by == "candidate"}
    await put(both.gateway, 1)
    assert set((await served(both, USERS[:5])).values()) == {"candidate"}


async def test_a_candidate_gets_its_own_name_when_its_engine_has_the_model_under_its_id(both: TwoModels) -> None:
    await put(both.gateway, 1, model="w", candidate="r")
    answer = await both.gateway.chat(model="w", memory={"mode": "off"})
    assert answer.status == 200, answer.raw
    assert both.engines.reader.asked[-1]["model"] == "r"


async def test_a_passed_through_request_is_renamed_for_the_engine_that_serves_it(both: TwoModels) -> None:
    reader, talker = (both.gateway.backend.models.named(model) for model in ("r", "talker"))
    asked: list[Json] = [{"model": "w"}, {"model": "talker"}, {"model": "r"}, {}]
    assert [for_engine(fields, reader).get("model") for fields in asked] == ["r", "r", "r", None]
    assert [for_engine(fields, talker).get("model") for fields in asked] == ["r"] * 4


async def test_the_end_of_a_rollout_gives_every_request_back(both: TwoModels) -> None:
    await put(both.gateway, 1)
    async with both.gateway.http.delete(f"{both.gateway.url}{PATH}?model=talker") as answer:
        assert await answer.json() == {"model": "talker", "deleted": True}
    assert set((await served(both, USERS[:5])).values()) == {"incumbent"}
    assert (await both.gateway.get(PATH)).json["data"] == []


async def test_the_calls_of_both_are_counted_with_their_durations(both: TwoModels) -> None:
    await put(both.gateway, 0.5)
    by = list((await served(both, USERS)).values())

    async def counted() -> bool:
        found = await rollout(both.gateway)
        return found["incumbent_calls"]["calls"] + found["candidate_calls"]["calls"] == len(USERS)

    await eventually(counted)
    found = await rollout(both.gateway)
    assert found["candidate_calls"]["calls"] == by.count("candidate")
    assert sum(found["candidate_calls"]["durations"]) == by.count("candidate")
    assert len(found["candidate_calls"]["durations"]) == len(CALL_BOUNDS_S) + 1
    assert found["candidate_calls"]["failed"] == 0
    counter = 'gateway_engine_call_seconds_count{model="j"}'
    assert await both.gateway.metric(counter) == by.count("candidate")


async def test_failed_calls_of_a_candidate_are_counted_apart(redis_url: str, tmp_path: Path) -> None:
    async with two_models(redis_url, tmp_path, down=["writer"]) as both:
        await put(both.gateway, 1)
        assert (await both.gateway.chat(model="talker")).status == 503

        async def counted() -> bool:
            return (await rollout(both.gateway))["candidate_calls"]["failed"] == 1

        await eventually(counted)


@pytest.mark.parametrize(
    ("engine_status", "failed"), [(400, False), (422, False), (429, False), (401, True), (404, True), (500, True)]
)
def test_a_refusal_counts_against_a_candidate_unless_the_client_caused_it(engine_status: int, failed: bool) -> None:
    called: list[tuple[str, float | None]] = []
    metrics = Metrics(new_registry())
    metrics.watch_calls(lambda model, seconds: called.append((model, seconds)))
    metrics.count_error(EngineError("refused", engine_status=engine_status), model="m")
    assert called == ([("m", None)] if failed else [])


async def test_all_chunks_of_a_read_go_to_one_model(both: TwoModels) -> None:
    await put(both.gateway, 0.5, model="r", candidate="w")
    by: set[int] = set()
    for _ in range(30):
        before = len(both.engines.writer.asked)
        read = {"question": "Which boat?", "document": {"text": DOCUMENT}, "chunk_tokens": 100, "model": "r"}
        answer = await both.gateway.post(READ, read)
        assert answer.status == 200, answer.raw
        calls = len(both.engines.writer.asked) - before
        assert calls == (0 if answer.json["model"] == "r" else len(both.engines.writer.asked[before:]))
        by.add(min(calls, 1))
        if len(by) == 2:
            return
    pytest.fail("thirty reads went to one model")


async def test_the_writers_candidate_decides_over_its_users_turns(both: TwoModels) -> None:
    await put(both.gateway, 1, model="w", candidate="r")
    before = len(both.engines.writer.asked)
    add = {"messages": [{"role": "user", "content": "Ann has a red boat."}], "user_id": "u1", "sync": True}
    assert (await both.gateway.post("/v1/memory/add", add)).status == 200
    assert len(both.engines.writer.asked) == before
    assert both.engines.reader.asked


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"candidate": "nobody"}, 404),
        ({"model": "nobody"}, 404),
        ({"candidate": "talker"}, 409),
        ({"candidate": "w"}, 409),  # another candidate than the one that is there
        ({"model": "j", "candidate": "w"}, 409),  # a candidate's candidate
        ({"share": 1.5}, 422),
    ],
    ids=str,
)
async def test_a_wrong_rollout_is_refused(both: TwoModels, change: dict[str, Any], status: int) -> None:
    assert (await put(both.gateway, 0.1))[0] == 200
    given: dict[str, Any] = {"share": 0.1, **change}
    assert (await put(both.gateway, **given))[0] == status
    assert (await rollout(both.gateway))["share"] == 0.1


async def test_every_process_follows_a_change(both: TwoModels, redis_url: str) -> None:
    other = Rollouts(both.gateway.redis, models := both.gateway.backend.models, Metrics(new_registry()))
    async with other.following():
        models.shares = {}
        await put(both.gateway, 1)
        models.shares = {}

        async def followed() -> bool:
            return target_of(models.shares, "talker", "anyone") == "j"

        await eventually(followed)


async def test_the_client_begins_reads_and_ends_a_rollout(both: TwoModels) -> None:
    client = GatewayClient(both.gateway.url)
    try:
        begun = await client.change_rollout(RolloutChange(model="talker", candidate="j", share=0.25))
        assert await client.rollouts() == (begun,)
        assert (begun.share, begun.candidate_calls.calls) == (0.25, 0)
        assert [await client.end_rollout("talker"), await client.end_rollout("talker")] == [True, False]
        assert await client.rollouts() == ()
    finally:
        await client.close()


def test_shares_are_kept_within_two_points_in_a_hundred() -> None:
    for share in (0.05, 0.25, 0.5, 0.9):
        shares = {"m": RolloutChange(model="m", candidate="n", share=share)}
        taken = sum(target_of(shares, "m", f"user {number}") == "n" for number in range(10_000))
        assert abs(taken / 10_000 - share) < 0.02


def test_requests_without_a_key_are_spread_by_themselves() -> None:
    shares = {"m": RolloutChange(model="m", candidate="n", share=0.5)}
    assert {target_of(shares, "m", None) for _ in range(100)} == {"m", "n"}
