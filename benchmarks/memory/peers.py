"""The measured systems, each with one method per kind of load; mem0 runs in another process."""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeAlias, cast

import orjson

from benchmarks.gateway.load import LoadError, closed_loop, post
from benchmarks.gateway.workload import API_KEY

Asked: TypeAlias = tuple[str, str]
"""A user and a text: a question or a fact."""


class Ours:
    """Our memory through the gateway's public routes."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def search_ms(self, questions: Sequence[Asked]) -> list[float]:
        """Measure each search, one after another on one connection."""
        bodies = [{"query": question, "user_id": user, "top_k": 10} for user, question in questions]
        load = await closed_loop(self._port, [_request("search", body) for body in bodies], concurrency=1)
        _check(load.failures(events=0), "search")
        return [1000 * answer.total_s for answer in load.answers]

    async def add_s(self, facts: Sequence[Asked], *, concurrency: int) -> float:
        """Return the seconds to add facts one by one."""
        bodies = [
            {"messages": [{"role": "user", "content": text}], "user_id": user, "infer": False} for user, text in facts
        ]
        return await self._wall_s("add", bodies, concurrency=concurrency)

    async def add_batch_s(self, batches: Sequence[Sequence[Asked]], *, concurrency: int) -> float:
        """Return the seconds to add facts in batches."""
        bodies = [
            {"adds": [{"messages": [{"role": "user", "content": text}], "user_id": user} for user, text in batch]}
            for batch in batches
        ]
        return await self._wall_s("batch", bodies, concurrency=concurrency)

    async def _wall_s(self, route: str, bodies: Sequence[object], *, concurrency: int) -> float:
        requests = [_request(route, body) for body in bodies]
        began = time.perf_counter()
        load = await closed_loop(self._port, requests, concurrency=concurrency)
        _check(load.failures(events=0), route)
        return time.perf_counter() - began


def _request(route: str, body: object) -> bytes:
    return post(f"/v1/memory/{route}", orjson.dumps(body), key=API_KEY)


def _check(failures: int, route: str) -> None:
    if failures:
        raise LoadError(f"{failures} answers of {route} did not succeed")


class Mem0:
    """mem0 in its process."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def grow(self, count: int) -> float:
        """Grow to ``count`` facts; return the seconds."""
        return cast("float", self._ask("grow", count))

    def search_ms(self, questions: Sequence[Asked]) -> list[float]:
        """Measure each search."""
        return cast("list[float]", self._ask("search", questions))

    def add_s(self, facts: Sequence[Asked]) -> float:
        """Return the seconds to add facts one by one."""
        return cast("float", self._ask("add", facts))

    def add_batch_s(self, facts: Sequence[Asked]) -> float:
        """Return the seconds to add facts of one user in one call."""
        return cast("float", self._ask("add_many", facts))

    def _ask(self, name: str, argument: object) -> object:
        asked, answered = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        asked.write(json.dumps([name, argument]) + "\n")
        asked.flush()
        line = answered.readline()
        if not line:
            raise LoadError("mem0 ended")
        return json.loads(line)


@contextmanager
def mem0(folder: Path, vectors_file: Path) -> Generator[Mem0]:
    """Start mem0, and stop it on exit."""
    folder.mkdir()
    command = (sys.executable, "-m", "benchmarks.memory.mem0_process", str(folder), str(vectors_file))
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            if cast("IO[str]", process.stdout).readline().strip() != '"ready"':
                raise LoadError(f"mem0 did not start: {(folder / 'log').read_text()[-1500:]}")
            yield Mem0(process)
        finally:
            process.kill()
