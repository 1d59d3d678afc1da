"""What the hooks of coding agents run: recall at a session's beginning, storing at its end."""

import json
from pathlib import Path
from typing import Any

import pytest

from memloop_cli.agents.repository import repository_id
from tests.fakes.gateway_server import FakeGateway
from tests.memloop_cli.conftest import Memloop

REMINDER = "<system-reminder>\nUse tabs.\n</system-reminder>"
CLAUDE = [
    {"type": "mode", "sessionId": "s"},
    {"type": "user", "message": {"role": "user", "content": "How do we deploy?"}, "timestamp": "2026-11-23T10:00:00Z"},
    {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat: generated"}},
    {"type": "api-request-blob", "message": {"role": "user", "content": [{"type": "text", "text": "Sent again."}]}},
    {"type": "user", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "name": "Bash"}]}},
    {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "content": "secret output"}]}},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "By make ship."}]}},
    {"type": "user", "isSidechain": True, "message": {"role": "user", "content": "a sub-agent's"}},
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/srv"}},
    {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": [{"text": "x"}]}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n</environment_context>"}],
        },
    },
    {
        "timestamp": "2026-11-23T10:00:00Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "How do we deploy?"}],
        },
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "How do we deploy?"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": "secret output"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "By make ship."}],
        },
    },
]
SAID = [("user", "How do we deploy?"), ("assistant", "By make ship.")]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The transcript of a session in a home of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "session.jsonl"


def hook(transcript: Path, **changes: object) -> str:
    """What an agent writes to a hook's standard input."""
    fields = {"session_id": "s", "cwd": str(transcript.parent), "transcript_path": str(transcript)}
    return json.dumps({**fields, "hook_event_name": "SessionEnd", **changes})


def write(path: Path, rows: list[Any]) -> None:
    path.write_text("\n".join(["not json", *map(json.dumps, rows)]))


def said(body: Any) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in body["messages"]]


@pytest.mark.parametrize(("agent", "rows"), [("claude-code", CLAUDE), ("codex", CODEX)], ids=["claude-code", "codex"])
def test_the_words_of_user_and_model_are_stored_and_nothing_else(
    memloop: Memloop, gateway: FakeGateway, session: Path, agent: str, rows: list[Any]
) -> None:
    write(session, rows)
    result = memloop("agent", "store", "--agent", agent, "--user", "ada", typed=hook(session))
    assert result.exit_code == 0, result.output
    [body] = gateway.bodies("/v1/memory/add")
    assert said(body) == SAID
    assert (body["user_id"], body["agent_id"]) == ("ada", repository_id(session.parent))
    assert str(body["messages"][0]["timestamp"]).startswith("2026-11-23T10:00:00")  # pyright: ignore


def test_a_resumed_session_stores_only_what_is_new(memloop: Memloop, gateway: FakeGateway, session: Path) -> None:
    write(session, CLAUDE)
    for _ in range(2):
        memloop("agent", "store", "--agent", "claude-code", "--user", "ada", typed=hook(session))
    write(session, [*CLAUDE, {"type": "user", "message": {"role": "user", "content": "Thanks."}}])
    memloop("agent", "store", "--agent", "claude-code", "--user", "ada", typed=hook(session))
    assert [said(body) for body in gateway.bodies("/v1/memory/add")] == [SAID, [("user", "Thanks.")]]


def test_a_long_session_is_stored_in_several_writes(memloop: Memloop, gateway: FakeGateway, session: Path) -> None:
    turns = [{"type": "user", "message": {"role": "user", "content": f"Turn {number}."}} for number in range(90)]
    write(session, turns)
    memloop("agent", "store", "--agent", "claude-code", "--user", "ada", typed=hook(session))
    assert [len(said(body)) for body in gateway.bodies("/v1/memory/add")] == [40, 40, 10]


def test_memories_are_printed_for_the_model_at_the_beginning(
    memloop: Memloop, gateway: FakeGateway, session: Path
) -> None:
    result = memloop("agent", "recall", "--agent", "codex", "--user", "ada", typed=hook(session, transcript_path=None))
    assert "- The locker code of the user is 482." in result.output
    [body] = gateway.bodies("/v1/memory/search")
    assert (body["user_id"], body["agent_id"]) == ("ada", repository_id(session.parent))


@pytest.mark.parametrize("typed", ["", "[]", '{"session_id": "s"}'])
def test_input_that_is_no_hooks_is_an_error(memloop: Memloop, session: Path, typed: str) -> None:
    assert memloop("agent", "store", "--agent", "codex", typed=typed).exit_code == 2


def test_a_gateway_that_is_away_is_an_error_and_the_turns_are_stored_next_time(
    memloop: Memloop, gateway: FakeGateway, session: Path
) -> None:
    write(session, CLAUDE)
    away = ("agent", "store", "--agent", "claude-code", "--user", "ada", "--url", "http://127.0.0.1:1")
    assert memloop(*away, typed=hook(session)).exit_code == 1
    memloop("agent", "store", "--agent", "claude-code", "--user", "ada", typed=hook(session))
    assert [said(body) for body in gateway.bodies("/v1/memory/add")] == [SAID]


@pytest.mark.parametrize(
    ("origin", "name"),
    [
        ("git@example.org:team/app.git", "example.org/team/app"),
        ("https://user:secret@Example.org/team/app.git", "example.org/team/app"),
        ("ssh://git@example.org:2222/team/app", "example.org/team/app"),
    ],
)
def test_clones_of_a_repository_have_one_name_without_secrets(tmp_path: Path, origin: str, name: str) -> None:
    (tmp_path / ".git/objects").mkdir(parents=True)
    (tmp_path / ".git/refs").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/config").write_text(f'[remote "origin"]\n\turl = {origin}\n')
    assert repository_id(tmp_path) == name
