"""``memloop import`` keeps who said a message, where an export names its speakers."""

from pathlib import Path
from typing import Any

from tests.fakes.gateway_server import FakeGateway
from tests.memloop_cli.conftest import Memloop, lines
from tests.memloop_cli.exports import chatgpt_conversation
from tests.memloop_cli.test_import import stored, written

GROUP = [
    {"role": "user", "name": "Caroline", "content": "I adopted a dog."},
    {"role": "user", "name": "Mel\nanie" + "e" * 99, "content": "I adopted a cat."},
    {"role": "user", "name": 7, "content": "I adopted nothing."},
]


def test_jsonl_keeps_who_said_a_message(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = written(tmp_path / "group.jsonl", {"id": "g-1", "messages": GROUP})
    assert lines(memloop("import", "jsonl", file))[-1] == "3 in, 3 kept, 0 ignored, 0 failed"
    melanie = "Mel anie" + "e" * 56
    assert {(item.memory, item.sources[0].name, item.sources[0].content) for item in stored(gateway)} == {
        ("Caroline: I adopted a dog.", "Caroline", "I adopted a dog."),
        (f"{melanie}: I adopted a cat.", melanie, "I adopted a cat."),
        ("I adopted nothing.", None, "I adopted nothing."),
    }


def test_the_writer_gets_who_said_an_imported_message(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    file = written(tmp_path / "group.jsonl", {"id": "g-1", "messages": GROUP})
    assert memloop("import", "jsonl", file, "--infer").exit_code == 0
    (body,) = gateway.bodies("/v1/memory/add")
    messages: Any = body["messages"]
    assert [message.get("name") for message in messages] == ["Caroline", "Mel anie" + "e" * 56, None]


def test_chatgpt_keeps_the_names_of_a_group_chat(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    conversation = chatgpt_conversation()
    conversation["mapping"]["new"]["message"]["author"]["name"] = "Caroline"
    memloop("import", "chatgpt", written(tmp_path / "conversations.json", [conversation]))
    assert [item.memory for item in stored(gateway)][:2] == [
        "Caroline: My cat number 1 is called Inky.",
        "A fine name.",
    ]


def test_a_zep_thread_whose_role_is_no_name_gets_none(memloop: Memloop, gateway: FakeGateway, tmp_path: Path) -> None:
    messages = [{"uuid": "z-1", "role_type": "user", "role": "User", "content": "I ski.", "created_at": "2023-01-01"}]
    memloop("import", "zep", written(tmp_path / "zep.json", {"threads": [{"session_id": "s", "messages": messages}]}))
    assert [item.memory for item in stored(gateway)] == ["I ski."]
