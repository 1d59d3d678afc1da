import asyncio

from memloop_service.waiting_line import WaitingLine


def order(line: WaitingLine[str], turns: dict[str, asyncio.Future[None]]) -> list[str]:
    released: list[str] = []
    while line.release():
        released.append(next(name for name, turn in turns.items() if turn.done() and name not in released))
    return released


async def test_owners_take_turns_and_each_one_s_oldest_goes_first() -> None:
    line = WaitingLine[str]()
    turns = {name: line.join(name[0]) for name in ("a1", "a2", "a3", "b1", "c1", "b2")}
    assert order(line, turns) == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_a_request_that_left_the_line_is_passed_over() -> None:
    line = WaitingLine[str]()
    turns = {name: line.join("a") for name in ("gone", "stays")}
    turns.pop("gone").cancel()
    assert order(line, turns) == ["stays"]


async def test_an_empty_line_is_false_and_has_nobody_to_release() -> None:
    line = WaitingLine[str]()
    assert not line
    line.join("a").cancel()
    assert line
    assert not line.release()
    assert not line
