"""Abusers that hold connections and do next to nothing with them."""

import asyncio
from typing import Final

import orjson

from tests.hostile.abusing import Abuse
from tests.hostile.engine import GUSH, STALL

FOLLOWERS: Final = 1000
HELD: Final = 200
MIB: Final = 1 << 20
CHAT: Final = "/v1/chat/completions"
_AGAIN_S: Final = 1.0


async def followers(it: Abuse) -> None:
    """A thousand followers of one event stream; those that are refused come back."""
    body = {"model": "m", "question": "Where?", "document": {"text": f"{STALL} " * 50}, "background": True}
    path = f"/v1/long-read/{orjson.loads(await it.post('/v1/long-read', body))['id']}?stream=true"

    async def follow() -> None:
        await it.send("GET", path)
        await asyncio.sleep(_AGAIN_S)

    await it.many(FOLLOWERS, follow)


async def slow_readers(it: Abuse) -> None:
    """Streams of megabytes that are asked for and not read."""
    messages = [{"role": "user", "content": GUSH}]
    body = orjson.dumps({"model": "m", "messages": messages, "stream": True})

    async def ask() -> None:
        reader, writer = await it.socket(CHAT, announced=len(body), body=body)
        await asyncio.sleep(3600)
        del reader, writer

    await it.many(HELD, ask)


async def slow_bodies(it: Abuse) -> None:
    """Bodies of ten megabytes that come a byte at a time."""

    async def drip() -> None:
        reader, writer = await it.socket(CHAT, announced=10 * MIB, body=b"[")
        try:
            while not reader.at_eof():
                writer.write(b" ")
                await asyncio.sleep(0.2)
        finally:
            writer.close()

    await it.many(HELD, drip)
