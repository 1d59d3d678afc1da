"""Two checkpoints with prompts of their own behind one gateway: one writes and chats, the other reads documents."""

import time
from typing import Final

import pytest

from tests.deploy.stack.chats import chat
from tests.deploy.stack.compose import ComposeStack
from tests.deploy.stack.docker import docker
from tests.deploy.stack.writers import ask

pytestmark = pytest.mark.containers

WRITER: Final = "memloop-tiny-writer"
_ENDED_S: Final = 300.0
_DOCUMENT: Final = "The whale swam on. " * 80 + "The vault code of Marta is 731. " + "Nobody spoke. " * 80
_PROFILE: Final = """
import urllib.request
print(urllib.request.urlopen("http://127.0.0.1:7802/v1/profile", timeout=10).read())
"""


def test_the_gateway_lists_both(stack: ComposeStack) -> None:
    assert [model["id"] for model in ask(stack, "GET", "/v1/models")["data"]] == [WRITER, "reader"]


def test_each_has_prompts_of_its_own(stack: ComposeStack) -> None:
    services = ("inference-cpu", "inference-reader")
    writers, readers = (docker("exec", stack.container(name), "python", "-c", _PROFILE) for name in services)
    assert min(len(writers), len(readers)) > 1_000
    assert writers != readers


def test_a_document_is_read_by_the_reader(stack: ComposeStack) -> None:
    body = {"question": "What is the vault code of Marta?", "document": {"text": _DOCUMENT}}
    read = ask(stack, "POST", "/v1/long-read", body)
    assert (read["status"], read["model"]) == ("completed", "reader")
    assert "731" in read["output_text"]


def test_a_changed_fact_replaces_the_earlier_one_and_the_writer_answers_with_it(stack: ComposeStack) -> None:
    for code in ("731", "482"):
        told = chat(stack, f"The locker code of Marta is {code}.", user="changes")
        assert told["model"] == WRITER
        _until_written(stack, told["memory"]["write_event_id"])
    found = ask(stack, "POST", "/v1/memory/search", {"query": "locker code of Marta", "user_id": "changes"})
    assert [hit["item"]["memory"] for hit in found["results"]] == ["The locker code of Marta is 482."]
    answer = chat(stack, "What is the locker code of Marta?", user="changes")
    assert "482" in answer["choices"][0]["message"]["content"]


def test_the_reader_chats_too_when_a_request_names_it(stack: ComposeStack) -> None:
    assert chat(stack, "Hello.", model="reader")["model"] == "reader"


def _until_written(stack: ComposeStack, event_id: str) -> None:
    deadline = time.monotonic() + _ENDED_S
    while (event := ask(stack, "GET", f"/v1/memory/events/{event_id}"))["status"] != "completed":
        assert event["status"] not in {"failed", "cancelled"}, event
        assert time.monotonic() < deadline, event
        time.sleep(0.2)
