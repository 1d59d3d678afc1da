"""Counts the files and functions of our own that a request enters on the running stack.

API, worker and store run in this process, over a real Redis and Qdrant Edge, with a scripted engine. Each trip is made
several times, and its functions are those that every run entered: a loop in the background is not due in each of them.
More runs never count more.

``python -m tests.stack.trips`` prints the present numbers and lowers the ceilings to them.
"""

import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

from redis.asyncio import Redis

from gateway.worker import working
from tests.fakes.job_engine import Body, Reply, add_memory, engine_server, last_text
from tests.fakes.real_store import real_store
from tests.fakes.redis_server import RedisServer
from tests.gateway.file_uploads import upload
from tests.gateway.redis_view import connected
from tests.gateway.rig import settings_for
from tests.gateway.running import Answer, Gateway, running_gateway

ROOT: Final = Path(__file__).resolve().parents[2]
OWN: Final = tuple(f"{ROOT / part}/" for part in ("packages", "services"))
CEILINGS: Final = Path(__file__).with_name("trips.json")
SETTLED_S: Final = 0.2
"""After an answer's last byte, its connections and metrics are still tidied up."""
RARELY_S: Final = 4.0
"""The period of the worker's loops, so that none is due in every write."""
RUNS_OF_A_MEASUREMENT: Final = 6
"""Few: a test makes more, and reaches the numbers of these whatever else the machine does."""

Count: TypeAlias = tuple[int, int]
"""Own files and own functions."""


class Footsteps:
    """Records the code that is entered in any thread while it is installed."""

    def __init__(self) -> None:
        self._entered: set[CodeType] = set()

    def taken(self) -> set[CodeType]:
        """Return our own functions entered since the last call, without comprehensions and modules' bodies."""
        entered, self._entered = self._entered, set()
        return {code for code in entered if code.co_filename.startswith(OWN) and not code.co_name.startswith("<")}

    @contextmanager
    def recorded(self) -> Generator[None]:
        """Record meanwhile, also in the threads that are started meanwhile."""

        def step(frame: FrameType, event: str, argument: object) -> None:
            del argument
            if event == "call":
                self._entered.add(frame.f_code)

        threading.setprofile(step)
        sys.setprofile(step)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # pyright: ignore[reportArgumentType] - None is documented to end it


class Stack:
    """The running stack with its recorder."""

    def __init__(self, gateway: Gateway, redis: Redis, steps: Footsteps) -> None:
        self.gateway = gateway
        self.redis = redis
        self.trips: dict[str, set[CodeType]] = {}
        self._steps = steps
        self._user = 0

    def counts(self) -> dict[str, Count]:
        """Count every trip that was made."""
        return {name: (len({code.co_filename for code in codes}), len(codes)) for name, codes in self.trips.items()}

    async def repeat(self, run: Callable[[], Awaitable[None]], at_most: Mapping[str, Count], most_runs: int) -> None:
        """Make some trips again until what they enter is within ``at_most``."""
        for _ in range(most_runs):
            await run()
            counts = self.counts()
            if at_most and all(within(counts.get(name, most), most) for name, most in at_most.items()):
                break

    async def measured(self, name: str, asked: Awaitable[Any]) -> Any:
        """Record one run of a trip, up to the last byte of its answer."""
        self._steps.taken()
        answer = await asked
        entered = self._steps.taken()
        self.trips[name] = self.trips.get(name, entered) & entered
        await asyncio.sleep(SETTLED_S)
        return answer

    async def run_without_a_worker(self) -> None:
        """Make each trip once that ends with its answer."""
        self._user += 1
        user = f"u{self._user}"
        ask = self.gateway.post
        add = {"user_id": user, "infer": False, "messages": [{"role": "user", "content": "Tea at five."}]}
        search = {"user_id": user, "query": "Tea?"}
        read = {"model": "m", "question": "Where?", "document": {"text": "one two three four. " * 12}}
        _well(await self.measured("chat", ask("/v1/chat/completions", _chat())))
        _well(await self.measured("verbatim add", ask("/v1/memory/add", add)))
        found = _well(await self.measured("search", ask("/v1/memory/search", search)))
        assert found.json["results"]
        chat = _well(await self.measured("chat with memory", ask("/v1/chat/completions", _chat(user))))
        assert chat.json["memory"]["retrieved"]
        _well(await self.measured("short read", ask("/v1/long-read", {**read, "chunk_tokens": 80})))
        await self.measured("upload", upload(self.gateway, b"Tea at five."))
        _well(await self.measured("erase", self._erased(user)))

    async def run_with_a_worker(self) -> None:
        """Make the trip of a write, which begins when its chat has ended."""
        self._user += 1
        chat = _well(await self.gateway.post("/v1/chat/completions", _chat(f"u{self._user}")))
        await self.measured("write", self._written(chat.json["memory"]["write_event_id"]))

    async def _erased(self, user: str) -> Answer:
        url = f"{self.gateway.url}/v1/memory?user_id={user}"
        async with self.gateway.http.delete(url) as response:
            return Answer(response.status, response.headers, await response.read())

    async def _written(self, event_id: str) -> None:
        keys = [key async for key in self.redis.scan_iter(match=f"*{event_id}*", _type="hash")]  # pyright: ignore
        while "completed" not in (found := [await self.redis.hget(key, "status") for key in keys]):  # pyright: ignore
            assert "failed" not in found
            await asyncio.sleep(0.01)


