"""The demo's two parts against a fake gateway, and the score that it prints."""

import json
import os
import pty
from collections.abc import AsyncGenerator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from memloop.wire.long_read import Evidence
from memloop_cli.demo.chatting import let_type, show_chat
from memloop_cli.demo.questions import DemoFact, DemoQuestion, DemoReading, load_reading
from memloop_cli.demo.reading import show_reading
from memloop_cli.errors import BadInput
from memloop_clients.gateway import GatewayClient
from tests.fakes.gateway_server import EVENT, FakeGateway, ended
from tests.fakes.web_server import serving

LOCKER = DemoFact(say="My locker code is 482.", ask="What is my locker code?", gold="482")
DOG = DemoFact(say="My dog is called Rex.", ask="What is my dog called?", gold="Rex")
SMALL_TALK = DemoFact(say="What a day!")


@pytest.fixture
async def gateway() -> AsyncGenerator[FakeGateway]:
    fake = FakeGateway()
    async with serving(fake.routes()) as url:
        fake.url = url
        yield fake


@pytest.fixture
def console() -> Console:
    return Console(file=StringIO(), width=200)


def printed(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


async def test_the_chat_shows_turns_decisions_and_recalled_memories(gateway: FakeGateway, console: Console) -> None:
    async with GatewayClient(gateway.url) as client:
        shown = await show_chat(client, console, [LOCKER], model="tiny")
    assert str(shown) == "facts stored 1 of 1 by the expected word, answered later 1 of 1 by the expected word"
    assert "you        My locker code is 482." in printed(console)
    assert "add      Stored the locker code." in printed(console)
    assert "recalled The locker code of the user is 482." in printed(console)


async def test_what_is_wrong_is_counted_as_wrong(gateway: FakeGateway, console: Console) -> None:
    """Every write of this gateway stores the locker code, and every reply says it."""
    async with GatewayClient(gateway.url) as client:
        shown = await show_chat(client, console, [LOCKER, DOG, SMALL_TALK], model="tiny")
    assert "facts stored 1 of 2 by the expected word" in str(shown)
    assert "answered later 1 of 2 by the expected word, small talk stored 1 of 1" in str(shown)


async def test_every_conversation_of_the_demo_has_no_history(gateway: FakeGateway, console: Console) -> None:
    async with GatewayClient(gateway.url) as client:
        await show_chat(client, console, [LOCKER, DOG], model="tiny")
    said = [body["messages"] for body in gateway.bodies("/v1/chat/completions")]
    texts = (LOCKER.say, DOG.say, LOCKER.ask, DOG.ask)
    assert said == [[{"role": "user", "content": text}] for text in texts]


async def test_a_write_that_stored_nothing_is_no_memory(gateway: FakeGateway, console: Console) -> None:
    gateway.event = EVENT.model_copy(update={"memories": ()})
    async with GatewayClient(gateway.url) as client:
        shown = await show_chat(client, console, [LOCKER, SMALL_TALK], model="tiny")
    assert (shown.stored, shown.small_talk_stored) == (0, 0)


async def test_without_a_terminal_no_line_is_waited_for(gateway: FakeGateway, console: Console) -> None:
    async with GatewayClient(gateway.url) as client:
        await let_type(client, console, model="tiny")
    assert "Your turn" not in printed(console)


async def test_what_a_person_types_is_said_until_an_empty_line(
    gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"My dog is called Rex.\n  \nNever said.\n")
    with os.fdopen(terminal) as stdin, os.fdopen(keyboard, "wb", buffering=0):
        monkeypatch.setattr("sys.stdin", stdin)
        async with GatewayClient(gateway.url) as client:
            await let_type(client, Console(file=StringIO(), force_terminal=True), model="tiny")
    said = [body["messages"] for body in gateway.bodies("/v1/chat/completions")]
    assert said == [[{"role": "user", "content": "My dog is called Rex."}]]


def a_reading(*, rereads: bool = True) -> DemoReading:
    questions = (
        DemoQuestion(id="a", question="One?", answer="482", group="One fact", hops=1),
        DemoQuestion(id="b", question="Another?", answer="999", group="One fact", hops=1),
        DemoQuestion(id="c", question="Two?", answer="482", group="Two facts", hops=2),
    )
    return DemoReading(
        document="d", source="a book", facts=(LOCKER,), questions=questions, short=("a", "c"), rereads=rereads
    )


def asked(gateway: FakeGateway) -> list[tuple[object, object]]:
    return sorted((body["question"], body["strategy"]) for body in gateway.bodies("/v1/long-read"))


async def scores(gateway: FakeGateway, console: Console, reading: DemoReading, *, full: bool) -> list[str]:
    async with GatewayClient(gateway.url) as client:
        return [str(group) for group in await show_reading(client, console, reading, "A text.", model="m", full=full)]


async def test_the_short_demo_asks_few_and_rereads_for_two_facts_alone(gateway: FakeGateway, console: Console) -> None:
    assert await scores(gateway, console, a_reading(), full=False) == [
        "One fact, memagent: 1 of 1 right",
        "Two facts, memagent: 1 of 1 right",
        "Two facts, memreread: 1 of 1 right",
    ]
    assert asked(gateway) == [("One?", "memagent"), ("Two?", "memagent"), ("Two?", "memreread")]


async def test_the_full_demo_asks_every_question_and_counts_the_wrong(gateway: FakeGateway, console: Console) -> None:
    assert await scores(gateway, console, a_reading(), full=True) == [
        "One fact, memagent: 1 of 2 right",
        "Two facts, memagent: 1 of 1 right",
        "One fact, memreread: 1 of 2 right",
        "Two facts, memreread: 1 of 1 right",
    ]
    assert len(asked(gateway)) == 6


async def test_a_reading_without_rereads_asks_one_strategy(gateway: FakeGateway, console: Console) -> None:
    await scores(gateway, console, a_reading(rereads=False), full=True)
    assert {strategy for _, strategy in asked(gateway)} == {"memagent"}


async def test_the_place_that_an_answer_rests_on_is_shown(gateway: FakeGateway, console: Console) -> None:
    found = Evidence(statement="It is 482.", source="memory", supported=True, start=4, end=20, text="The code is 482.")
    gateway.read = ended("completed", evidence=(found,))
    await scores(gateway, console, a_reading(), full=False)
    assert "characters 4 to 20: “The code is 482.”" in printed(console)
    assert all(body["evidence"] for body in gateway.bodies("/v1/long-read"))


def test_the_tiny_models_example_is_long_and_asks_ten_questions() -> None:
    reading, text = load_reading(Path("examples/long-read"))
    assert len(text) > 100_000
    assert sum(question.hops == 1 for question in reading.questions) == 10
    assert {question.id for question in reading.questions} > set(reading.short)


def test_the_first_minutes_text_holds_every_answer_and_no_more_than_one_planted_sentence_of_it() -> None:
    reading, text = load_reading(Path("examples/first-minute"))
    assert all(question.answer in text for question in reading.questions)
    planted = [question for question in reading.questions if question.id.startswith("planted")]
    assert all(text.count(question.answer) == 1 for question in planted)
    assert {bool(fact.ask) for fact in reading.facts} == {True, False}


def test_examples_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name its folder with --examples"):
        load_reading(tmp_path)


def test_examples_of_another_shape_are_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps({"document": "d"}))
    with pytest.raises(BadInput, match="is not a list of questions"):
        load_reading(tmp_path)
