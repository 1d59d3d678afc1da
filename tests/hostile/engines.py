"""Abusers whose model, or the host that their webhooks name, does not answer; and a control that sends nothing."""

import asyncio
import hashlib
from typing import Final

from aiohttp import web

from tests.fakes.web_server import serving
from tests.hostile.abusing import Abuse
from tests.hostile.bodies import ADD, READ
from tests.hostile.engine import DRIP, STALL
from tests.hostile.holders import CHAT

_HELD: Final = 400
_READS: Final = 32
_WEBHOOKS: Final = 200


async def busy_cores(it: Abuse) -> None:
    """No abuse: work for two cores, to compare with. Other abusers take as much at most."""
    await it.many(2, lambda: asyncio.to_thread(hashlib.pbkdf2_hmac, "sha256", b"x", b"y", 100_000))


async def stalling(it: Abuse) -> None:
    """Chats, reads and writes for which the engine gives no answer."""
    await _held(it, STALL)


async def dripping(it: Abuse) -> None:
    """The same, and the engine gives a word a second."""
    await _held(it, DRIP)


async def _held(it: Abuse, word: str) -> None:
    messages = [{"role": "user", "content": word}]
    chat = {"model": "m", "messages": messages}
    read = {"model": "m", "question": "Where?", "document": {"text": f"{word} " * 200}}
    for number in range(20):
        await it.post(ADD, {"user_id": f"u{number}", "messages": messages})
        await it.post(READ, read | {"background": True})
    await asyncio.gather(
        it.many(_HELD, lambda: it.post(CHAT, chat)),
        it.many(_HELD, lambda: it.post(CHAT, chat | {"stream": True})),
        it.many(_READS, lambda: it.post(READ, read)),
    )


async def hanging_webhooks(it: Abuse) -> None:
    """Background reads that notify a host which takes every connection and never answers."""

    async def hang(request: web.Request) -> web.Response:
        del request
        await asyncio.sleep(3600)
        return web.Response()

    async with serving([web.post("/in", hang)]) as host:
        body = {"model": "m", "question": "Where?", "document": {"text": "one two"}, "background": True}
        for _ in range(_WEBHOOKS):
            await it.post(READ, body | {"webhook": {"url": f"{host}/in"}})
        await asyncio.sleep(3600)
