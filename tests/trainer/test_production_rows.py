"""Production traces as rows: what was good is imitated, what was not is counted."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memloop.wire.chat import ChatMessage, FunctionCall, Json, ToolCall
from memloop.wire.memory import Source
from memloop.wire.memory_events import DecisionRecord
from memloop.wire.traces import HeldMemory, Trace, TracedAnswer, TracedCall
from trainer.__main__ import main
from trainer.data.parquet import read_parquet

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TOOLS: tuple[Json, ...] = ({"type": "function", "function": {"name": "add_memory"}},)
ADD = ToolCall(id="x", function=FunctionCall(name="add_memory", arguments='{"summary": "kept"}'))


def asked(text: str, **fields: object) -> TracedCall:
    return TracedCall.model_validate({"messages": (ChatMessage(role="user", content=text),), **fields})


def write(trace_id: str = "evt_1.0") -> Trace:
    return Trace(
        id=trace_id,
        kind="memory_write",
        at=NOW,
        model="m",
        profile="p@1",
        tools=TOOLS,
        calls=(
            asked("I like tea.", with_tools=True, content="nonsense"),
            asked("Once more.", with_tools=True, tool_calls=(ADD,), reasoning="New."),
        ),
        turns=(Source(role="user", content="I like tea.", timestamp=NOW),),
        found=(HeldMemory(id="i", text="Ann likes milk.", valid_from=NOW),),
        action="add",
        memories=("Ann likes tea.",),
        decisions=(DecisionRecord(action="invalid", parse_path="failed"), DecisionRecord(action="add")),
    )


def read(*answers: TracedAnswer, finish_reason: str = "stop") -> Trace:
    calls = (asked("section", content="a memory", finish_reason=finish_reason), asked("answer", content="\\boxed{x}"))
    return Trace(
        id="lr_1",
        kind="long_read",
        at=NOW,
        model="m",
        profile="p@1",
        calls=calls,
        strategy="memreread",
        document="All of it.",
        answers=answers,
    )


def made(tmp_path: Path, capsys: pytest.CaptureFixture[str], *traces: Trace) -> Any:
    lines = [trace.model_dump_json(exclude_defaults=True) for trace in traces]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join([*lines, json.dumps({"exported": len(traces)})]))
    main(["data", "from-traces", "--traces", str(path), "--out", str(tmp_path / "rows")])
    return json.loads(capsys.readouterr().out)


def rows(tmp_path: Path, name: str) -> list[Any]:
    return list(read_parquet(tmp_path / f"rows/{name}.parquet"))


def test_a_write_gives_its_valid_call_to_imitate_and_itself_as_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = made(tmp_path, capsys, write())
    assert (said["rows"], said["rejected"]) == ({"imitation": 1, "writing": 1, "reading": 0}, 1)
    (row,) = rows(tmp_path, "imitation")
    assert [message["role"] for message in row["messages"]] == ["user", "assistant"]
    assert row["messages"][1]["tool_calls"][0]["function"] == {"name": "add_memory", "arguments": '{"summary": "kept"}'}
    assert row["messages"][1]["reasoning_content"] == "New."
    assert (row["learned"], json.loads(row["tools"])) == ([1], list(TOOLS))
    (task,) = rows(tmp_path, "writing")
    assert task["reward_model"]["ground_truth"] == ["add", "Ann likes tea."]
    assert task["extra_info"]["conversation"][0]["content"] == "I like tea."
    assert task["extra_info"]["memories"][0]["text"] == "Ann likes milk."
    assert task["agent_name"] == "memreader"


def test_a_read_gives_its_calls_and_its_boxed_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    boxed = TracedAnswer(question="Where?", answer="Rome", boxed=True)
    said = made(tmp_path, capsys, read(boxed, TracedAnswer(question="When?", answer="Perhaps", boxed=False)))
    assert (said["rows"], said["reads_without_gold"]) == ({"imitation": 2, "writing": 0, "reading": 1}, 1)
    (task,) = rows(tmp_path, "reading")
    assert (task["prompt"][0]["content"], task["context"], task["agent_name"]) == ("Where?", "All of it.", "memreread")
    assert task["reward_model"]["ground_truth"] == ["Rome"]


def test_a_reply_that_was_cut_is_not_imitated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = made(tmp_path, capsys, read(finish_reason="length"))
    assert (said["rows"]["imitation"], said["cut"]) == (1, 1)


def test_a_trace_that_stands_twice_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path, capsys, write(), write(), write("evt_2.0"))["rows"]["writing"] == 2


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param('{"error": {"message": "gone"}}', "the export is incomplete", id="half-an-export"),
        pytest.param('{"id": "x"}', "not a trace", id="another-file"),
    ],
)
def test_what_is_no_whole_export_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{write().model_dump_json(exclude_defaults=True)}\n{line}\n")
    with pytest.raises(SystemExit):
        main(["data", "from-traces", "--traces", str(path), "--out", str(tmp_path / "rows")])
    assert f"line 2: {complaint}" in capsys.readouterr().err
    assert not (tmp_path / "rows/imitation.parquet").exists()
