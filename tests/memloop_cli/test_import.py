"""``memloop import``: the shapes of six systems, counts by line, dry run, repeats, kills, large files."""

import json
import os
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memloop.wire.memory import MemoryItem
from memloop_cli.importing.streaming import opened, records
from tests.fakes.gateway_server import EVENT, FakeGateway
from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S
from tests.memloop_cli.conftest import Memloop, lines
from tests.memloop_cli.exports import (
    CHATS,
    CLAUDE,
    CLAUDE_MEMORIES,
    LANGGRAPH,
    MEM0,
    ZEP,
    chatgpt_conversation,
    chatgpt_voice_chat,
)


def written(path: Path, value: Any, *, as_lines: bool = False) -> str:
    rows: list[Any] = value if as_lines else [value]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return str(path)


def stored(gateway: FakeGateway) -> list[MemoryItem]:
    return sorted(gateway.imported.values(), key=lambda item: item.valid_from)


def told(gateway: FakeGateway) -> list[tuple[str, str, datetime]]:
    """Who said what and when."""
    return [(item.sources[0].role, item.memory, item.valid_from) for item in stored(gateway)]


def at(*moment: int) -> datetime:
    return datetime(*moment, tzinfo=UTC)  # pyright: ignore[reportArgumentType]


def test_chatgpt_keeps_the_thread_that_the_user_saw_with_its_times(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = written(tmp_path / "conversations.json", [chatgpt_conversation()])
    result = memloop("import", "chatgpt", file, "--user", "ann")
    assert result.exit_code == 0, result.output
    assert lines(result)[-1] == "6 in, 3 kept, 3 ignored, 0 failed"
    assert told(gateway) == [
        ("user", "My cat number 1 is called Inky.", datetime.fromtimestamp(1700000100.25, UTC)),
        ("assistant", "A fine name.", datetime.fromtimestamp(1700000103, UTC)),
        ("user", "Look at her.", datetime.fromtimestamp(1700000200, UTC)),
    ]
    (first, *_) = stored(gateway)
    assert (first.memory_type, first.user_id) == ("RawTurn", "ann")
    assert first.metadata == {"imported_from": "chatgpt", "conversation_id": "c-1", "conversation": "Cats"}


def test_chatgpts_archive_may_hold_several_files_of_conversations(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in (0, 1):
            archive.writestr(f"conversations-00{number}.json", json.dumps([chatgpt_conversation(number)]))
        archive.writestr("user.json", "{}")
    assert lines(memloop("import", "chatgpt", str(file)))[-1] == "12 in, 6 kept, 6 ignored, 0 failed"
    assert len(gateway.imported) == 6


def test_an_unpacked_archive_is_imported_by_its_folder(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    (tmp_path / "export").mkdir()
    for number in (0, 1):
        written(tmp_path / "export" / f"conversations-00{number}.json", [chatgpt_conversation(number)])
    written(tmp_path / "export" / "user.json", {})
    assert lines(memloop("import", "chatgpt", str(tmp_path / "export")))[-1] == "12 in, 6 kept, 6 ignored, 0 failed"
    assert len(gateway.imported) == 6


def test_a_folder_without_the_export_is_refused(memloop: Memloop, tmp_path: Path) -> None:
    result = memloop("import", "claude", str(tmp_path))
    assert result.exit_code == 2
    assert lines(result)[-1] == f"memloop: the folder {tmp_path} holds no conversations.json or memories.json"


def test_chatgpts_voice_chats_are_kept_as_they_were_spoken(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = written(tmp_path / "conversations.json", [chatgpt_voice_chat()])
    assert lines(memloop("import", "chatgpt", file))[-1] == "2 in, 2 kept, 0 ignored, 0 failed"
    assert [text for _, text, _ in told(gateway)] == ["My boat is called Nora.", "What a lovely name."]


def test_claude_keeps_text_without_thinking_and_tools(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    result = memloop("import", "claude", written(tmp_path / "conversations.json", [CLAUDE]))
    assert lines(result)[-1] == "4 in, 3 kept, 1 ignored, 0 failed"
    assert told(gateway) == [
        ("user", "I drink oolong.", datetime(2024, 5, 1, 8, 0, 1, 500000, UTC)),
        ("assistant", "Oolong it is.", at(2024, 5, 1, 8, 0, 9)),
        ("user", "Older form.", at(2024, 5, 1, 8, 1)),
    ]


def test_claudes_own_memory_becomes_a_memory_for_each_paragraph(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = written(tmp_path / "memories.json", CLAUDE_MEMORIES)
    assert lines(memloop("import", "claude", file, "--user", "ada"))[-1] == "4 in, 4 kept, 0 ignored, 0 failed"
    kept = {item.memory: (item.memory_type, item.tags, item.metadata.get("project")) for item in stored(gateway)}
    assert kept == {
        "Ada keeps bees.": ("LongTermMemory", ("Work context",), None),
        "She sells honey.": ("LongTermMemory", ("Work context",), None),
        "Oslo in May.": ("LongTermMemory", ("Travel",), None),
        "The hives stand at the mill.": ("LongTermMemory", (), "p-1"),
    }
    assert lines(memloop("import", "claude", file, "--user", "ada"))[-1] == "4 in, 0 kept, 4 ignored, 0 failed"


@pytest.mark.parametrize("member", ["memories.json", "memories/a-1.json"])
def test_claudes_archive_gives_chats_and_memories(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path, member: str
) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("conversations.json", json.dumps([CLAUDE]))
        archive.writestr(member, json.dumps(CLAUDE_MEMORIES if member == "memories.json" else CLAUDE_MEMORIES[0]))
        archive.writestr("projects/p-1.json", json.dumps({"uuid": "p-1"}))
    assert lines(memloop("import", "claude", str(file)))[-1] == "8 in, 7 kept, 1 ignored, 0 failed"
    assert len(gateway.imported) == 7


@pytest.mark.parametrize("field", ["conversations_memory", "project_memories"])
def test_a_memory_of_claudes_that_is_no_text_is_reported(memloop: Memloop, tmp_path: Path, field: str) -> None:
    file = written(tmp_path / "memories.json", [{field: 7}])
    result = memloop("import", "claude", file)
    assert (result.exit_code, lines(result)[-2]) == (1, "1 in, 0 kept, 0 ignored, 1 failed")


@pytest.mark.parametrize("shape", ["get_all", "list", "lines"])
def test_mem0_keeps_texts_users_times_and_categories(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path, shape: str
) -> None:
    value: object = {"count": 2, "next": None, "results": MEM0} if shape == "get_all" else MEM0
    file = written(tmp_path / "mem0.json", value, as_lines=shape == "lines")
    assert lines(memloop("import", "mem0", file))[-1] == "2 in, 2 kept, 0 ignored, 0 failed"
    hiking, oslo = stored(gateway)
    assert (hiking.memory, hiking.user_id, hiking.tags) == ("Likes hiking.", "alex", ("hobbies",))
    assert hiking.valid_from == datetime(2024, 2, 3, 12, 5, 6, 789000, UTC)
    assert hiking.metadata == {"mood": "good", "imported_from": "mem0", "imported_id": "m-1"}
    assert (oslo.user_id, oslo.agent_id, oslo.memory_type) == ("berta", "guide", "LongTermMemory")


def test_mem0_keeps_who_said_what_the_memory_is_made_of(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    said = {"id": "m-3", "memory": "Ada likes tea.", "actor_id": "ada", "role": "user", "metadata": {"mood": "calm"}}
    memloop("import", "mem0", written(tmp_path / "mem0.json", [said]))
    (found,) = stored(gateway)
    assert {name: found.metadata.get(name) for name in ("actor_id", "role", "mood")} == {
        "actor_id": "ada",
        "role": "user",
        "mood": "calm",
    }


def test_zep_keeps_threads_sessions_and_facts(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    result = memloop("import", "zep", written(tmp_path / "zep.json", {"threads": ZEP}))
    assert lines(result)[-1] == "5 in, 4 kept, 1 ignored, 0 failed"
    assert {(item.memory, item.user_id, item.memory_type) for item in stored(gateway)} == {
        ("Zoe: I ski.", "zoe", "RawTurn"),
        ("Where?", "zoe", "RawTurn"),
        ("Zoe: In Gstaad.", "zoe", "RawTurn"),
        ("Zoe skis in Gstaad.", "zoe", "LongTermMemory"),
    }


def test_a_single_answer_of_zeps_api_is_a_thread(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "thread.json"
    file.write_text(json.dumps(ZEP[0], indent=1))
    assert lines(memloop("import", "zep", str(file)))[-1] == "2 in, 2 kept, 0 ignored, 0 failed"
    assert len(gateway.imported) == 2


def test_langgraph_items_go_to_the_user_in_their_namespace(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = written(tmp_path / "store.jsonl", LANGGRAPH, as_lines=True)
    assert lines(memloop("import", "langgraph", file, "--user-part", "1"))[-1].startswith("3 in, 3 kept")
    assert {(item.user_id, item.memory) for item in stored(gateway)} == {
        ("lena", "Lena paints."),
        ("lars", "Lars sails."),
        ("lena", '{"city": "Graz", "since": 2020}'),
    }
    assert min(item.valid_from for item in stored(gateway)) == at(2024, 8, 2, 10)


def test_jsonl_takes_chats_lists_and_single_turns(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = written(tmp_path / "chats.jsonl", CHATS, as_lines=True)
    assert lines(memloop("import", "jsonl", file))[-1] == "5 in, 4 kept, 1 ignored, 0 failed"
    assert {(item.user_id, item.memory) for item in stored(gateway)} == {
        ("jo", "I bake."),
        ("jo", "Bread?"),
        ("me", "A bare list."),
        ("me", "A single turn."),
    }
    assert told(gateway)[1:3] == [
        ("user", "I bake.", at(2024, 3, 9, 16)),
        ("assistant", "Bread?", at(2024, 3, 9, 16, 0, 5)),
    ]


BAD_LINES = [
    ("not json", "not JSON"),
    ("[1]", "not a JSON object"),
    ('{"messages": 7}', "messages is not a list"),
    ('{"messages": []}', "a chat without messages"),
    ('{"messages": [{"role": "user", "content": "x", "timestamp": "soon"}]}', "a time that cannot be read"),
    ('{"messages": [{"role": "user", "content": "x", "timestamp": 1e300}]}', "a time that cannot be read"),
    ('{"messages": [{"role": "user", "content": "x", "timestamp": "0001-01-01"}]}', "a time outside of"),
    ('{"messages": [{"role": "user", "content": "It is refused."}]}', "item: refused"),
    ('{"messages": [{"role": "user", "content": {"a": 1}}]}', "content is not a list"),
    ("[" * 5000, "not JSON"),
]


def test_bad_lines_are_named_and_do_not_stop_the_rest(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    good = [json.dumps({"messages": [{"role": "user", "content": text}]}) for text in ("One.", "Two.")]
    file = tmp_path / "chats.jsonl"
    file.write_text("\n".join([good[0], *(line for line, _ in BAD_LINES), good[1]]))
    result = memloop("import", "jsonl", str(file))
    assert result.exit_code == 1
    assert {item.memory for item in stored(gateway)} == {"One.", "Two."}
    shown = lines(result)
    for number, (_, reason) in enumerate(BAD_LINES, start=2):
        assert any(line.startswith(f"record {number}: {reason}") for line in shown), (number, reason)
    assert f"12 in, 2 kept, 0 ignored, {len(BAD_LINES)} failed" in shown


def test_a_list_that_breaks_off_keeps_what_came_before(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    whole = json.dumps([chatgpt_conversation(1), chatgpt_conversation(2)])
    file.write_text(whole[: len(whole) - 40])
    result = memloop("import", "chatgpt", str(file))
    assert "record 2: the JSON is broken here; what follows cannot be read" in lines(result)
    assert len(gateway.imported) == 3


def test_a_dry_run_counts_and_sends_nothing(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    result = memloop("import", "claude", written(tmp_path / "c.json", [CLAUDE]), "--dry-run")
    assert result.exit_code == 0
    assert lines(result) == [
        "from 2024-05-01 to 2024-05-01",
        "4 in, 3 kept, 1 ignored, 0 failed (dry run: nothing was sent)",
    ]
    assert (gateway.imported, gateway.asked) == ({}, [])


def test_a_repeated_import_sends_nothing_again_unless_asked(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    file = written(tmp_path / "c.json", [CLAUDE])
    memloop("import", "claude", file)
    assert lines(memloop("import", "claude", file))[-1] == "4 in, 0 kept, 4 ignored, 0 failed"
    assert gateway.import_lines == 3
    assert lines(memloop("import", "claude", file, "--again"))[-1] == "4 in, 0 kept, 4 ignored, 0 failed"
    assert (gateway.import_lines, len(gateway.imported)) == (6, 3)


def test_chats_go_through_the_writer_in_named_writes(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    result = memloop("import", "claude", written(tmp_path / "c.json", [CLAUDE]), "--infer", "--user", "kim")
    assert lines(result)[-1] == "4 in, 3 kept, 1 ignored, 0 failed"
    (body,) = gateway.bodies("/v1/memory/add")
    assert (body["user_id"], body["infer"]) == ("kim", True)
    messages: Any = body["messages"]
    assert [message["timestamp"] for message in messages] == [
        "2024-05-01T08:00:01.500000Z",
        "2024-05-01T08:00:09Z",
        "2024-05-01T08:01:00Z",
    ]


def test_what_the_writer_ignores_or_fails_is_counted(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = written(tmp_path / "c.json", [CLAUDE])
    gateway.event = EVENT.model_copy(update={"memories": ()})
    assert lines(memloop("import", "claude", file, "--infer"))[-1] == "4 in, 0 kept, 4 ignored, 0 failed"
    later = datetime.now(UTC) + timedelta(days=1)
    failed = {"status": "failed", "error": "no valid decision", "memories": (), "created_at": later}
    gateway.event = EVENT.model_copy(update=failed)
    result = memloop("import", "claude", file, "--infer", "--again")
    assert "record 1: no valid decision" in lines(result)
    assert "4 in, 0 kept, 1 ignored, 3 failed" in lines(result)


def test_a_write_that_failed_in_an_earlier_import_is_queued_again(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path
) -> None:
    gateway.event = EVENT.model_copy(update={"status": "failed", "error": "no valid decision", "memories": ()})
    result = memloop("import", "claude", written(tmp_path / "c.json", [CLAUDE]), "--infer")
    assert lines(result)[-1] == "4 in, 3 kept, 1 ignored, 0 failed"
    assert [path for path, _ in gateway.asked].count("/v1/memory/events/evt_1/retry") == 1


def test_a_killed_import_goes_on_and_stores_nothing_twice(gateway: FakeGateway, tmp_path: Path) -> None:
    many = [chatgpt_conversation(number) for number in range(300)]  # 900 turns in batches of 200
    file = written(tmp_path / "conversations.json", many)
    environment = {
        "PATH": os.environ["PATH"],
        "MEMLOOP_URL": gateway.url,
        "MEMLOOP_HOME": str(tmp_path / "home"),
    }
    command = [sys.executable, "-m", "memloop_cli", "import", "chatgpt", file]
    gateway.imports_before_hanging = 2
    with subprocess.Popen(command, env=environment) as killed:
        assert gateway.hanging.wait(PATIENCE_S)
        killed.send_signal(signal.SIGKILL)
        killed.wait(PATIENCE_S)
    assert len(gateway.imported) == 400
    gateway.imports_before_hanging = -1
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert len(gateway.imported) == 900
    kept = 900 - 400
    assert f"1,800 in, {kept} kept, 1,300 ignored, 0 failed" in done.stdout
    assert gateway.import_lines - 400 <= kept + 3  # only the conversation that the kill cut in two is sent again


def test_a_large_export_is_read_in_bounded_memory(tmp_path: Path) -> None:
    file = tmp_path / "conversations.json"
    filler = "x" * 50_000
    with file.open("w") as out:
        out.write("[")
        for number in range(1200):
            out.write(("," if number else "") + json.dumps({"id": str(number), "title": filler}))
        out.write("]")
    assert file.stat().st_size > 60_000_000
    tracemalloc.start()
    with opened(file) as (one,):
        count = sum(1 for _ in records(one))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 1200
    assert peak < 4_000_000


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["chatgpt"], "name a file"),
        (["chatgpt", "no-such-file"], "there is no file"),
        (["langgraph", "FILE"], "name the user of a LangGraph store"),
        (["mem0"], "name a file; or, of mem0's API, a --user and the key (MEM0_API_KEY)"),
        (["zep", "--user", "ann"], "name a file; or, of zep's API, a --user and the key (ZEP_API_KEY)"),
        (["langgraph", "--user", "ann"], "name a file; or, of a deployment's API, its address (LANGGRAPH_URL)"),
    ],
)
def test_bad_arguments_are_refused(memloop: Memloop, tmp_path: Path, arguments: list[str], reason: str) -> None:
    file = written(tmp_path / "x.json", [])
    result = memloop("import", *(file if part == "FILE" else part for part in arguments))
    assert (result.exit_code, reason in result.output) == (2, True)


@pytest.mark.parametrize(("kind", "name"), [("mem0", "mem0"), ("zep", "Zep"), ("langgraph", "LangGraph")])
def test_an_api_that_is_away_is_an_error_in_one_line(memloop: Memloop, kind: str, name: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = memloop("import", kind, "--user", "u", f"--{kind}-url", url, f"--{kind}-key", "k")
    assert result.exit_code == 1
    assert lines(result)[-1].startswith(f"memloop: {name} at {url}")
    assert result.output.count("Traceback") == 0


def test_an_export_of_ours_is_imported_again(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    memloop("memory", "export", "--user", "u1", "-o", str(file))
    assert lines(memloop("import", "memloop", str(file)))[-1] == "1 in, 1 kept, 0 ignored, 0 failed"
    assert [item.id for item in stored(gateway)] == ["m1"]


@pytest.mark.parametrize(("asked", "owner"), [((), "u1"), (("--user", "bob"), "bob")], ids=["as the file", "--user"])
def test_an_export_of_ours_goes_to_the_user_that_is_asked_for(
    memloop: Memloop, gateway: FakeGateway, tmp_path: Path, asked: tuple[str, ...], owner: str
) -> None:
    file = tmp_path / "mine.jsonl"
    memloop("memory", "export", "--user", "u1", "-o", str(file))
    memloop("import", "memloop", str(file), *asked)
    assert [(item.user_id, item.memory) for item in stored(gateway)] == [(owner, gateway.items[0].memory)]
