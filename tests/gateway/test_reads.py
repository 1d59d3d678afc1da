"""One long read as events, records and budgets, with a scripted model; on real Redis where it must survive."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.long_read.reading import READS_QUEUE
from gateway.long_read.records import TIERS, ReadJob, ReadRecords
from gateway.long_read.run import ReadingTools, new_record, run_read
from gateway.metrics import Metrics
from gateway.traces.keeper import RuleRedactor, TraceKeeper, TraceRecords
from gateway.webhooks.webhooks import WEBHOOKS_QUEUE
from memloop.chunking import EstimatingSplitter
from memloop.evidence import Similarity
from memloop.ports import ChatModel, Prompt
from memloop.profiles import load_profile
from memloop.wire.long_read import Document, LongRead, LongReadRequest, ReadEvent, SaveTo
from memloop_service import new_registry
from memloop_state.queue.lanes import LaneQueue
from tests.fakes.model import Line, ScriptedModel
from tests.gateway.redis_view import connected, keys
from tests.gateway.rig import memory_queue

GOLDEN = Path(__file__).parent / "golden"
DOCUMENT = "one two three four. " * 12
ONE_REREAD = [
    "memory 1",
    "memory 2",
    "<query>Where is Bob?</query>",
    "bob 1",
    "bob 2",
    r"\boxed{Rome}",
    "memory 3",
    "",
    r"\boxed{In Rome.}",
]


@asynccontextmanager
async def tools(redis_url: str, model: ChatModel) -> AsyncGenerator[ReadingTools]:
    metrics = Metrics(new_registry())
    async with connected(redis_url) as redis:
        traces = TraceKeeper(TraceRecords(redis, keep_s=60.0, most=10), RuleRedactor, 10_000, count=print)
        queue, webhooks = LaneQueue(redis, READS_QUEUE, tiers=TIERS), LaneQueue(redis, WEBHOOKS_QUEUE)
        yield ReadingTools(
            model,
            load_profile("default"),
            EstimatingSplitter(),
            ReadRecords(redis, queue, webhooks),
            memory_queue(redis),
            metrics,
            max_chars=10_000,
            traces=traces,
        )


def job(**changes: Any) -> ReadJob:
    fields: dict[str, Any] = {
        "model": "m",
        "question": "Where?",
        "document": Document(text=DOCUMENT),
        "chunk_tokens": 80,
    }
    return ReadJob(read_id="lr_1", tenant="local", model="m", request=LongReadRequest(**(fields | changes)))


async def read(
    redis_url: str,
    asked: ReadJob,
    script: Sequence[Line] | ChatModel,
    *,
    started_at: float = 1e12,
    similarity: Similarity | None = None,
) -> tuple[LongRead, list[ReadEvent]]:
    events: list[ReadEvent] = []

    async def publish(event: ReadEvent, record: LongRead) -> None:
        del record
        events.append(event)

    model = ScriptedModel(script) if isinstance(script, Sequence) else script
    async with tools(redis_url, model) as made:
        record = await run_read(
            asked,
            new_record(asked),
            plan=await made.plan_of(asked.request),
            tools=replace(made, similarity=similarity),
            checkpoints=None,
            publish=publish,
            started_at=started_at,
            first_sequence=0,
        )
    return record, events


def shown(event: ReadEvent) -> Any:
    """An event as a client gets it, without its times."""
    fields = json.loads(event.model_dump_json(exclude_none=True, exclude={"at": True}))
    for name in ("created_at", "completed_at"):
        fields.get("read", {}).pop(name, None)
    return fields


@pytest.mark.parametrize(
    ("name", "strategy", "script"),
    [("memagent", "memagent", ["memory 1", "memory 2", r"\boxed{In Rome.}"]), ("memreread", "memreread", ONE_REREAD)],
)
async def test_the_events_of_a_read_are_these(redis_url: str, name: str, strategy: str, script: list[str]) -> None:
    _, events = await read(redis_url, job(strategy=strategy), script)
    golden = GOLDEN / f"read_events_{name}.json"
    assert [shown(event) for event in events] == json.loads(golden.read_text())


async def test_a_spent_call_budget_ends_incomplete_with_an_answer_from_what_was_read(redis_url: str) -> None:
    record, events = await read(redis_url, job(max_llm_calls=2), ["memory 1", r"\boxed{so far}"])
    assert (record.status, record.memory, record.output_text) == ("incomplete", "memory 1", "so far")
    assert record.incomplete_details is not None
    assert record.incomplete_details.reason == "max_llm_calls"
    assert record.usage.llm_calls == 2
    assert events[-1].type == "long_read.incomplete"


async def test_a_call_budget_that_suffices_exactly_completes(redis_url: str) -> None:
    record, _ = await read(redis_url, job(max_llm_calls=3), ["memory 1", "memory 2", "done"])
    assert (record.status, record.output_text) == ("completed", "done")


async def test_a_budget_for_nothing_asks_nothing(redis_url: str) -> None:
    record, _ = await read(redis_url, job(max_llm_calls=1), [])
    assert (record.status, record.output_text, record.usage.llm_calls) == ("incomplete", "", 0)


async def test_a_passed_deadline_ends_incomplete(redis_url: str) -> None:
    record, _ = await read(redis_url, job(deadline_s=1.0), [], started_at=0.0)
    assert record.incomplete_details is not None
    assert record.incomplete_details.reason == "deadline"


async def test_a_deadline_in_the_middle_of_a_call_stops_the_call_and_answers_from_the_memory(redis_url: str) -> None:
    class Slow:
        calls = 0

        async def complete(self, prompt: Prompt) -> Any:
            self.calls += 1
            if self.calls == 2:
                await asyncio.sleep(300)
            return await ScriptedModel([f"reply {self.calls}"]).complete(prompt)

    record, _ = await read(redis_url, job(deadline_s=3.0), Slow(), started_at=time.time())
    assert (record.status, record.memory, record.output_text) == ("incomplete", "reply 1", "reply 3")


async def test_empty_replies_keep_the_memory_and_give_an_empty_answer(redis_url: str) -> None:
    record, _ = await read(redis_url, job(), ["memory 1", "", ""])
    assert (record.status, record.memory, record.output_text) == ("completed", "memory 1", "")


async def test_half_a_character_from_the_model_does_not_break_the_events(redis_url: str) -> None:
    record, events = await read(redis_url, job(), ["half \ud83d", "\x00\udc00", r"\boxed{\ud83d}"])
    assert record.status == "completed"
    assert all(event.model_dump_json() for event in events)


async def test_the_memory_of_a_finished_read_is_saved_once_as_it_is(redis_url: str) -> None:
    asked = job(save_to_memory=SaveTo(user_id="alice"))
    for _ in range(2):
        await read(redis_url, asked, ["memory 1", "memory 2", "done"])
    async with tools(redis_url, ScriptedModel([])) as made:
        depth = await made.memory.lanes.depth()
    async with connected(redis_url) as redis:
        (key,) = await keys(redis, "*:job:evt_*")
        payload = json.loads(await redis.hget(key, "payload") or "")
    assert depth.jobs == 1
    assert [turn["content"] for turn in payload["turns"]] == ["memory 2"]
    assert (payload["infer"], payload["namespace"]["user_id"]) == (False, "alice")
    assert payload["key"] == f"Document {asked.document_digest()}: Where?"


@pytest.mark.parametrize(("calls", "jobs"), [(2, 1), (1, 0)], ids=["a memory so far", "no memory yet"])
async def test_an_incomplete_read_saves_the_memory_so_far_if_there_is_one(
    redis_url: str, calls: int, jobs: int
) -> None:
    await read(redis_url, job(max_llm_calls=calls, save_to_memory=SaveTo(user_id="a")), ["memory 1", "x"])
    async with tools(redis_url, ScriptedModel([])) as made:
        assert (await made.memory.lanes.depth()).jobs == jobs
