"""Several models behind one gateway: which engine is asked, with whose prompts, and what one lost engine costs."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from fastapi import FastAPI

from gateway import main, worker
from gateway.engine import read_models
from gateway.metrics import Metrics
from gateway.settings import WorkerSettings
from gateway.worker import open_work, working
from memloop.wire.errors import Unavailable
from memloop_service import new_registry
from tests.fakes.asgi_server import running
from tests.fakes.job_store import store_server
from tests.fakes.launcher import Launcher, launched
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S, clean_environment
from tests.fakes.strict_shapes import Body
from tests.fakes.strict_specs import WINDOW
from tests.gateway.long_reads import PATH
from tests.gateway.rig import eventually, settings_for
from tests.gateway.running import CHAT, Gateway, running_gateway
from tests.gateway.two_models import (
    DOCUMENT,
    JUDGING,
    READING,
    WRITING,
    TwoModels,
    texts_of,
    two_engines,
    two_models,
)

CHUNKS = 4
TURN = {"role": "user", "content": "Ann has a red boat."}
ADD = {"messages": [TURN], "user_id": "u1", "sync": True}
pytestmark = pytest.mark.usefixtures("engine_keys")


def a_read(**fields: object) -> dict[str, Any]:
    """A read of four chunks by the reader's tokenizer: five calls."""
    return {"question": "Which boat?", "document": {"text": DOCUMENT}, "chunk_tokens": 50, **fields}


async def ended(gateway: Gateway, read_id: str) -> Any:
    read: Any = None

    async def over() -> bool:
        nonlocal read
        read = (await gateway.get(f"{PATH}/{read_id}")).json
        return read["status"] not in {"queued", "in_progress"}

    await eventually(over)
    return read


async def test_the_writer_writes_with_its_own_prompts(both: TwoModels) -> None:
    answer = await both.gateway.post("/v1/memory/add", ADD)
    assert (answer.status, answer.json["status"]) == (200, "completed")
    writer, reader = both.engines.writer, both.engines.reader
    assert (len(writer.asked), len(reader.asked)) == (2, 0)
    assert all(WRITING in texts_of(body) for body in writer.asked)


async def test_a_read_without_a_model_is_the_readers(both: TwoModels) -> None:
    read = (await both.gateway.post(PATH, a_read())).json
    assert (read["status"], read["model"], read["output_text"]) == ("completed", "r", "red")
    _expect_a_read(both.engines.reader.asked)
    assert not both.engines.writer.asked


def _expect_a_read(asked: list[Body]) -> None:
    assert len(asked) == CHUNKS + 1
    assert [READING in texts_of(body) for body in asked] == [True] * CHUNKS + [False]


async def test_a_read_names_its_model_and_has_its_prompts_and_tokens(both: TwoModels) -> None:
    read = (await both.gateway.post(PATH, a_read(model="w", chunk_tokens=250))).json
    assert (read["status"], read["model"]) == ("completed", "w")
    calls = both.engines.writer.asked
    assert len(calls) > CHUNKS
    assert not any(READING in texts_of(body) for body in calls)
    assert not both.engines.reader.asked


async def test_an_estimate_counts_by_the_named_models_tokenizer(both: TwoModels) -> None:
    by_reader, by_writer = [
        (await both.gateway.post(f"{PATH}/estimate", a_read(**model))).json for model in ({}, {"model": "w"})
    ]
    assert (by_reader["document_tokens"], by_reader["chunks"]) == (200, CHUNKS)
    assert by_writer["document_tokens"] > 800
    assert (by_reader["profile"].split(":")[0], by_writer["profile"].split(":")[0]) == ("reading@1", "writing@1")


async def test_a_background_read_keeps_its_model(both: TwoModels) -> None:
    queued = (await both.gateway.post(PATH, a_read(background=True))).json
    assert queued["model"] == "r"
    read = await ended(both.gateway, queued["id"])
    assert (read["status"], read["model"], read["usage"]["llm_calls"]) == ("completed", "r", CHUNKS + 1)
    _expect_a_read(both.engines.reader.asked)


