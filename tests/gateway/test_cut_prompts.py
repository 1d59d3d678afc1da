"""Engines that cut prompts without an error, as a stranger would try them: nothing is read by halves.

The engine lists every fact that it sees; a read that lists all facts of its document has read all of it.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.long_read.records import TERMINAL
from gateway.worker import working
from tests.fakes.manners import FACT
from tests.fakes.real_store import real_store
from tests.fakes.redis_server import RedisServer
from tests.fakes.windowed_engine import Cuts, States, WindowedEngine, document, tokenizer_json, windowed_engine
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import CHAT, Gateway, running_gateway

FACTS = 40
DOCUMENT = document(FACTS, words_between=132)
ALL = {f"fact-{number:04}" for number in range(FACTS)}


@dataclass(frozen=True)
class Stack:
    """A gateway with a worker in it, before one engine."""

    gateway: Gateway
    engine: WindowedEngine

    async def read(self, **fields: object) -> Any:
        """A read's answer to all facts."""
        body = {"model": "m", "question": "Which facts?", "document": {"text": DOCUMENT}, **fields}
        return (await self.gateway.post("/v1/long-read", body)).json


@asynccontextmanager
async def stack(
    redis: RedisServer, folder: Path, engine: WindowedEngine, *, counts: bool = False, **changes: object
) -> AsyncGenerator[Stack]:
    """All of it, running. ``counts``: the gateway has the engine's tokenizer; else it estimates."""
    if counts:
        (folder / "tokenizer.json").write_text(tokenizer_json())
        changes["tokenizer"] = folder / "tokenizer.json"
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(windowed_engine(engine))
        store = await opened.enter_async_context(real_store(redis.url, folder / "store"))
        settings = settings_for(redis.url, engine_url=engine.url, store_url=store, **changes)
        gateway = await opened.enter_async_context(running_gateway(settings))
        await opened.enter_async_context(working(gateway.work, settings))
        yield Stack(gateway, engine)


STATED: list[tuple[States, int]] = [
    ("ollama", 2048),
    ("ollama", 4096),
    ("ollama", 8192),
    ("llama.cpp", 2048),
    ("lmstudio", 4096),
    ("vllm", 2048),
    ("openrouter", 4096),
]


@pytest.mark.parametrize(("states", "window"), STATED)
async def test_no_prompt_of_a_read_is_cut_where_the_endpoint_states_its_window(
    redis_server: RedisServer, tmp_path: Path, states: States, window: int
) -> None:
    engine = WindowedEngine(window, states=states)
    async with stack(redis_server, tmp_path, engine, counts=True) as it:
        read = await it.read()
        assert (read["status"], set(FACT.findall(read["output_text"]))) == ("completed", ALL)
    assert engine.cut_prompts == []


@pytest.mark.parametrize("window", [2048, 4096])
async def test_a_set_window_is_kept_where_the_endpoint_states_none(
    redis_server: RedisServer, tmp_path: Path, window: int
) -> None:
    engine = WindowedEngine(window)
    async with stack(redis_server, tmp_path, engine, counts=True, window_tokens=window) as it:
        read = await it.read()
        assert (read["status"], set(FACT.findall(read["output_text"]))) == ("completed", ALL)
    assert engine.cut_prompts == []


CUTS: list[tuple[int, Cuts]] = [
    (2048, "to the window"),
    (2048, "to room for the reply"),
    (2048, "to half"),
    (2048, "never"),
    (4096, "to the window"),
    (4096, "to room for the reply"),
]


@pytest.mark.parametrize(("window", "cuts"), CUTS)
async def test_a_cut_prompt_is_noticed_and_its_chunk_is_read_again_in_pieces(
    redis_server: RedisServer, tmp_path: Path, window: int, cuts: Cuts
) -> None:
    engine = WindowedEngine(window, cuts=cuts)
    async with stack(redis_server, tmp_path, engine, counts=True) as it:
        read = await it.read()
        assert (read["status"], set(FACT.findall(read["output_text"]))) == ("completed", ALL), read
        assert it.gateway.backend.models.reader.window.tokens is not None
        noticed = len(engine.cut_prompts)
        again = await it.read()
        assert set(FACT.findall(again["output_text"])) == ALL
    assert len(engine.cut_prompts) == noticed


@pytest.mark.parametrize("odd", [{"counts": False}, {"hides_cached": True}], ids=["no usage", "cached left out"])
async def test_odd_usage_of_an_engine_that_cuts_nothing_fails_no_read(
    redis_server: RedisServer, tmp_path: Path, odd: dict[str, Any]
) -> None:
    engine = WindowedEngine(32_768, **odd)
    async with stack(redis_server, tmp_path, engine, counts=True) as it:
        read = await it.read(strategy="memreread", max_rereads=1)
        assert (read["status"], set(FACT.findall(read["output_text"]))) == ("completed", ALL)
        assert it.gateway.backend.models.reader.window.tokens is None


TOLD: list[tuple[States, int, bool]] = [
    ("ollama", 2048, False),
    ("ollama", 4096, True),
    ("nothing", 2048, False),
    ("nothing", 2048, True),
    ("nothing", 4096, True),
]


