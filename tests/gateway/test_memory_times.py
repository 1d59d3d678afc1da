"""The days that memories name: kept without a model, answered by the API, and shown to a chat."""

from pathlib import Path

from tests.fakes.job_engine import tool_call
from tests.gateway.test_speakers import add, answering, send
from tests.gateway.whole import whole

FRIDAY = "2026-11-27T15:00:00Z"
LAST_FRIDAY = {"text": "last Friday", "start": "2026-11-20", "end": "2026-11-20"}
ILL = {"role": "user", "content": "My dog was ill last Friday.", "timestamp": FRIDAY}


async def test_a_verbatim_memory_is_answered_and_recalled_with_its_day(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, answering(tool_call("ignore_memory", reason="small talk"))) as it:
        await add(it, ILL)
        answer = await send(it, "/v1/memory/search", {"query": "Who was ill?", "user_id": "group"})
        assert [hit["item"]["times"] for hit in answer.json["results"]] == [[LAST_FRIDAY]]
        await send(it, "/v1/chat/completions", {
            "model": "m",
            "messages": [{"role": "user", "content": "When was my dog ill?"}],
            "memory": {"user_id": "group", "mode": "read"},
        })  # fmt: skip
        shown = it.engine.calls[-1]["messages"][-1]["content"]
    assert "My dog was ill last Friday. (2026-11-27; last Friday: Friday 20 November 2026)" in shown
