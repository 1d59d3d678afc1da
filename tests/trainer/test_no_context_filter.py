"""The filter drops what a model knows by heart, and a kill costs no more than the calls that were in flight."""

import asyncio
import json
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from memloop.ports import Completion, Prompt
from memloop.wire.errors import EngineError, Unavailable
from tests.fakes.web_server import serving
from trainer.data.encyclopedia import write_encyclopedia
from trainer.data.hotpot import HotpotQuestion, questions
from trainer.data.json_rows import DataError
from trainer.data.no_context import NoContextFilter, write_kept
from trainer.data.retry_policy import RetryPolicy

NOW = RetryPolicy(attempts=3, pause_s=0.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    write_encyclopedia(path, 40, seed=0)
    return path


class Knowing:
    """Knows the answers to some questions, and finds them at the ``at``-th asking."""

    def __init__(self, known: dict[str, str], *, at: int = 1) -> None:
        self._known = known
        self._at = at
        self.asked = Counter[str]()

    async def complete(self, prompt: Prompt) -> Completion:
        question = _question(prompt.messages[-1].content)
        self.asked[question] += 1
        right = self._known.get(question) if self.asked[question] >= self._at else None
        return Completion(f"I think \\boxed{{{right or 'nothing'}}}")


def _question(content: object) -> str:
    return str(content).rpartition("Question: ")[2]


def by_heart(source: Path, count: int) -> dict[str, str]:
    return {each.question: each.answer for each in list(questions(source))[:count]}


def twice(source: Path) -> None:
    source.write_text(source.read_text("utf-8") * 2, "utf-8")


async def judged(filter_: NoContextFilter, source: Path) -> list[str]:
    """The ids that are kept."""
    out = source.with_name("kept.jsonl")
    with filter_.open_journal(source.with_name("journal")) as journal:
        await filter_.judge(questions(source), journal)
        write_kept(source, journal, out)
    return [each.id for each in questions(out)] if out.stat().st_size else []


async def test_a_question_is_dropped_when_any_answer_of_any_model_is_right(source: Path) -> None:
    known = by_heart(source, 3)
    first, second = Knowing({}), Knowing(known, at=2)
    kept = await judged(NoContextFilter([("a", first), ("b", second)], samples=2), source)
    assert kept == [f"0-{number}" for number in range(3, 40)]
    assert set(first.asked.values()) == {2}


async def test_nobody_is_asked_again_once_an_answer_was_right(source: Path) -> None:
    first, second = Knowing(by_heart(source, 40)), Knowing({})
    assert await judged(NoContextFilter([("a", first), ("b", second)]), source) == []
    assert set(first.asked.values()) == {1}
    assert not second.asked


async def test_a_question_that_stands_twice_is_asked_once_and_kept_twice(source: Path) -> None:
    twice(source)
    model = Knowing({})
    assert len(await judged(NoContextFilter([("a", model)], samples=1), source)) == 80
    assert set(model.asked.values()) == {1}


async def test_no_more_questions_are_asked_at_once_than_there_are_places(source: Path) -> None:
    class Slow:
        running = most = 0

        async def complete(self, prompt: Prompt) -> Completion:
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0.001)
            self.running -= 1
            return Completion("no")

    slow = Slow()
    await judged(NoContextFilter([("a", slow)], samples=1, places=5), source)
    assert slow.most == 5


async def test_an_endpoint_that_fails_again_and_again_ends_the_run_and_keeps_what_is_known(source: Path) -> None:
    class Failing(Knowing):
        async def complete(self, prompt: Prompt) -> Completion:
            if len(self.asked) >= 10:
                raise Unavailable("gone")
            return await super().complete(prompt)

    with pytest.raises(Unavailable, match="gone"):
        await judged(NoContextFilter([("a", Failing({}))], samples=1, places=2, retries=NOW), source)
    model = Knowing({})
    assert len(await judged(NoContextFilter([("a", model)], samples=1), source)) == 40
    assert len(model.asked) == 30