@pytest.mark.parametrize(("states", "window", "counts"), TOLD)
async def test_everything_told_in_a_long_turn_is_remembered_and_recalled_within_the_window(
    redis_server: RedisServer, tmp_path: Path, states: States, window: int, counts: bool
) -> None:
    engine = WindowedEngine(window, states=states)
    async with stack(redis_server, tmp_path, engine, counts=counts) as it:
        told = {"messages": [{"role": "user", "content": DOCUMENT}], "user_id": "u", "sync": True}
        answer = await it.gateway.post("/v1/memory/add", told)
        assert answer.status == 200, answer.raw
        kept = str(answer.json["memories"])
        assert set(FACT.findall(kept)) == ALL
        chat = {"model": "m", "messages": [{"role": "user", "content": "Which facts?"}], "memory": {"user_id": "u"}}
        answered = await it.gateway.post(CHAT, chat)
        assert answered.status == 200, answered.raw
        assert len(FACT.findall(answered.json["choices"][0]["message"]["content"])) >= 5
    assert states == "nothing" or engine.cut_prompts == []


async def test_the_start_says_how_to_give_ollama_a_larger_window(
    redis_server: RedisServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway.engine.window")
    async with stack(redis_server, tmp_path, WindowedEngine(4096, states="ollama")) as it:
        ready = (await it.gateway.get("/readyz")).json
    lines = [
        record.getMessage() for record in caplog.records if "has a window of 4096 tokens (/api/ps)" in record.message
    ]
    assert len(lines) == 1
    for said in (lines[0], ready["warnings"]["models"]):
        assert "OLLAMA_CONTEXT_LENGTH=8192 ollama serve" in said
        assert "PARAMETER num_ctx 8192" in said
    assert "chunk " in lines[0]
    assert "(not 5000)" in lines[0]


async def test_a_background_read_of_a_model_that_cuts_reads_everything(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    engine = WindowedEngine(2048, cuts="to half")
    async with stack(redis_server, tmp_path, engine, counts=True) as it:
        queued = await it.read(background=True)

        async def over() -> bool:
            return (await it.gateway.get(f"/v1/long-read/{queued['id']}")).json["status"] in TERMINAL

        await eventually(over)
        read = (await it.gateway.get(f"/v1/long-read/{queued['id']}")).json
        assert (read["status"], set(FACT.findall(read["output_text"]))) == ("completed", ALL), read


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_chat_that_its_notes_alone_make_too_long_is_answered_without_them(
    redis_server: RedisServer, tmp_path: Path, stream: bool
) -> None:
    engine = WindowedEngine(2048, cuts="never")
    async with stack(redis_server, tmp_path, engine, counts=True) as it:
        told = {"messages": [{"role": "user", "content": DOCUMENT}], "user_id": "u", "sync": True}
        assert (await it.gateway.post("/v1/memory/add", told)).status == 200
        asked = {"role": "user", "content": "Which facts? " + "Be kind to us all. " * 370}
        chat = {"model": "m", "messages": [asked], "max_tokens": 256, "stream": stream}
        answer = await it.gateway.post(CHAT, {**chat, "memory": {"user_id": "u", "mode": "read"}})
        assert answer.status == 200, answer.raw
        memory = answer.chunks[-1]["memory"] if stream else answer.json["memory"]
        assert memory["retrieved"] == []
        assert "made without memories" in memory["error"]
        assert await it.gateway.metric("memory_recall_left_out_total") == 1
        too_long = {**asked, "content": str(asked["content"]) * 3}
        refused = await it.gateway.post(CHAT, {**chat, "messages": [too_long], "memory": {"user_id": "u"}})
        assert (refused.status, refused.error["code"]) == (400, "context_length_exceeded")


LONG_CHAT: list[dict[str, str]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": document(3, words_between=1100)},
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "Which facts?"},
]


@pytest.mark.parametrize("counts", [True, False], ids=["counted", "estimated"])
@pytest.mark.parametrize("cuts", ["to the window", "to room for the reply", "to half"])
@pytest.mark.parametrize("fields", [{}, {"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}])
async def test_a_clients_chat_that_an_engine_cuts_is_answered_and_the_client_gets_a_note(
    redis_server: RedisServer, tmp_path: Path, cuts: Cuts, fields: dict[str, Any], *, counts: bool
) -> None:
    engine = WindowedEngine(2048, states="ollama", cuts=cuts)
    async with stack(redis_server, tmp_path, engine, counts=counts) as it:
        chat = {"model": "m", "messages": LONG_CHAT, "max_tokens": 256, **fields}
        answer = await it.gateway.post(CHAT, {**chat, "memory": {"user_id": "u", "long_context": "off"}})
        assert answer.status == 200, answer.raw
        whole = answer.json if not fields else next(each for each in answer.chunks if "memory" in each)
        early = fields == {"stream": True}
        assert early or "of this chat: its window has 2048" in whole["memory"]["error"]
        assert whole["memory"]["write_event_id"] is not None
        assert await it.gateway.metric('upstream_chats_cut_total{model="m"}') == 1


@pytest.mark.parametrize(
    "engine",
    [
        WindowedEngine(32_768, states="ollama"),
        WindowedEngine(32_768, states="ollama", hides_cached=True),
        WindowedEngine(32_768, states="ollama", counts=False),
        WindowedEngine(32_768),
    ],
    ids=["good", "cached left out", "no usage", "no window"],
)
async def test_no_chat_of_an_engine_that_cuts_nothing_gets_that_note(
    redis_server: RedisServer, tmp_path: Path, engine: WindowedEngine
) -> None:
    async with stack(redis_server, tmp_path, engine) as it:
        for turns in range(1, 4):
            chat = {"model": "m", "messages": [*LONG_CHAT * turns, LONG_CHAT[-1]]}
            memory = {"user_id": "u", "mode": "read", "long_context": "off"}
            answer = await it.gateway.post(CHAT, {**chat, "memory": memory})
            assert answer.json["memory"]["error"] is None
        assert await it.gateway.metric('upstream_chats_cut_total{model="m"}') == 0
