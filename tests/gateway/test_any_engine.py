"""Engine behaviour × use: no chat is refused, and whatever was told is found, as a stranger would try it over HTTP.

``pytest -s -p no:xdist tests/gateway/test_any_engine.py`` prints the table.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import pytest_asyncio

from gateway.engine import read_models
from gateway.metrics import Metrics
from gateway.settings import WorkerSettings
from gateway.worker import open_work, working
from memloop_service import new_registry
from tests.fakes.job_engine import Body
from tests.fakes.manners import FACT, MANNERS
from tests.fakes.real_store import real_store
from tests.fakes.redis_cluster import RedisClusterServers
from tests.fakes.redis_server import RedisServer
from tests.fakes.windowed_engine import WindowedEngine, document, windowed_engine
from tests.gateway.rig import settings_for
from tests.gateway.running import CHAT, Answer, Gateway, running_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

LARGE: Final = 131_072
ENGINES: Final[Mapping[str, Callable[[], WindowedEngine]]] = {
    **{name: lambda manners=manners: WindowedEngine(LARGE, manners=manners) for name, manners in MANNERS.items()},
    "window 2048": lambda: WindowedEngine(2048, states="vllm", cuts="never"),
    "window 4096": lambda: WindowedEngine(4096, states="vllm", cuts="never"),
    "window 8192": lambda: WindowedEngine(8192, states="vllm", cuts="never"),
    "window 2048, not stated": lambda: WindowedEngine(2048, cuts="never"),
    "cut at 2048": lambda: WindowedEngine(2048),
    "cut at 4096": lambda: WindowedEngine(4096),
    "cut at 8192": lambda: WindowedEngine(8192),
    "cut to half of 2048": lambda: WindowedEngine(2048, cuts="to half"),
    "cut at 2048, Ollama": lambda: WindowedEngine(2048, states="ollama"),
}
TOLD: Final = [f"My note {number} is fact-{number:04}." for number in range(3)]
LONG: Final = document(40, words_between=132)
ALL: Final = set(FACT.findall(LONG))
NOTHING_SAID: Final = {"empty replies, all", "thinks without end, all"}
"""Engines that say nothing: their chats and reads go through, and hold nothing."""
CALL: Final = {"id": "call00001", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
LOOK_UP: Final[Body] = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}},
}


@dataclass
class Rows:
    """One gateway in front of every engine: each is a model of its models file. ``outcomes`` are the table's cells."""

    gateway: Gateway
    settings: WorkerSettings
    folder: Path
    engines: Mapping[str, WindowedEngine]
    outcomes: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    writes: dict[str, Answer] = field(default_factory=dict[str, Answer])

    async def told(self, name: str) -> Answer:
        """The user's turns, told once with ``sync`` to a worker whose writer is the engine's model."""
        if name not in self.writes:
            texts = TOLD if name in MANNERS else [LONG]
            turns = [{"role": "user", "content": text} for text in texts]
            models = _file(self.folder / "writer.toml", {name: self.engines[name]})
            settings = self.settings.model_copy(update={"models": models})
            work = open_work(read_models(settings), settings, Metrics(new_registry()))
            async with work as opened, working(opened, settings):
                body = {"messages": turns, "user_id": id_of(name), "sync": True}
                self.writes[name] = await self.gateway.post("/v1/memory/add", body)
        return self.writes[name]

    async def chat(self, name: str, *messages: object, **fields: object) -> Answer:
        """A chat with the engine's model and the memories of its user."""
        await self.told(name)
        self.engines[name].shown.clear()
        memory = {"user_id": id_of(name), "mode": "read"}
        return await self.gateway.post(CHAT, {"model": id_of(name), "messages": messages, "memory": memory, **fields})


def id_of(name: str) -> str:
    """The model's id, and its user's."""
    return name.replace(",", "").replace(" ", "-")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rows(
    redis_server: RedisServer | RedisClusterServers, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Rows]:
    redis_server.flush()
    folder = tmp_path_factory.mktemp("rows")
    async with all_rows(redis_server.url, folder) as running:
        yield running
        print("\n" + table(running.outcomes))


@asynccontextmanager
async def all_rows(redis_url: str, folder: Path) -> AsyncGenerator[Rows]:
    """Everything real but the engines."""
    async with AsyncExitStack() as stack:
        engines = {name: await stack.enter_async_context(windowed_engine(new())) for name, new in ENGINES.items()}
        store = await stack.enter_async_context(real_store(redis_url, folder / "store"))
        models = _file(folder / "models.toml", engines)
        settings = settings_for(
            redis_url, models=models, model=None, store_url=store, job_poll_s=0.02, sync_wait_s=300.0
        )
        gateway = await stack.enter_async_context(running_gateway(settings))
        yield Rows(gateway, settings, folder, engines)