async def test_a_question_that_an_endpoint_refuses_is_kept(source: Path) -> None:
    class Prudish:
        async def complete(self, prompt: Prompt) -> Completion:
            raise EngineError("content filter", engine_status=400)

    assert len(await judged(NoContextFilter([("a", Prudish())]), source)) == 40


async def test_verdicts_of_other_models_are_not_taken_for_these(source: Path) -> None:
    await judged(NoContextFilter([("a", Knowing({}))]), source)
    with pytest.raises(DataError, match="models"):
        await judged(NoContextFilter([("b", Knowing({}))]), source)


class CountingEngine:
    """Answers chat completions after a while; knows every second question."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known
        self.asked = Counter[str]()

    async def until_asked(self, times: int) -> None:
        """Wait for so many more questions."""
        wanted = self.asked.total() + times
        while self.asked.total() < wanted:  # noqa: ASYNC110 - bounded by the test's time limit
            await asyncio.sleep(0.002)

    async def answer(self, request: web.Request) -> web.Response:
        question = _question((await request.json())["messages"][-1]["content"])
        self.asked[question] += 1
        await asyncio.sleep(random.uniform(0.005, 0.04))
        content = f"\\boxed{{{self._known.get(question, 'nothing')}}}"
        return web.json_response({"choices": [{"message": {"content": content}, "finish_reason": "stop"}]})


@pytest.fixture
async def engine(source: Path) -> AsyncIterator[tuple[CountingEngine, str]]:
    write_encyclopedia(source, 300, seed=0)
    known = {each.question: each.answer for number, each in enumerate(questions(source)) if number % 2}
    made = CountingEngine(known)
    async with serving([web.post("/v1/chat/completions", made.answer)]) as url:
        yield made, f"{url}/v1"


async def test_kills_lose_nothing_and_cost_only_what_was_in_flight(
    source: Path, engine: tuple[CountingEngine, str]
) -> None:
    counting, url = engine
    places, kills, out = 4, 3, source.with_name("kept.jsonl")
    given = ["--questions", str(source), "--ask", url, "tiny", "--samples", "1", "--at-once", str(places)]
    command = [sys.executable, "-m", "trainer", "data", "filter", *given, "--out", str(out)]
    for _ in range(kills):
        process = await asyncio.create_subprocess_exec(*command)
        await counting.until_asked(random.randint(2 * places, 60))
        process.kill()
        assert await process.wait() == -signal.SIGKILL
        assert not out.exists()
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()

    told = json.loads(said)
    assert (told["kept"], told["dropped"]) == (150, 150)
    assert told["resumed_from"] > 0
    everything = list(questions(source))
    assert [each.id for each in questions(out)] == [each.id for each in everything[::2]]
    assert set(counting.asked) == {each.question for each in everything}
    assert counting.asked.total() - len(everything) <= kills * places
    assert max(counting.asked.values()) <= kills + 1


def test_the_prompt_holds_the_question_and_no_document(source: Path) -> None:
    seen: list[Prompt] = []

    class Recording(Knowing):
        async def complete(self, prompt: Prompt) -> Completion:
            seen.append(prompt)
            return await super().complete(prompt)

    asyncio.run(judged(NoContextFilter([("a", Recording({}))], samples=1), source))
    question: HotpotQuestion = next(questions(source))
    (message,) = seen[0].messages
    assert str(message.content).endswith(question.question)
    assert not re.search(question.answer, str(message.content))


class Chatting:
    """Names the right answer in passing, and boxes another one."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known

    async def complete(self, prompt: Prompt) -> Completion:
        said = self._known.get(_question(prompt.messages[-1].content), "nothing")
        return Completion(f"It may be {said.upper()}, though I say \\boxed{{something else}}.")


async def test_an_answer_anywhere_in_the_reply_drops_the_question_as_memagents_filter_does(source: Path) -> None:
    known = by_heart(source, 40)
    by_box = NoContextFilter([("m", Chatting(known))], places=4, retries=NOW)
    assert len(await judged(by_box, source)) == 40
    source.with_name("journal").unlink()
    anywhere = NoContextFilter([("m", Chatting(known))], score="anywhere", places=4, retries=NOW)
    assert await judged(anywhere, source) == []
