"""A response remembers what another session's response was told: the real store and worker, OpenAI's client."""

from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from tests.fakes.job_engine import Body, Reply, add_memory
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY
from tests.gateway.whole import Whole, whole


def _engine(body: Body) -> Reply:
    """Decides to keep the dog's name when it is asked to decide, else talks."""
    return add_memory("The dog is called Rex.") if "tools" in body else "Hello."


async def _session(it: Whole, key: str, text: str, **memory: object) -> Any:
    """The memory field of a response in a session of its own."""
    async with AsyncOpenAI(base_url=it.gateway.url + "/v1", api_key=key, max_retries=0) as client:
        asked = {"memory": {"user_id": "ada", **memory}}
        answer = await client.responses.create(model="m", input=text, extra_body=asked)
    assert answer.output_text == "Hello."
    return (answer.model_extra or {})["memory"]


async def test_the_second_session_recalls_what_the_first_was_told(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, _engine) as it:
        first = await _session(it, ALICE_KEY, "My dog is called Rex.", sync=True)
        assert first["write"]["status"] == "completed"
        second = await _session(it, ALICE_KEY, "What is my dog called?", mode="read")
        assert len(second["retrieved"]) >= 1
        assert "Rex" in str(it.engine.calls[-1]["messages"])
        other = await _session(it, BOB_KEY, "What is my dog called?", mode="read")
        assert other["retrieved"] == []
        assert "Rex" not in str(it.engine.calls[-1]["messages"])
