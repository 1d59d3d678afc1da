"""Sends made-up conversations with recalled notes to engines with the chat templates of a folder: what is refused.

Run: ``make bench-templates TEMPLATES=FOLDER``. Every ``*.jinja`` of the folder is an engine of its own, with a gateway
before it; one that Transformers cannot render is left out. The last line is one JSON object; the exit status is 1 if a
chat was refused or lost its notes.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import orjson
from rich.console import Console

from benchmarks.templates.conversations import conversations
from benchmarks.templates.engine import template_engine
from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore, fake_store, memory
from tests.fakes.redis_server import RedisServer
from tests.gateway.running import CHAT, running_gateway

NOTES: Final = ("The user likes Darjeeling.", "The user's sister plays the cello.")
_MEMORY: Final = {"user_id": "u1", "mode": "read"}


async def tried(template: str, chats: int, redis_url: str, store: FakeStore, console: Console) -> Counter[str]:
    """How the chats with one template ended."""
    counts, first = Counter[str](), ""
    async with template_engine(template) as engine:
        settings = GatewaySettings.model_validate(
            {"engine_url": engine.url, "store_url": store.url, "redis_url": redis_url, "recall_timeout_s": 30.0}
        )
        async with running_gateway(settings) as gateway:
            for fields in conversations(chats):
                answer = await gateway.post(CHAT, {"model": "m", "memory": _MEMORY, **fields})
                lost = [note for note in NOTES if note not in engine.rendered]
                end = "refused" if answer.status != 200 else "without notes" if lost else "answered"
                counts[end] += 1
                if engine.broken:
                    console.print(f"cannot be rendered: {engine.broken[0]}", highlight=False, markup=False)
                    return Counter({"unusable": 1})
                if end != "answered" and not first:
                    roles = [message["role"] for message in fields["messages"]]
                    first = f"{end}: {roles} {answer.raw.decode()[:300]}"
    counts["engine_refusals"] = len(engine.refused)
    console.print(f"{dict(counts)} {first}", highlight=False, markup=False, soft_wrap=True)
    return counts


async def measured(templates: Mapping[str, str], chats: int) -> int:
    """Try every template; return the exit status."""
    console, totals = Console(), Counter[str]()
    redis = RedisServer.start()
    try:
        async with fake_store() as store:
            store.finds = [memory(f"m{number}", note) for number, note in enumerate(NOTES)]
            for name, template in templates.items():
                console.print(name, end=" ", highlight=False)
                totals += await tried(template, chats, redis.url, store, console)
    finally:
        redis.stop()
    ends = {name: totals[name] for name in ("answered", "refused", "without notes", "engine_refusals")}
    usable = len(templates) - totals["unusable"]
    found = {"benchmark": "templates", "templates": usable, "unusable": totals["unusable"], "chats": chats, **ends}
    console.print(orjson.dumps(found).decode(), soft_wrap=True, highlight=False)
    return int(usable == 0 or totals["answered"] != usable * chats)


def main() -> int:
    """Run what the arguments ask for. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="make bench-templates", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chats", type=int, default=500)
    options = parser.parse_args()
    templates = {path.stem: path.read_text("utf-8") for path in sorted(options.folder.glob("*.jinja"))}
    return asyncio.run(measured(templates, options.chats))


if __name__ == "__main__":
    sys.exit(main())