async def test_a_worker_without_the_model_ends_the_read_as_failed(redis_url: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        engines = await stack.enter_async_context(two_engines(tmp_path))
        settings = settings_for(redis_url, models=engines.file(), model=None)
        gateway = await stack.enter_async_context(running_gateway(settings))
        own = tmp_path / "own.toml"
        own.write_text(f'[models.w]\nengine_url = "{engines.writer.url}"\napi_key_env = "KEY_OF_WRITER"\n')
        others = settings.model_copy(update={"models": own})
        work = await stack.enter_async_context(open_work(read_models(others), others, Metrics(new_registry())))
        queued = (await gateway.post(PATH, a_read(background=True))).json
        async with working(work, others):
            read = await ended(gateway, queued["id"])
    assert (read["status"], read["error"]["code"]) == ("failed", "model_not_found")
    assert not engines.reader.asked


async def test_the_judge_judges_with_its_own_prompt(redis_url: str, tmp_path: Path) -> None:
    async with two_models(redis_url, tmp_path, 'judge = "j"') as it:
        read = (await it.gateway.post(PATH, a_read(strategy="memreread"))).json
    assert (read["status"], read["model"]) == ("completed", "r")
    _expect_a_read(it.engines.reader.asked)
    assert [JUDGING in texts_of(body) for body in it.engines.writer.asked] == [True]


async def test_a_read_with_parity_judges_itself(redis_url: str, tmp_path: Path) -> None:
    async with two_models(redis_url, tmp_path, 'judge = "j"') as it:
        options = {"strategy": "memreread", "options": {"parity": True}, "chunk_tokens": None, "max_rereads": 1}
        read = (await it.gateway.post(PATH, a_read(model="w", **options))).json
    assert (read["status"], read["model"]) == ("completed", "w")
    said = [texts_of(body) for body in it.engines.writer.asked]
    assert sum("Decide whether the memory is enough" in text for text in said) == 1
    assert not any(JUDGING in text for text in said)


async def test_without_a_judge_the_reader_judges_itself(both: TwoModels) -> None:
    read = (await both.gateway.post(PATH, a_read(strategy="memreread"))).json
    assert (read["status"], read["usage"]["llm_calls"]) == ("completed", CHUNKS + 2)
    assert len(both.engines.reader.asked) == CHUNKS + 2
    assert not both.engines.writer.asked


async def test_a_chat_goes_to_the_model_that_it_names(both: TwoModels) -> None:
    body = {"model": "w", "messages": [TURN], "memory": {"mode": "off"}}
    assert (await both.gateway.post(CHAT, body)).status == 200
    assert [asked["model"] for asked in both.engines.writer.asked] == ["w"]
    assert (await both.gateway.post(CHAT, body | {"model": "talker", "top_k": 7})).status == 200
    (asked,) = both.engines.reader.asked
    assert asked == {"model": "r", "messages": [TURN], "top_k": 7}


async def test_the_reader_reads_what_a_chat_models_window_cannot_hold(both: TwoModels) -> None:
    messages = [{"role": "user", "content": DOCUMENT * 60}, {"role": "user", "content": "Which boat?"}]
    answer = await both.gateway.post(
        CHAT, {"model": "w", "messages": messages, "memory": {"mode": "off", "long_context": "auto"}}
    )
    assert answer.status == 200
    (part,) = answer.json["memory"]["long_context"]["parts"]
    assert part["llm_calls"] == len(both.engines.reader.asked) > 1
    assert all(READING in texts_of(body) for body in both.engines.reader.asked)
    (chat,) = both.engines.writer.asked
    assert "<memory>" in texts_of(chat)


async def test_the_list_has_every_model_and_the_chat_model_first(both: TwoModels) -> None:
    listed = (await both.gateway.get("/v1/models")).json
    assert [model["id"] for model in listed["data"]] == ["talker", "w", "r", "j"]
    reader = {"id": "r", "object": "model", "created": 1767225600, "owned_by": "us", "max_model_len": 4096}
    assert (await both.gateway.get("/v1/models/r")).json == reader
    own = {"id": "w", "object": "model", "created": 0, "owned_by": "memloop"}
    writer = {**own, "max_model_len": WINDOW}  # as its engine states it
    assert (await both.gateway.get("/v1/models/w")).json == writer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"model": "none", "messages": [TURN]}),
        ("/v1/embeddings", {"model": "none", "input": "x"}),
        (PATH, a_read(model="none")),
        (f"{PATH}/estimate", a_read(model="none")),
    ],
)
async def test_an_unknown_model_is_not_found(both: TwoModels, path: str, body: Body) -> None:
    answer = await both.gateway.post(path, body)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (404, "model_not_found", "model")
    assert answer.error["message"] == "There is no model 'none'."
    assert (await both.gateway.get("/v1/models/none")).error["code"] == "model_not_found"


async def test_a_passed_through_call_must_name_its_model(both: TwoModels) -> None:
    answer = await both.gateway.post("/v1/embeddings", {"input": "x"})
    assert (answer.status, answer.error["param"]) == (400, "model")


