"""The real programs of Claude Code and Codex against a real gateway on a scripted engine, connected by ``memloop``.

Run: ``make test-coding-agents``, which installs them from npm in the versions of ``package.json``.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.processes import printed_by
from tests.fakes.recall_store import FakeStore, memory
from tests.fakes.streaming_engine import MODEL, FakeEngine, Says
from tests.gateway.running import Gateway, said

PATIENCE_S = 300.0
PROGRAMS = Path(__file__).parent / "node_modules/.bin"
MEMLOOP = Path(sys.executable).with_name("memloop")
MAKE_SHIP = "Our deploy command is make ship."


@dataclass(frozen=True)
class Program:
    """An agent's program: how it is asked, and its own name for a shell."""

    name: str
    command: tuple[str, ...]
    shell: str
    arguments: str
    directly: Mapping[str, str]
    """The environment in which its own model is the gateway's, without memory."""


CLAUDE = Program(
    "claude-code",
    (str(PROGRAMS / "claude"), "--allowedTools", "Bash", "-p"),
    "Bash",
    '{"command": "cat notes.txt", "description": "Show the notes"}',
    {"ANTHROPIC_AUTH_TOKEN": "unused", "ANTHROPIC_MODEL": MODEL},
)
CODEX = Program(
    "codex",
    (str(PROGRAMS / "codex"), "exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"),
    "exec_command",
    '{"cmd": "cat notes.txt"}',
    {},
)


@pytest.fixture(params=[CLAUDE, CODEX], ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    """Claude Code, then Codex."""
    found: Program = request.param
    return found


@dataclass(frozen=True)
class Desk:
    """A user's home and a repository in it."""

    home: Path

    @property
    def repository(self) -> Path:
        """The repository."""
        return self.home / "app"

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """An environment without the settings of whoever runs the tests."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            **more,
        }

    async def run(self, *command: str, env: Mapping[str, str] | None = None) -> str:
        """Run a command in the repository and return what it printed; it succeeds."""
        return await printed_by(*command, cwd=self.repository, env=self.environment(env or {}), timeout_s=PATIENCE_S)

    async def connect(self, program: Program, gateway: Gateway, *options: str) -> None:
        """Connect the program by ``memloop connect``."""
        given = ("--user", "ada", "--url", gateway.url, "--yes")
        await self.run(str(MEMLOOP), "connect", program.name, *given, *options)

    async def ask(self, program: Program, text: str, env: Mapping[str, str] | None = None) -> str:
        """Ask in a session of its own."""
        return await self.run(*program.command, text, env=env)


@pytest.fixture
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A home with a repository, on the disk: an agent's sandbox has a ``/dev/shm`` of its own."""
    found = Desk(tmp_path_factory.mktemp("home"))
    found.repository.mkdir()
    (found.repository / "notes.txt").write_text(MAKE_SHIP)
    subprocess.run(["git", "init", "-q", str(found.repository)], check=True)
    return found


def texts_in(body: Any) -> str:
    """All messages that the engine got, as one text."""
    return "\n".join(str(message.get("content")) for message in body["messages"])


async def test_a_tool_loop_ends_and_the_next_session_recalls_it(
    program: Program, desk: Desk, gateway: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    await desk.connect(program, gateway, "--model", MODEL)
    function = {"name": program.shell, "arguments": program.arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    engine.will(Says(tool_calls=[call], finish_reason="tool_calls"), Says("You deploy with make ship."))
    assert "You deploy with make ship." in await desk.ask(program, "What do the notes say?")
    assert MAKE_SHIP in engine.last.json["messages"][-1]["content"]
    answered = len(engine.received)
    assert "Hello." in await desk.ask(program, "How do we deploy?")
    assert len(engine.received) > answered
    assert "You deploy with make ship." in texts_in(engine.last.json)
    assert {search.namespace.user_id for search in store.searches} == {"ada"}
    assert {search.query for search in store.searches} == {"What do the notes say?", "How do we deploy?"}


async def test_hooks_recall_at_the_beginning_and_store_what_was_said(
    program: Program, desk: Desk, gateway: Gateway, engine: FakeEngine, store: FakeStore
) -> None:
    store.finds = (memory("m1", MAKE_SHIP),)
    await desk.connect(program, gateway)
    _own_model(program, desk, gateway)
    await desk.ask(program, "How do we deploy?", {**program.directly, "ANTHROPIC_BASE_URL": gateway.url})
    assert MAKE_SHIP in texts_in(engine.last.json)
    turns = await gateway.queued_turns()
    assert [said(turn) for turn in turns] == [[("user", "How do we deploy?"), ("assistant", "Hello.")]]
    assert {search.namespace.user_id for search in store.searches} == {"ada"}
    assert all(search.namespace.agent_id for search in store.searches)


def _own_model(program: Program, desk: Desk, gateway: Gateway) -> None:
    """Let Codex's own model be the gateway's: it reads no address from the environment."""
    if program is CODEX:
        provider = f'name = "Own"\nbase_url = "{gateway.url}/v1"\nwire_api = "responses"\n'
        config = f'model = "{MODEL}"\nmodel_provider = "own"\n[model_providers.own]\n{provider}'
        (desk.home / ".codex" / "config.toml").write_text(config)
