"""Two model ids with prompts of their own on one real vLLM: a writer and a reader of the tiny model."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.worker import working
from tests.contract.conftest import TinyEngine
from tests.fakes.real_store import real_store
from tests.gateway.rig import settings_for
from tests.gateway.running import CHAT, Gateway, running_gateway

pytestmark = pytest.mark.engine
FILE = """
roles = {{ writer = "writer", reader = "reader", chat = "writer" }}
[models.writer]
engine_url = "{engine}"
engine_model = "{model}"
inference_url = "{launcher}"
[models.reader]
engine_url = "{engine}"
engine_model = "{model}"
inference_url = "{launcher}"
profile = "reading"
"""
READING = """name = "reading"
version = "1"
extends = "tiny"
[prompts.read]
template = "read.txt"
"""
WORDS = "Rewrite the memory.\n\n{problem}\n\n{memory}\n\n{section}\n\nUpdated memory:"
TURN = {"role": "user", "content": "My locker code is 482."}
DOCUMENT = "The whale swam on through the night. The vault code of Marta is 731. Nobody spoke. " * 20
READ = {"question": "What is the vault code of Marta?", "document": {"text": DOCUMENT}}


@pytest.fixture
async def gateway(tiny_engine: TinyEngine, redis_url: str, tmp_path: Path) -> AsyncGenerator[Gateway]:
    """A gateway and a worker on the real store, before the real engine."""
    file = tmp_path / "models.toml"
    file.write_text(
        FILE.format(
            engine=tiny_engine.openai_url,
            model=tiny_engine.model,
            launcher=tiny_engine.launcher_url,
        )
    )
    (tmp_path / "reading").mkdir()
    (tmp_path / "reading/manifest.toml").write_text(READING)
    (tmp_path / "reading/read.txt").write_text(WORDS)
    async with real_store(redis_url, tmp_path / "store") as store:
        settings = settings_for(redis_url, models=file, model=None, store_url=store)
        async with running_gateway(settings) as running, working(running.work, settings):
            yield running


async def test_both_ids_are_served_by_one_engine(gateway: Gateway) -> None:
    listed = (await gateway.get("/v1/models")).json["data"]
    assert [(model["id"], model["max_model_len"]) for model in listed] == [("writer", 2048), ("reader", 2048)]
    for model in ("writer", "reader"):
        answer = await gateway.post(CHAT, {"model": model, "messages": [TURN], "max_tokens": 16})
        assert answer.status == 200
        assert answer.json["choices"][0]["message"]["content"]
    refused = await gateway.post(CHAT, {"model": "memloop-tiny", "messages": [TURN]})
    assert (refused.status, refused.error["code"]) == (404, "model_not_found")


async def test_each_loop_runs_on_the_profile_of_its_model(gateway: Gateway) -> None:
    added = await gateway.post("/v1/memory/add", {"messages": [TURN], "user_id": "u1", "sync": True})
    assert added.json["status"] == "completed"
    profiles = [(await gateway.post("/v1/long-read/estimate", READ | model)).json["profile"] for model in MODELS]
    assert [profile.split(":")[0] for profile in profiles] == ["reading@1", "reading@1", "tiny@1"]
    read = (await gateway.post("/v1/long-read", READ)).json
    assert (read["status"], read["model"]) == ("completed", "reader")
    assert read["usage"]["llm_calls"] > 2


MODELS: tuple[dict[str, str], ...] = ({}, {"model": "reader"}, {"model": "writer"})
