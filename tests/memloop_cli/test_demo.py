"""The demo's two parts against a fake gateway, and the claims it checks."""

import json
from collections.abc import AsyncGenerator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from memloop.wire.long_read import Strategy
from memloop_cli.demo.chatting import ChatShown, show_chat
from memloop_cli.demo.questions import DemoQuestion, DemoReading, load_reading
from memloop_cli.demo.reading import Answered, ReadShown, show_reading
from memloop_cli.errors import BadInput
from memloop_clients.gateway import GatewayClient
from tests.fakes.gateway_server import EVENT, FakeGateway, ended
from tests.fakes.web_server import serving


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


def answers(hops: int, *right: bool) -> tuple[Answered, ...]:
    asked = DemoQuestion(id="q", question="What?", answer="482", hops=hops)
    return tuple(Answered(asked, ended("completed", output_text="482" if is_right else "0"), 1.0) for is_right in right)


def shown(plain: int, again: int, *, two_plain: bool = False, two_again: bool = True) -> ReadShown:
    one: dict[Strategy, tuple[Answered, ...]] = {
        "memagent": answers(1, *(number < plain for number in range(10))),
        "memreread": answers(1, *(number < again for number in range(10))),
    }
    two: dict[Strategy, tuple[Answered, ...]] = {"memagent": answers(2, two_plain), "memreread": answers(2, two_again)}
    return ReadShown(one, two)


def test_eight_of_ten_and_a_fact_found_by_rereading_hold() -> None:
    assert shown(8, 8).faults == ()


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (shown(7, 10), "memagent answered 7 questions, fewer than 8"),
        (shown(10, 9), "memreread answered 9 one-hop questions, memagent 10"),
        (shown(10, 10, two_again=False), "no two-hop question was answered by memreread and missed by memagent"),
        (shown(10, 10, two_plain=True), "no two-hop question was answered by memreread and missed by memagent"),
    ],
)
def test_a_claim_that_does_not_hold_is_named(result: ReadShown, fault: str) -> None:
    assert result.faults == (fault,)


def test_a_chat_that_forgets_is_named() -> None:
    assert ChatShown(stored=False, recalled=True, answered=False).faults == (
        "the memory writer did not store what the user said",
        "the second conversation did not answer 482",
    )


async def test_the_chat_shows_turns_decisions_and_recalled_memories(gateway: FakeGateway, console: Console) -> None:
    async with GatewayClient(gateway.url) as client:
        result = await show_chat(client, console, model="tiny")
    assert result.faults == ()
    assert "you        My locker code is 482." in printed(console)
    assert "add      Stored the locker code." in printed(console)
    assert "recalled The locker code of the user is 482." in printed(console)


async def test_the_second_conversation_has_no_history(gateway: FakeGateway, console: Console) -> None:
    async with GatewayClient(gateway.url) as client:
        await show_chat(client, console, model="tiny")
    _, second = gateway.bodies("/v1/chat/completions")
    assert second["messages"] == [{"role": "user", "content": "What is my locker code?"}]


async def test_a_write_that_stored_something_else_is_no_memory(gateway: FakeGateway, console: Console) -> None:
    gateway.event = EVENT.model_copy(update={"memories": ()})
    async with GatewayClient(gateway.url) as client:
        result = await show_chat(client, console, model="tiny")
    assert not result.stored


def a_reading(one_hop: int, two_hop: int) -> DemoReading:
    one = (DemoQuestion(id=f"1-{number}", question="One?", answer="482", hops=1) for number in range(one_hop))
    two = (DemoQuestion(id=f"2-{number}", question="Two?", answer="999", hops=2) for number in range(two_hop))
    return DemoReading(document="d", tokens=3, source="a book", questions=(*one, *two))


def asked(gateway: FakeGateway) -> list[tuple[object, object]]:
    return [(body["question"], body["strategy"]) for body in gateway.bodies("/v1/long-read")]


async def test_the_short_demo_asks_one_of_each_and_rereads_for_two_facts_alone(
    gateway: FakeGateway, console: Console
) -> None:
    async with GatewayClient(gateway.url) as client:
        result = await show_reading(client, console, a_reading(10, 3), "The text.", model="tiny")
    few = [("One?", "memagent"), ("Two?", "memagent"), ("Two?", "memreread")]
    assert sorted(asked(gateway)) == sorted(few)
    assert set(result.one_hop) == {"memagent"}
    assert "One fact each, memagent: 1 of 1 right" in printed(console)


def test_one_right_answer_of_two_is_enough() -> None:
    two: dict[Strategy, tuple[Answered, ...]] = {"memagent": answers(2, False), "memreread": answers(2, True)}
    assert ReadShown({"memagent": answers(1, True, False)}, two).faults == ()
    missed = ReadShown({"memagent": answers(1, False, False)}, two)
    assert missed.faults == ("memagent answered 0 questions, fewer than 1",)


async def test_the_full_demo_asks_every_question_with_both_strategies(gateway: FakeGateway, console: Console) -> None:
    async with GatewayClient(gateway.url) as client:
        result = await show_reading(client, console, a_reading(1, 1), "The text.", model="tiny", full=True)
    both = [("One?", "memagent"), ("One?", "memreread"), ("Two?", "memagent"), ("Two?", "memreread")]
    assert sorted(asked(gateway)) == sorted(both)
    assert result.one_hop["memagent"][0].right
    assert not result.two_hop["memreread"][0].right
    assert "One fact each, memagent: 1 of 1 right" in printed(console)


def test_the_shipped_example_is_long_enough_and_asks_ten_questions() -> None:
    reading, text = load_reading(Path("examples/long-read"))
    assert reading.tokens >= 64_000
    assert len(text) > 100_000
    assert len(reading.with_hops(1)) == 10
    assert len(reading.with_hops(2)) >= 1


def test_examples_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="name its folder with --examples"):
        load_reading(tmp_path)


def test_examples_of_another_shape_are_refused(tmp_path: Path) -> None:
    (tmp_path / "questions.json").write_text(json.dumps({"document": "d"}))
    with pytest.raises(BadInput, match="is not a list of questions"):
        load_reading(tmp_path)
