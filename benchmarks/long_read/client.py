"""Uploads documents and has them read in the background, as a client does."""

import asyncio
import datetime as dt
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

_ENDED = frozenset({"completed", "failed", "cancelled", "incomplete"})
_POLL_S = 0.25


@dataclass(frozen=True, slots=True)
class Finished:
    """A read that is over: its record, and its seconds from the first chunk's begin to its end."""

    record: dict[str, Any]
    seconds: float

    @property
    def chunks(self) -> int:
        """How many there were."""
        return int(self.record["progress"]["chunks_total"])


class Client:
    """One client of the API."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url

    async def upload(self, document: Path) -> str:
        """The file's id, once its text is there. Raises RuntimeError when it cannot be read."""
        with document.open("rb") as file:
            form = aiohttp.FormData({"purpose": "user_data", "file": file})
            made = await self._json("POST", "/v1/files", data=form)
        while made["status"] == "uploaded":
            await asyncio.sleep(_POLL_S)
            made = await self._json("GET", f"/v1/files/{made['id']}")
        if made["status"] != "processed":
            raise RuntimeError(str(made))
        return made["id"]

    async def begin(self, file_id: str, *, question: str, **fields: object) -> str:
        """The id of a read that was queued."""
        body = {"model": "m", "question": question, "document": {"file_id": file_id}, "background": True, **fields}
        return (await self._json("POST", "/v1/long-read", json=body))["id"]

    async def finished(self, read_id: str) -> Finished:
        """The read once it is over, timed by its own events."""
        while (record := await self._json("GET", f"/v1/long-read/{read_id}"))["status"] not in _ENDED:  # noqa: ASYNC110 - HTTP
            await asyncio.sleep(_POLL_S)
        return Finished(record, await self._seconds(read_id))

    async def cancel(self, read_id: str) -> None:
        """Stop it."""
        await self._json("POST", f"/v1/long-read/{read_id}/cancel")

    async def progress(self, read_id: str) -> int:
        """Chunks read so far."""
        return int((await self._json("GET", f"/v1/long-read/{read_id}"))["progress"]["chunks_done"])

    async def _seconds(self, read_id: str) -> float:
        """From the event ``in_progress`` to the last one."""
        first = last = 0.0
        async for event in self._events(read_id):
            at = _epoch_s(event["at"])
            first = at if event["type"] == "long_read.in_progress" else first
            last = at
        return last - first

    async def _events(self, read_id: str) -> AsyncGenerator[dict[str, Any]]:
        url = f"{self._url}/v1/long-read/{read_id}?stream=true"
        async with self._http.get(url) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield orjson.loads(line.removeprefix(b"data: "))

    async def _json(self, method: str, path: str, **how: Any) -> dict[str, Any]:
        async with self._http.request(method, self._url + path, **how) as response:
            if response.status >= 400:
                raise RuntimeError(f"{method} {path}: {response.status} {await response.text()}")
            return await response.json()


@asynccontextmanager
async def client_of(url: str) -> AsyncGenerator[Client]:
    """A client, for as long as it is used."""
    timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
    async with aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 22) as http:
        yield Client(http, url)


def _epoch_s(at: str) -> float:
    return dt.datetime.fromisoformat(at).timestamp()


def now_s() -> float:
    """Seconds of a clock that never goes back."""
    return time.monotonic()
