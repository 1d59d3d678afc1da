"""What a read saves to a user's memory, on the real memory store: a finding of each document and question, once."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memloop.wire.memory import MAX_TEXT_CHARS
from tests.fakes.job_engine import Body, Reply, last_text
from tests.fakes.processes import PATIENCE_S
from tests.gateway.file_uploads import upload
from tests.gateway.long_reads import PATH, asked
from tests.gateway.running import Gateway
from tests.gateway.whole import whole

HEAT, LIGHT = "Paper alpha measured heat. " * 5, "Paper beta measured light. " * 5


def finder(body: Body) -> Reply:
    """Notes what the paper measured, at length if it is asked to."""
    text = last_text(body)
    found = re.search(r"Paper (\w+) measured (\w+)", text)
    if "boxed" in text or not found:
        return r"\boxed{It.}"
    times = 1 + MAX_TEXT_CHARS // 20 if "everything" in text else 1
    return f"The {found[1]} paper measured {found[2]}. " * times


@dataclass(frozen=True)
class Reader:
    """A user who saves what reads find."""

    gateway: Gateway

    async def read(self, text: str, **fields: Any) -> Any:
        """Read to the end, and wait until the finding is stored."""
        saved = {"document": {"text": text}, "save_to_memory": {"user_id": "ann"}}
        answer = await self.gateway.post(PATH, asked(**(saved | fields)))
        assert answer.status == 200, answer.raw
        for event in (await self.gateway.get("/v1/memory/events?user_id=ann")).json["events"]:
            await self.gateway.memory.queue.events.wait("local", event["event_id"], timeout_s=PATIENCE_S)
        return answer.json

    async def memories(self) -> list[str]:
        """The user's memories that hold now."""
        items = (await self.gateway.get("/v1/memory?user_id=ann")).json["data"]
        return sorted(item["memory"].strip() for item in items)


@asynccontextmanager
async def reading(redis_url: str, folder: Path) -> AsyncGenerator[Reader]:
    storage = (folder / "storage").as_uri()
    async with whole(redis_url, folder / "store", finder, api_keys="", storage_url=storage) as it:
        yield Reader(it.gateway)


async def test_findings_about_two_documents_under_one_question_are_two_memories(redis_url: str, tmp_path: Path) -> None:
    async with reading(redis_url, tmp_path) as ann:
        for text in (HEAT, LIGHT):
            await ann.read(text, question="What was measured?")
        assert await ann.memories() == ["The alpha paper measured heat.", "The beta paper measured light."]


async def test_a_document_read_again_with_the_same_question_leaves_one_memory(redis_url: str, tmp_path: Path) -> None:
    async with reading(redis_url, tmp_path) as ann:
        await ann.read(HEAT)
        await ann.read(HEAT, chunk_tokens=200)
        file = await upload(ann.gateway, HEAT.encode())
        await ann.read("", document={"file_id": file["id"]})
        assert await ann.memories() == ["The alpha paper measured heat."]
        await ann.read(HEAT, question="Who measured?")
        assert len(await ann.memories()) == 2


async def test_long_findings_about_two_documents_stay_apart_in_all_their_parts(redis_url: str, tmp_path: Path) -> None:
    async with reading(redis_url, tmp_path) as ann:
        for text in (HEAT, LIGHT, LIGHT):
            await ann.read(text, question=f"What is {'everything ' * 60}?")
        memories = await ann.memories()
        assert [len([one for one in memories if word in one]) for word in ("heat", "light")] == [2, 2]


async def test_a_read_that_runs_out_of_calls_saves_what_it_has_found(redis_url: str, tmp_path: Path) -> None:
    async with reading(redis_url, tmp_path) as ann:
        read = await ann.read(HEAT * 4, max_llm_calls=2)
        assert (read["status"], read["memory"].strip()) == ("incomplete", "The alpha paper measured heat.")
        assert await ann.memories() == ["The alpha paper measured heat."]
