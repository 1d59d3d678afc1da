"""An OpenAI-compatible engine that reads as a perfect model would, in a world of harbours that have codes."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from aiohttp import web

from memloop.wire.chat import Json
from tests.fakes.web_server import serving

_FACT = re.compile(r"The code of (\w+) is (\d+)\.")
_PROBLEM = re.compile(r"<problem> ?\n(.*?)\n</problem>", re.DOTALL)
_SECTION = re.compile(r"<section>\n(.*)\n</section>", re.DOTALL)
_SEAM = "\n</memory>\n\n<section>\n"
_TAIL_CHARS = 40
_PLAIN = "the answer is"


class HarbourEngine:
    """Keeps the facts that the problem names, and answers with their codes. Each call may be made to fail.

    ``fails_from`` is the number of the first call (from 1) that is answered with ``status``; from call
    ``stalls_from`` on no call is answered, and ``stalled`` is set.
    """

    def __init__(self, *, fails_from: int | None = None, status: int = 500, stalls_from: int | None = None) -> None:
        self.url = ""
        self.bodies: list[Json] = []
        self._fails_from = fails_from
        self._status = status
        self._stalls_from = stalls_from
        self.stalled = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["HarbourEngine"]:
        """The engine, as long as it runs."""
        routes = [web.post("/v1/chat/completions", self._complete), web.get("/v1/models", self._models)]
        async with serving(routes) as url:
            self.url = f"{url}/v1"
            yield self

    def lift(self) -> None:
        """Fail and stall no more."""
        self._fails_from = self._stalls_from = None

    async def _complete(self, request: web.Request) -> web.Response:
        body = cast(Json, await request.json())
        self.bodies.append(body)
        if self._stalls_from is not None and len(self.bodies) >= self._stalls_from:
            self.stalled.set()
            await asyncio.Event().wait()
        if self._fails_from is not None and len(self.bodies) >= self._fails_from:
            return web.json_response({"error": {"message": "out of order"}}, status=self._status)
        message = {"role": "assistant", "content": _reply(prompt_of(body))}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 2}})

    async def _models(self, request: web.Request) -> web.Response:
        del request
        return web.json_response({"object": "list", "data": []})


def prompt_of(body: Json) -> str:
    """The text of the request's message."""
    messages = cast(list[dict[str, str]], body["messages"])
    return messages[-1]["content"]


def _reply(prompt: str) -> str:
    """The facts asked for, in the form that is asked for; the section's last words too, as the next section may begin
    within a fact.
    """
    problem, section = _PROBLEM.search(prompt), _SECTION.search(prompt)
    assert problem is not None, prompt
    facts = dict(_FACT.findall(prompt.replace(_SEAM, "")))
    asked = {name: code for name, code in facts.items() if name in problem[1]}
    if section is None:
        answer = " and ".join(asked.values())
        return f"Therefore, the answer is ({answer})" if _PLAIN in prompt else f"It is \\boxed{{{answer}}}."
    return " ".join([*(f"The code of {name} is {code}." for name, code in asked.items()), section[1][-_TAIL_CHARS:]])
