"""Abusers that send as much as they can of what is allowed."""

import itertools
from typing import Final

import aiohttp
import orjson

from tests.hostile.abusing import Abuse
from tests.hostile.bodies import ADD, READ

_AT_ONCE: Final = 64
_DOCUMENT: Final = "one two three four. " * 2000
_FILE: Final = b"A line of a file that nobody reads.\n" * 3000


async def adds(it: Abuse) -> None:
    """Writes of many users, each of several turns."""
    numbers = itertools.count()

    def body() -> dict[str, object]:
        number = next(numbers)
        turns = [{"role": "user", "content": f"Remember fact-a{number} of {turn}."} for turn in range(4)]
        return {"user_id": f"u{number % 500}", "messages": turns}

    await it.many(_AT_ONCE, lambda: it.post(ADD, body()))


async def reads(it: Abuse) -> None:
    """Foreground reads of a hundred chunks."""
    body = {"model": "m", "question": "Where?", "document": {"text": _DOCUMENT}, "chunk_tokens": 100}
    await it.many(_AT_ONCE, lambda: it.post(READ, body))


async def files(it: Abuse) -> None:
    """Uploads that are then listed."""

    async def upload() -> None:
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        form.add_field("file", _FILE, filename="a.txt", content_type="text/plain")
        await it.send("POST", "/v1/files", data=form)
        await it.send("GET", "/v1/files?limit=100")

    await it.many(_AT_ONCE, upload)


async def events(it: Abuse) -> None:
    """Background reads, the events of each followed to the end, and lists of the events of writes."""
    body = {"model": "m", "question": "Where?", "document": {"text": _DOCUMENT}, "chunk_tokens": 100}

    async def follow() -> None:
        queued = await it.post(READ, body | {"background": True})
        if queued:
            await it.send("GET", f"{READ}/{orjson.loads(queued)['id']}?stream=true")
            await it.send("GET", "/v1/memory/events?user_id=u0&limit=100")

    await it.many(_AT_ONCE, follow)
