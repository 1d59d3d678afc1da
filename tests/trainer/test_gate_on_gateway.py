"""The gate's questions to a real gateway with worker, store and Redis; the engine is scripted."""

from pathlib import Path

import pytest

from memloop.ports import Recalled
from memloop.wire.errors import Unauthenticated
from memloop.wire.memory import Scope
from tests.dialogues.scripted import STORED, TURNS
from tests.fakes.job_engine import Body, Reply, add_memory, last_text, tool_call
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.whole import whole
from tests.trainer.gate_rig import PROFILE, write_rows
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.retry_policy import RetryPolicy
from trainer.data.rows import writing_row
from trainer.gate.asking import Answers, ask_all
from trainer.gate.gateway import Gateway
from trainer.gate.held_out import open_held_out

NEW = "The locker code of the user is 512."


def write_turns(path: Path, stored: tuple[Recalled, ...]) -> Path:
    row = writing_row(data_source="t", index=0, id_="0", turns=TURNS, stored=stored, gold=("add", NEW))
    write_parquet([row], path, schemas.WRITING)
    return path


async def asked(rows: Path, folder: Path, url: str, *, key: str = ALICE_KEY) -> tuple[str, ...]:
    """What was said to the only row."""
    held_out = open_held_out(rows, None)
    gateway = Gateway(url, api_key=key, retries=RetryPolicy(2, 0.01), wait_s=60)
    with Answers(folder / "answers.jsonl", held_out, model="m") as answers:
        async with gateway:
            await ask_all(held_out, answers, gateway, model="m", places=2, done=lambda: None)
        (answer,) = answers.records
    assert answer.error is None
    return answer.said


async def test_a_decision_is_made_beside_the_rows_memories_and_all_of_it_is_erased(
    redis_url: str, tmp_path: Path
) -> None:
    shown: list[str] = []

    def writer(body: Body) -> Reply:
        shown.append(last_text(body))
        return tool_call("search_memory", query="locker code") if len(shown) == 1 else add_memory(NEW)

    rows = write_turns(tmp_path / "rows.parquet", STORED)
    async with whole(redis_url, tmp_path / "edge", writer, profile="tiny") as it:
        assert await asked(rows, tmp_path, it.gateway.url) == ("add", NEW)
        left = await it.gateway.memory.store.entities(Scope(tenant="a"))
    assert STORED[0].text in shown[1]
    assert left.entities == ()


async def test_a_document_is_read_by_a_worker_and_forgotten(redis_url: str, tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.parquet", 1)
    async with whole(redis_url, tmp_path / "edge", lambda _: r"\boxed{0}", profile="tiny") as it:
        assert await asked(rows, tmp_path, it.gateway.url) == ("0",)
        listed = await it.gateway.get("/v1/long-read", headers={"Authorization": f"Bearer {ALICE_KEY}"})
    assert listed.json["data"] == []


async def test_a_gateway_names_its_prompts_and_refuses_wrong_keys(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path / "edge", lambda _: "", profile="tiny") as it:
        async with Gateway(it.gateway.url, api_key=ALICE_KEY, retries=RetryPolicy(1), wait_s=1) as gateway:
            assert (await gateway.models(), await gateway.profile_ref("m")) == (("m",), PROFILE.ref)
        async with Gateway(it.gateway.url, api_key="wrong", retries=RetryPolicy(1), wait_s=1) as gateway:
            with pytest.raises(Unauthenticated, match="answered 401: "):
                await gateway.models()