def _file(path: Path, engines: Mapping[str, WindowedEngine]) -> Path:
    first = id_of(next(iter(engines)))
    roles = "\n".join(f'{role} = "{first}"' for role in ("writer", "reader", "chat"))
    tables = [
        f'[models."{id_of(name)}"]\nengine_url = "{engine.url}"\nengine_model = "m"\n'
        for name, engine in engines.items()
    ]
    path.write_text(f"[roles]\n{roles}\n" + "\n".join(tables))
    return path


def table(outcomes: Mapping[tuple[str, str], str]) -> str:
    """The table, as Markdown."""
    names = [name for name in ENGINES if any(row == name for row, _ in outcomes)]
    head = f"| engine | {' | '.join(USES)} |\n|---|{'---|' * len(USES)}"
    lines = [f"| {name} | {' | '.join(outcomes.get((name, use), '') for use in USES)} |" for name in names]
    return "\n".join([head, *lines])


def shown_to(rows: Rows, name: str) -> str:
    """All that the engine saw of the last chat."""
    return "\n".join(rows.engines[name].shown)


async def told_with_sync(rows: Rows, name: str) -> str:
    answer = await rows.told(name)
    assert answer.status == 200, answer.raw
    assert answer.json["status"] in {"completed", "kept_verbatim"}, answer.raw
    return answer.json["status"]


async def found_by_search(rows: Rows, name: str) -> str:
    await rows.told(name)
    expected = set(FACT.findall(" ".join(TOLD))) if name in MANNERS else ALL
    lost: list[str] = []
    for fact in sorted(expected):
        asked = {"query": f"What is {fact}?", "user_id": id_of(name), "top_k": 10}
        found = (await rows.gateway.post("/v1/memory/search", asked)).json
        lost += [fact] if fact not in str(found["results"]) else []
    assert lost == []
    return f"{len(expected)} found"


async def answered_with_recall(rows: Rows, name: str) -> str:
    answer = await rows.chat(name, {"role": "user", "content": "Which notes, such as fact-0001?"})
    assert answer.status == 200, answer.raw
    assert answer.json["memory"]["error"] is None
    assert set(FACT.findall(shown_to(rows, name))) > {"fact-0001"}
    said = answer.json["choices"][0]["message"]["content"]
    assert name in NOTHING_SAID or set(FACT.findall(str(said))) > {"fact-0001"}
    return "answered"


async def stream(rows: Rows, name: str) -> str:
    asked = {"role": "user", "content": "Which notes, such as fact-0001?"}
    answer = await rows.chat(name, {"role": "system", "content": "Be kind."}, asked, stream=True)
    assert answer.status == 200, answer.raw
    assert answer.events[-1] == b"data: [DONE]"
    assert answer.chunks[-1]["memory"]["error"] is None
    assert name in NOTHING_SAID or set(FACT.findall(answer.streamed_text)) > {"fact-0001"}
    return "answered"


async def two_system_prompts(rows: Rows, name: str) -> str:
    asked = {"role": "user", "content": "Which notes, such as fact-0001?"}
    systems = [{"role": "system", "content": "Note fact-0901."}, {"role": "system", "content": "Note fact-0902."}]
    answer = await rows.chat(name, *systems, asked, {"role": "assistant", "content": "I see."}, asked)
    assert answer.status == 200, answer.raw
    assert answer.json["memory"]["error"] is None
    assert set(FACT.findall(shown_to(rows, name))) > {"fact-0001", "fact-0901", "fact-0902"}
    return "answered"


async def long_read(rows: Rows, name: str) -> str:
    body = {"model": id_of(name), "question": "Which facts?", "document": {"text": LONG}}
    answer = await rows.gateway.post("/v1/long-read", body)
    assert answer.status == 200, answer.raw
    assert answer.json["status"] == "completed", answer.raw
    found = set(FACT.findall(answer.json["output_text"]))
    assert name in NOTHING_SAID or found == ALL
    return f"{len(found)} of {len(ALL)}"


async def tool_loop(rows: Rows, name: str) -> str:
    turns: list[Any] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Which notes, such as fact-0001?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call00001", "content": "It says fact-0900."},
    ]
    definitions: Body = {} if "tools" in (rows.engines[name].manners.refuses or {}) else {"tools": [LOOK_UP]}
    answer = await rows.chat(name, *turns, **definitions)
    assert answer.status == 200, answer.raw
    assert answer.json["memory"]["error"] is None
    assert set(FACT.findall(shown_to(rows, name))) > {"fact-0001", "fact-0900"}
    return "answered"


Use: TypeAlias = Callable[[Rows, str], Awaitable[str]]
USES: Final[Mapping[str, Use]] = {
    "told with sync": told_with_sync,
    "found by search": found_by_search,
    "answered with recall": answered_with_recall,
    "stream": stream,
    "two system prompts": two_system_prompts,
    "long read": long_read,
    "tool loop": tool_loop,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ENGINES)
async def test_every_chat_and_read_goes_through_and_what_was_told_is_found(rows: Rows, name: str, use: str) -> None:
    rows.outcomes[name, use] = "**fails**"
    rows.outcomes[name, use] = await USES[use](rows, name)
