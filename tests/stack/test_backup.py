"""A live stack is backed up, destroyed and restored: whatever it acknowledged before the backup is there."""

import asyncio
import shutil
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from gateway.engine import read_models
from gateway.metrics import Metrics
from gateway.worker import Work, open_work, working
from memloop_service import new_registry
from tests.fakes.job_engine import Body, Reply, add_memory, engine_server, last_text
from tests.fakes.processes import clean_environment
from tests.fakes.real_store import real_store
from tests.fakes.redis_server import RedisServer
from tests.gateway.rig import ALICE, enqueued, eventually, settings_for, turns

DONE, QUEUED = [f"fact-{number}" for number in range(5)], [f"fact-{number}" for number in range(5, 10)]


def keep_the_fact(body: Body) -> Reply:
    text = last_text(body)
    return add_memory(next(fact for fact in reversed(DONE + QUEUED) if fact in text))


@asynccontextmanager
async def stack(redis_url: str, folder: Path) -> AsyncGenerator[tuple[Work, str]]:
    """A worker's slices over a real store in that folder, and the store's address; no worker."""
    async with AsyncExitStack() as made:
        store_url = await made.enter_async_context(real_store(redis_url, folder / "edge"))
        engine = await made.enter_async_context(engine_server(keep_the_fact))
        storage = f"file://{folder / 'documents'}"
        settings = settings_for(redis_url, engine_url=engine.url, store_url=store_url, storage_url=storage)
        yield (
            await made.enter_async_context(open_work(read_models(settings), settings, Metrics(new_registry()))),
            store_url,
        )


async def command(*words: str, **environment: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "memory_store.backup", *words),
        env=clean_environment(**environment),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def memories(work: Work) -> Counter[str]:
    page = await work.memory.store.items(ALICE, cursor=None, limit=200)
    return Counter(item.memory for item in page.items if item.memory_type != "RawTurn")


async def are_kept(work: Work, facts: list[str]) -> bool:
    return set(facts) <= set(await memories(work))


@pytest.fixture
def first_redis() -> Iterator[RedisServer]:
    server = RedisServer.start(appendonly=True)
    yield server
    server.stop()


async def test_everything_acknowledged_before_a_backup_is_there_after_a_restore(
    first_redis: RedisServer, tmp_path: Path
) -> None:
    backup, old, new = tmp_path / "backup", tmp_path / "old", tmp_path / "new"
    async with stack(first_redis.url, old) as (work, store_url):
        async with working(work, settings_for(first_redis.url)):
            for fact in DONE:
                await enqueued(work.memory.queue, turns(fact))
            await eventually(lambda: are_kept(work, DONE))
        queued = [await enqueued(work.memory.queue, turns(fact)) for fact in QUEUED]
        (old / "documents" / "local").mkdir(parents=True, exist_ok=True)
        (old / "documents" / "local" / "a").write_text("a document")
        environment = {"MEMLOOP_REDIS_URL": first_redis.url, "MEMLOOP_STORE_URL": store_url}
        environment["MEMLOOP_STORAGE_URL"] = f"file://{old / 'documents'}"
        code, output = await command("create", str(backup), **environment)
        assert code == 0, output
    first_redis.kill()
    shutil.rmtree(old)
    shutil.rmtree(first_redis.folder)
    folders = ("--data-dir", str(new / "edge"), "--storage-dir", str(new / "documents"))
    code, output = await command("restore", str(backup), "--redis-dir", str(new / "redis"), *folders)
    assert code == 0, output
    second_redis = RedisServer.start(folder=new / "redis", appendonly=True)
    try:
        async with stack(second_redis.url, new) as (work, _):
            assert (new / "documents" / "local" / "a").read_text() == "a document"
            assert await are_kept(work, DONE)
            async with working(work, settings_for(second_redis.url)):
                await eventually(lambda: are_kept(work, QUEUED))
            assert set((await memories(work)).values()) == {1}
            assert [(await work.memory.queue.events.get("local", id_)).status for id_ in queued] == ["completed"] * 5
    finally:
        second_redis.stop()


async def test_a_backup_that_was_changed_is_not_restored(first_redis: RedisServer, tmp_path: Path) -> None:
    async with stack(first_redis.url, tmp_path) as (_, store_url):
        environment = {"MEMLOOP_REDIS_URL": first_redis.url, "MEMLOOP_STORE_URL": store_url}
        assert (await command("create", str(tmp_path / "backup"), **environment))[0] == 0
        again = await command("create", str(tmp_path / "backup"), **environment)
    assert again == (1, f"{tmp_path / 'backup'} is not empty.\n")
    assert (await command("check", str(tmp_path / "backup")))[0] == 0
    full = await command("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "backup"))
    assert full == (1, f"{tmp_path / 'backup'} is not empty: move it away first.\n")
    with (tmp_path / "backup" / "vectors.tar").open("ab") as file:
        file.write(b"x")
    changed = await command("restore", str(tmp_path / "backup"), "--data-dir", str(tmp_path / "new"))
    assert changed == (1, f"{tmp_path / 'backup' / 'vectors.tar'} has changed since the backup.\n")
    assert not (tmp_path / "new").exists()
