"""Every use of the product on real inference programs: nothing told is lost, and every chat and read goes through.

What a small model says is not judged; what the stack makes of it is. ``make test-real-engines`` prints the table.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import aiohttp
import pytest
import pytest_asyncio

from tests.fakes.recorded_answers import answers_of, differences, read
from tests.fakes.redis_server import RedisServer
from tests.gateway.running import CHAT, Answer
from tests.real_engines.programs import PROGRAMS, RECORDED, Program, stack_before

pytestmark = [
    pytest.mark.slow,
    pytest.mark.engine,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(1800),
]

TOLD: Final[Mapping[str, str]] = {
    "My dog is called Rufus.": "Rufus",
    "I am allergic to peanuts.": "peanuts",
    "My locker code is 482.": "482",
}
"""What a user says, and the words of it that a search must find."""
UNTAUGHT: Final[Mapping[str, str]] = {"vLLM, memloop-tiny": "I am allergic to peanuts."}
"""What a program's model decides to ignore: the tiny one was taught a toy world alone."""
DOCUMENT: Final = "The whale swam on through the night. The vault code of Marta is 731. Nobody spoke. " * 60
QUESTION: Final = {"role": "user", "content": "What is my dog called?"}
_WAITS: Final = aiohttp.ClientTimeout(total=900)


@dataclass
class Rows:
    """One program behind a whole stack of processes."""

    name: str
    program: Program
    url: str
    worker_url: str
    http: aiohttp.ClientSession
    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    written: list[str] = field(default_factory=list[str])

    async def post(self, path: str, body: object) -> Answer:
        async with self.http.post(self.url + path, json=body) as response:
            return Answer(response.status, response.headers, await response.read())

    async def known(self) -> Any:
        """What the worker has learned of the program's model."""
        async with self.http.get(f"{self.worker_url}/readyz?verbose") as response:
            [model] = (await response.json())["details"]["models"].values()
            return model

    async def told(self) -> list[str]:
        """The status of each write; everything is told once."""
        for text in TOLD if not self.written else ():
            turn = {"role": "user", "content": text}
            answer = await self.post("/v1/memory/add", {"messages": [turn], "user_id": "u", "sync": True})
            assert answer.status == 200, answer.raw
            self.written.append(answer.json["status"])
        return self.written

    async def chat(self, *messages: object, **fields: object) -> Answer:
        """A chat with the user's memories."""
        await self.told()
        async with self.http.get(f"{self.url}/v1/models") as listed:
            model = (await listed.json())["data"][0]["id"]
        body = {"model": model, "messages": messages, "memory": {"user_id": "u", "mode": "read"}, **fields}
        return await self.post(CHAT, body)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROGRAMS)
async def rows(
    request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Rows]:
    redis_server.flush()
    name, folder = str(request.param), tmp_path_factory.mktemp("rows")
    async with AsyncExitStack() as stack:
        program = await stack.enter_async_context(PROGRAMS[name](folder))
        gateway, worker = await stack.enter_async_context(stack_before(program, redis_server.url, folder))
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=_WAITS))
        running = Rows(name, program, gateway.url, worker.url, http)
        yield running
        cells = "".join(f"\n    {use}: {outcome}" for use, outcome in running.outcomes.items())
        print(f"\n{name} ({program.version}){cells}")


async def told_with_sync(rows: Rows) -> str:
    statuses = await rows.told()
    assert set(statuses) <= {"completed", "kept_verbatim"}
    return ", ".join(f"{statuses.count(status)} {status}" for status in sorted(set(statuses)))


async def found_by_search(rows: Rows) -> str:
    await rows.told()
    lost: list[str] = []
    for text, words in TOLD.items():
        if text == UNTAUGHT.get(rows.name):
            continue
        found = await rows.post("/v1/memory/search", {"query": text, "user_id": "u", "top_k": 5})
        lost += [] if words.casefold() in str(found.json["results"]).casefold() else [text, found.raw.decode()[:1500]]
    assert lost == []
    return f"{len(TOLD)} of {len(TOLD)}"


async def answered_with_recall(rows: Rows) -> str:
    answer = await rows.chat(QUESTION, max_tokens=48)
    assert answer.status == 200, answer.raw
    memory = answer.json["memory"]
    assert (memory["error"], bool(memory["retrieved"])) == (None, True)
    without = await rows.chat(QUESTION, max_tokens=1, memory={"mode": "off"})
    assert answer.json["usage"]["prompt_tokens"] > without.json["usage"]["prompt_tokens"]
    return json.dumps(answer.json["choices"][0]["message"]["content"])[:60]


async def stream(rows: Rows) -> str:
    answer = await rows.chat({"role": "system", "content": "Be kind."}, QUESTION, max_tokens=48, stream=True)
    assert answer.status == 200, answer.raw
    assert answer.events[-1] == b"data: [DONE]"
    memory = [chunk["memory"] for chunk in answer.chunks if "memory" in chunk]
    assert [(one["error"], bool(one["retrieved"])) for one in memory] == [(None, True)]
    return json.dumps(answer.streamed_text)[:60]


async def a_chat_in_turns(rows: Rows) -> str:
    turns = [{"role": role, "content": f"Turn {place}."} for place, role in enumerate(["user", "assistant"] * 4)]
    answer = await rows.chat(*turns, QUESTION, max_tokens=16)
    assert answer.status == 200, answer.raw
    assert answer.json["memory"]["error"] is None
    return "answered"


async def a_chat_too_long(rows: Rows) -> str:
    """Refused as such, or answered: no program fails in another way."""
    answer = await rows.chat({"role": "user", "content": "The harbour lies in the north. " * 3000}, max_tokens=16)
    assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded"), answer.raw
    return "refused"


async def long_read(rows: Rows) -> str:
    body = {"question": "What is the vault code of Marta?", "document": {"text": DOCUMENT}}
    answer = await rows.post("/v1/long-read", body)
    assert answer.status == 200, answer.raw
    assert answer.json["status"] == "completed", answer.raw
    assert answer.json["usage"]["llm_calls"] > 1
    return f"{answer.json['usage']['llm_calls']} calls, {json.dumps(answer.json['output_text'])[:40]}"


async def window_and_form(rows: Rows) -> str:
    await rows.told()
    known = await rows.known()
    assert known["window_tokens"] in {2048, 4096, 8192}, known
    return f"{known['window_tokens']} tokens, {known['dialect']}, memories as {known['memory_writer']['form']}"


async def shapes_as_recorded(rows: Rows) -> str:
    """The records of tests/fakes, by which stand-ins answer, are still this program's."""
    name = next((name for name, program in RECORDED.items() if program == rows.name), None)
    if name is None:
        return "not recorded"
    recorded, given = read(name), await answers_of(rows.program.engine_url.removesuffix("/v1"))
    found = {case: list(differences(recorded[case], given[case])) for case in recorded}
    assert {case: places for case, places in found.items() if places} == {}
    return f"{len(found)} answers"


Use: TypeAlias = Callable[[Rows], Awaitable[str]]
USES: Final[Mapping[str, Use]] = {
    "told with sync": told_with_sync,
    "found by search": found_by_search,
    "answered with recall": answered_with_recall,
    "stream": stream,
    "a chat in turns": a_chat_in_turns,
    "a chat too long": a_chat_too_long,
    "long read": long_read,
    "window and form": window_and_form,
    "shapes as recorded": shapes_as_recorded,
}


@pytest.mark.parametrize("use", USES)
async def test_every_use_goes_through_and_what_was_told_is_found(rows: Rows, use: str) -> None:
    rows.outcomes[use] = "**fails**"
    rows.outcomes[use] = await USES[use](rows)