async def test_a_dead_reader_leaves_writes_and_chats_alone(redis_url: str, tmp_path: Path) -> None:
    async with two_models(
        redis_url, tmp_path, down=["reader"], engine_breaker_failures=1, engine_breaker_open_s=600
    ) as it:
        reads = [await it.gateway.post(PATH, a_read()) for _ in range(3)]
        assert [(read.status, read.error["code"]) for read in reads[1:]] == [(503, "engine_circuit_open")] * 2
        assert (await it.gateway.post("/v1/memory/add", ADD)).json["status"] == "completed"
        chat = {"model": "w", "messages": [TURN], "memory": {"mode": "off"}}
        assert (await it.gateway.post(CHAT, chat)).status == 200
        assert await it.gateway.metric('upstream_circuit_open{engine="0",model="r"}') == 1
        assert await it.gateway.metric('upstream_circuit_open{engine="0",model="w"}') == 0
        assert await it.gateway.metric('upstream_errors_total{kind="circuitopen",model="r"}') >= 2
        ready = await it.gateway.get("/readyz")
    assert (ready.status, ready.json["dependencies"]["engine"]) == (200, "ok")
    assert {line.split(":")[0] for line in ready.json["warnings"]["models"].split("; ")} == {"r", "talker"}


async def test_a_dead_writer_leaves_reads_alone_and_its_jobs_wait(redis_url: str, tmp_path: Path) -> None:
    async with two_models(redis_url, tmp_path, down=["writer"], job_attempts=1000) as it:
        added = await it.gateway.post("/v1/memory/add", ADD | {"sync": False})
        assert (added.status, added.json["status"]) == (202, "queued")
        assert (await it.gateway.post(PATH, a_read())).json["status"] == "completed"
        event = (await it.gateway.get(f"/v1/memory/events/{added.json['event_id']}")).json
        assert event["status"] in {"queued", "in_progress"}
        assert (await it.gateway.get("/readyz")).status == 200


async def test_a_reader_that_is_not_there_at_the_start_comes_later(redis_url: str, tmp_path: Path) -> None:
    port = free_port()
    async with two_models(redis_url, tmp_path, launchers={"reader": port}) as it:
        assert (await it.gateway.post("/v1/memory/add", ADD)).json["status"] == "completed"
        refused = await it.gateway.post(PATH, a_read())
        assert (refused.status, refused.error["code"]) == (503, "model_not_ready")
        assert int(refused.headers["Retry-After"]) >= 1
        assert [model["id"] for model in (await it.gateway.get("/v1/models")).json["data"]] == ["talker", "w", "r", "j"]
        ready = await it.gateway.get("/readyz")
        assert (ready.status, "r: the inference launcher" in ready.json["warnings"]["models"]) == (200, True)
        async with launched(Launcher(), port=port):
            await eventually(lambda: _reader_is_there(it))
        assert (await it.gateway.post(PATH, a_read())).json["status"] == "completed"
        assert (await it.gateway.get("/v1/models/r")).json["max_model_len"] == 32_768
        assert "warnings" not in (await it.gateway.get("/readyz")).json


def _reader_is_there(it: TwoModels) -> bool:
    with suppress(Unavailable):
        return it.gateway.backend.models.reader.id == "r"
    return False


async def test_writes_wait_for_a_writer_that_is_not_there_at_the_start(redis_url: str, tmp_path: Path) -> None:
    port = free_port()
    async with two_models(redis_url, tmp_path, launchers={"writer": port}) as it:
        added = (await it.gateway.post("/v1/memory/add", ADD | {"sync": False})).json
        assert (await it.gateway.post(PATH, a_read())).json["status"] == "completed"
        assert not it.engines.writer.asked
        async with launched(Launcher(), port=port):
            event = await it.gateway.work.memory.queue.events.wait("local", added["event_id"], timeout_s=PATIENCE_S)
    assert event.status == "completed"
    assert len(it.engines.writer.asked) == 2


@pytest.mark.parametrize("build", [main.build_app, worker.build_app], ids=["api", "worker"])
async def test_the_file_is_read_once(
    redis_url: str, tmp_path: Path, build: Callable[[WorkerSettings], FastAPI]
) -> None:
    async with AsyncExitStack() as stack:
        engines = await stack.enter_async_context(two_engines(tmp_path))
        store = await stack.enter_async_context(store_server())
        file = engines.file()
        app = build(settings_for(redis_url, models=file, model=None, store_url=store.url))
        file.unlink()
        url = await stack.enter_async_context(running(app))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        async with http.get(f"{url}/readyz") as ready:
            assert (ready.status, (await ready.json())["dependencies"]["engine"]) == (200, "ok")


@pytest.mark.parametrize("module", ["gateway.main", "gateway.worker"])
async def test_a_process_with_a_wrong_file_ends_with_the_reason(tmp_path: Path, module: str) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[models.m]\nengine_url = "/v1"')
    environment = clean_environment(MEMLOOP_MODELS=str(file))
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, env=environment, stderr=PIPE)
    _, words = await process.communicate()
    assert process.returncode == 1
    reason = "[models.m] engine_url: this is not an absolute http://, https://, http+srv:// or https+srv:// URL"
    assert words.decode() == f"{file}: {reason}\n"
