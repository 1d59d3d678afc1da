"""Few frames of our own stand between a chat's route and the engine's socket."""

import asyncio
from types import CodeType, CoroutineType
from typing import Any

from tests.fakes.job_engine import engine_server
from tests.gateway.rig import settings_for
from tests.gateway.running import CHAT, running_gateway
from tests.stack.trips import OWN

_MOST = 8


def awaited(task: asyncio.Task[Any]) -> list[CodeType]:
    """The coroutines of a task, from the outermost to the one that waits."""
    codes: list[CodeType] = []
    at: Any = task.get_coro()
    while isinstance(at, CoroutineType):
        codes.append(at.cr_code)
        at = at.cr_await
    return codes


async def test_a_chat_passes_at_most_eight_frames_to_its_engine(redis_url: str) -> None:
    async with engine_server(lambda _: "Tea.") as engine:
        engine.hang_at = 1
        async with running_gateway(settings_for(redis_url, engine_url=engine.url, model="m")) as gateway:
            body = {"model": "m", "messages": [{"role": "user", "content": "Tea?"}]}
            asked = asyncio.create_task(gateway.post(CHAT, body))
            await engine.hanging.wait()
            chains = [awaited(task) for task in asyncio.all_tasks()]
            [chain] = [codes for codes in chains if "create_chat_completion" in (code.co_name for code in codes)]
            engine.let_go.set()
            assert (await asked).status == 200
    after = chain[[code.co_name for code in chain].index("create_chat_completion") + 1 :]
    own = [code.co_qualname for code in after if code.co_filename.startswith(OWN)]
    assert len(own) <= _MOST, own
    assert own[-1] == "Origin.send"