def reply(body: Body) -> Reply:
    """Answer as a reader, as a writer or as a chat."""
    text = last_text(body)
    if body.get("tools"):
        return add_memory("The user drinks tea at five.")
    return r"\boxed{In Rome.}" if "boxed" in text else "At five."


async def measured(redis_url: str, folder: Path, *, at_most: Mapping[str, Count], most_runs: int) -> dict[str, Count]:
    """Make every trip until its counts are within ``at_most``, or ``most_runs`` times. Returns the counts."""
    steps = Footsteps()
    with steps.recorded():
        async with engine_server(reply) as engine, real_store(redis_url, folder) as store:
            objects = (folder / "objects").as_uri()
            settings = settings_for(
                redis_url,
                engine_url=engine.url,
                store_url=store,
                storage_url=objects,
                job_poll_s=RARELY_S,
                memory_webhook_poll_s=RARELY_S,
            )
            async with running_gateway(settings) as gateway, connected(redis_url) as redis:
                it = Stack(gateway, redis, steps)
                await it.repeat(it.run_without_a_worker, at_most, most_runs)
                async with working(gateway.work, settings):
                    await it.run_with_a_worker()  # the first also has the worker's start, and the writes of before
                    it.trips.pop("write")
                    await it.repeat(it.run_with_a_worker, at_most, most_runs)
                return it.counts()


def within(count: Count, most: Count) -> bool:
    """Return whether neither number is higher; functions may be by a fiftieth, for branches that depend on timing."""
    return count[0] <= most[0] and count[1] <= most[1] * 1.02


def ceilings() -> dict[str, Count]:
    """Read the ceilings."""
    return {name: (files, functions) for name, (files, functions) in json.loads(CEILINGS.read_text("utf-8")).items()}


def _chat(user: str | None = None) -> dict[str, object]:
    body: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "When is tea?"}]}
    return body if user is None else {**body, "memory": {"user_id": user}}


def _well(answer: Answer) -> Answer:
    assert answer.status in {200, 202}, answer.raw
    return answer


def main() -> None:
    """Measure, print each trip beside its ceiling, and lower the ceilings that are higher."""
    server = RedisServer.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = asyncio.run(measured(server.url, Path(folder), at_most={}, most_runs=RUNS_OF_A_MEASUREMENT))
    finally:
        server.stop()
    before = ceilings() if CEILINGS.exists() else {}
    lower = {name: tuple(map(min, before.get(name, count), count)) for name, count in found.items()}
    for name, (files, functions) in found.items():
        print(f"{name:18}{files:5} files{functions:5} functions, ceiling {' and '.join(map(str, lower[name]))}")
    rows = (f"  {json.dumps(name)}: {json.dumps(count)}" for name, count in sorted(lower.items()))
    CEILINGS.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
