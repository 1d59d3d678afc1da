"""The small parts of a chat by themselves: events out of bytes, and the newest turn."""

from datetime import UTC, datetime

import pytest

from gateway.chat.memory import newest_turn
from memloop.sse import EventCutter, data_of
from memloop.wire.chat import SentMessage
from tests.gateway.running import said

NOW = datetime(2026, 1, 31, tzinfo=UTC)
EVENTS = [b"data: a\n\n", b": comment\r\n\r\n", b"event: x\ndata: b\ndata: c\n\n", b"data: d\r\r"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9, 1000])
def test_whole_events_pass_without_loss_and_never_half(size: int) -> None:
    raw = b"".join(EVENTS)
    cutter = EventCutter()
    passed = [cutter.whole(raw[start : start + size]) for start in range(0, len(raw), size)]
    assert b"".join(passed) == raw
    assert all(EventCutter().whole(piece) == piece for piece in passed)


@pytest.mark.parametrize(
    ("event", "data"),
    [(b"data: a\n\n", b"a"), (b"data:a\r\n\r\n", b"a"), (EVENTS[2], b"b\nc"), (b": note\n\n", b""), (b"data\n\n", b"")],
)
def test_data_of_an_event(event: bytes, data: bytes) -> None:
    assert data_of(event) == data


@pytest.mark.parametrize(
    ("roles", "reply", "written"),
    [
        ("u", "r", ["user:0", "assistant:r"]),
        ("sua", "r", ["user:1", "assistant:2r"]),
        ("uauu", "r", ["user:2", "user:3", "assistant:r"]),
        ("uat", "", []),
        ("u", " \n", ["user:0"]),
        ("s", "r", ["assistant:r"]),
        ("usdu", "r", ["user:0", "user:3", "assistant:r"]),
    ],
)
def test_newest_turn(roles: str, reply: str, written: list[str]) -> None:
    names = {"u": "user", "a": "assistant", "s": "system", "t": "tool", "d": "developer"}
    messages = [SentMessage(role=names[role], content=str(place)) for place, role in enumerate(roles)]
    assert [f"{role}:{text}" for role, text in said(newest_turn(messages, reply, at=NOW))] == written
