"""A policy on what is never kept holds for the names of speakers too."""

from pathlib import Path
from uuid import uuid4

import orjson
import pytest

from tests.gateway.test_policies import ADMIN, OPERATED, ask, running, stored


@pytest.mark.parametrize("way", ["add", "batch"])
async def test_of_a_named_message_that_is_never_kept_not_even_the_name_stays(
    redis_url: str, tmp_path: Path, way: str
) -> None:
    named = [{"role": "user", "name": "Dr. Smith", "content": text} for text in ("My salary is high.", "I run.")]
    add: dict[str, object] = {"messages": named, "user_id": "alice"}
    async with running(redis_url, tmp_path) as it:
        await ask(it.gateway, "PUT", OPERATED, {"never": ["salary"]}, ADMIN)
        body = {"adds": [add]} if way == "batch" else {**add, "infer": False}
        await ask(it.gateway, "POST", f"/v1/memory/{way}", body)
        items = (await ask(it.gateway, "GET", "/v1/memory?user_id=alice"))["items"]
    assert [item["memory"] for item in items] == ["Dr. Smith: I run."]


async def test_of_a_named_turn_that_is_never_kept_no_import_leaves_the_name(redis_url: str, tmp_path: Path) -> None:
    turn = {"role": "user", "name": "Dr. Smith", "content": "My salary is high."}
    async with running(redis_url, tmp_path) as it:
        (item,) = await stored(it.gateway, "I run.")
        await ask(it.gateway, "PUT", OPERATED, {"never": ["salary"]}, ADMIN)
        moved = {"id": str(uuid4()), "memory": "Dr. Smith: My salary is high.", "sources": [turn]}
        line = orjson.dumps({"item": item | moved, "confirmed_at": item["valid_from"]})
        imported = await ask(it.gateway, "POST", "/v1/memory/import", line)
    assert (imported["imported"], imported["failed"]) == (0, 1)
