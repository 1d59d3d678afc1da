"""Erasures at random moments of writes, reads, chats, responses and traces: nothing of an erased user is left.

Every work has begun before its user's erasure, and is anywhere in its course by then: queued, at the engine, being
stored, or over. ``make test-erasures`` runs ten thousand.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from gateway.worker import working
from tests.fakes.job_engine import Body, Reply
from tests.gateway.erasures.places import files_that_hold, kinds_that_hold
from tests.gateway.erasures.planting import answer, marker_in
from tests.gateway.erasures.stack import Stack, whole_stack

SEED: Final = 20261127
AT_ONCE: Final = 24
ENGINE_S: Final = 0.03
LATEST_S: Final = 0.06
"""An erasure comes up to that long after its user's work has begun."""
GOING_ON: Final = "And now remember"
"""What a client says in the work that it waits for; the worker is busy with what it said before."""


@dataclass
class Engine:
    """Answers by script, and notes whose work that a client waits for has reached it."""

    reached: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])

    def __call__(self, body: Body) -> Reply:
        event = self.reached.get(marker_in(body))
        if event is not None and GOING_ON in orjson.dumps(body).decode():
            event.set()
        return answer(body)


@dataclass(frozen=True)
class User:
    """One user, who says one marker and is erased."""

    stack: Stack
    number: int
    says: str = "Remember"

    @property
    def marker(self) -> str:
        return f"mark-{self.number:06}"

    @property
    def ids(self) -> dict[str, str]:
        return {"user_id": f"user-{self.number}"}

    @property
    def text(self) -> str:
        return f"{self.says} {self.marker} please."

    async def post(self, path: str, body: object, *, key: bool = False) -> Any:
        """Send; the answer may be an error, of an erasure that came first."""
        headers = {"Idempotency-Key": self.marker} if key else {}
        found = await self.stack.gateway.post(path, body, headers=headers)
        assert found.status in (200, 202, 404, 409), (path, found.raw)
        return found

    async def adds(self, **fields: object) -> None:
        said = {"messages": [{"role": "user", "content": self.text}], **self.ids}
        await self.post("/v1/memory/add", {**said, **fields}, key=True)

    async def chats(self) -> None:
        messages = [{"role": "user", "content": self.text}]
        await self.post("/v1/chat/completions", {"model": "m", "messages": messages, "memory": self.ids}, key=True)

    async def reads(self, **fields: object) -> None:
        document = {"text": f"{self.text} " * 12}
        asked = {"model": "m", "question": f"What {self.marker} ?", "document": document, "chunk_tokens": 80}
        await self.post("/v1/long-read", {**asked, "save_to_memory": self.ids, **fields}, key=True)

    async def responds(self, **fields: object) -> None:
        body = {"model": "m", "input": self.text, "metadata": self.ids, **fields}
        await self.post("/v1/responses", body, key=True)

    async def converses(self) -> None:
        item = {"type": "message", "role": "user", "content": self.text}
        await self.post("/v1/conversations", {"items": [item], "metadata": self.ids})


Work = Callable[[User], Awaitable[None]]
WHOLE: Final[dict[str, Work]] = {
    "add as said": lambda user: user.adds(infer=False),
    "add": lambda user: user.adds(),
    "read in the background": lambda user: user.reads(background=True),
    "response in the background": lambda user: user.responds(background=True),
    "conversation": lambda user: user.converses(),
}
"""Accepted before the erasure: the worker may be anywhere in it."""
GOING: Final[dict[str, Work]] = {
    "add and wait": lambda user: user.adds(sync=True),
    "chat": lambda user: user.chats(),
    "read": lambda user: user.reads(),
    "response": lambda user: user.responds(),
}
"""Begun before the erasure: its client still waits."""


async def erased_meanwhile(user: User, engine: Engine, dice: random.Random, done: Counter[str]) -> None:
    """Begin one of each sort, erase the user at a random moment, and wait for the rest."""
    first, second = dice.choice(list(WHOLE)), dice.choice(list(GOING))
    wait_s = dice.uniform(0, LATEST_S)
    reached = engine.reached[user.marker] = asyncio.Event()
    await WHOLE[first](user)
    going = asyncio.ensure_future(GOING[second](replace(user, says=GOING_ON)))
    at_the_engine = asyncio.create_task(reached.wait())
    await asyncio.wait({going, at_the_engine}, return_when=asyncio.FIRST_COMPLETED)
    at_the_engine.cancel()
    await asyncio.sleep(wait_s)
    done["over" if going.done() else "overtaken"] += 1
    await user.stack.erase(**user.ids)
    await going
    del engine.reached[user.marker]
    done[first] += 1
    done[second] += 1


async def run(folder: Path, erasures: int, *, seed: int = SEED) -> Counter[str]:
    """Erase that many users, flush, and look everywhere. Returns what was done."""
    engine, dice, done = Engine(), random.Random(seed), Counter[str]()
    async with whole_stack(folder, engine, job_idle_s=300.0) as stack:
        stack.engine.latency_s = ENGINE_S
        users = iter([User(stack, number) for number in range(erasures)])

        async def one_after_another() -> None:
            for user in users:
                await erased_meanwhile(user, engine, dice, done)

        async with working(stack.gateway.work, stack.settings), asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(one_after_another())
        assert await kinds_that_hold(stack.gateway.redis, "mark-") == set()
        await stack.flush()
        assert files_that_hold(["mark-"], *stack.folders) == []
    return done


async def test_a_hundred_erasures_at_random_moments_leave_nothing(tmp_path: Path) -> None:
    done = await run(tmp_path, 100)
    assert done["overtaken"] > 0
    assert done["over"] + done["overtaken"] == 100


@pytest.mark.slow
@pytest.mark.timeout(7200)
async def test_ten_thousand_erasures_at_random_moments_leave_nothing(tmp_path: Path) -> None:
    done = Counter[str]()
    for stack in range(10):
        done += await run(tmp_path / str(stack), 1000, seed=SEED + stack)
        print(f"{(stack + 1) * 1000} users erased, 0 markers left:", dict(sorted(done.items())), flush=True)
