"""The prompts of training are those of the served loops, message for message."""

import re
from datetime import UTC, datetime
from random import Random

from gateway.chat.recall import pack, with_recalled
from memloop.loops.memagent import read_document
from memloop.loops.memreader import decide
from memloop.loops.parsing.memory_list import FoundList, find_memory_lines
from memloop.loops.relating import parse_relations
from memloop.ports import Completion, Recalled
from memloop.wire.memory import Source
from tests.fakes.model import ScriptedModel
from tests.memloop.reading import ListIndex, chunks_of
from trainer.small.kinds import English
from trainer.small.reading import draw_reading
from trainer.small.relating import draw_answers, draw_relating
from trainer.small.sample import PROFILE
from trainer.small.writing import draw_writing

TRAINED = English("train")


class Words:
    """A splitter that counts words."""

    def count(self, text: str) -> int:
        return len(text.split())


async def test_the_writer_is_asked_as_in_training() -> None:
    for seed in range(40):
        sample = draw_writing(TRAINED, Random(seed))
        date, *lines = sample.messages[-1].text().splitlines()
        at = datetime.fromisoformat(date.removeprefix("Date: ")).replace(tzinfo=UTC)
        turns = [
            Source(role=role, content=text, timestamp=at)
            for role, text in (re.fullmatch(r"\[(\w+)\]: (.*)", line).groups() for line in lines)  # pyright: ignore[reportOptionalMemberAccess]
        ]
        model = ScriptedModel([sample.reply])
        result = await decide(turns, model=model, index=ListIndex(), profile=PROFILE)
        assert model.prompts[0].messages == sample.messages
        assert result.decision.action == {"ignore": "ignore", "wait": "buffer"}.get(sample.sort, "add")


async def test_the_reader_is_asked_as_in_training() -> None:
    read, conclude = next(
        turns
        for turns in (draw_reading(TRAINED, Random(seed)) for seed in range(200))
        if PROFILE.empty_memory in turns[0].messages[-1].text() and turns[0].reply in turns[1].messages[-1].text()
    )
    asked = read.messages[-1].text()
    question = asked.partition("<problem>\n")[2].partition("\n</problem>")[0]
    section = asked.partition("<section>\n")[2].partition("\n</section>")[0]
    model = ScriptedModel([read.reply, conclude.reply])
    result = await read_document(question, chunks_of(section), model=model, profile=PROFILE)
    assert [prompt.messages for prompt in model.prompts] == [read.messages, conclude.messages]
    assert result.answer == conclude.golds[0]


def test_a_chat_with_recalled_notes_is_asked_as_in_training() -> None:
    sample = draw_answers(TRAINED, Random(1))[0]
    notes = re.findall(r"^\d+\. (.*) \((\d{4}-\d\d-\d\d)\)$", sample.messages[0].text(), re.MULTILINE)
    found = [Recalled("m", text, datetime.fromisoformat(day).replace(tzinfo=UTC)) for text, day in notes]
    packed = pack(found, PROFILE, Words(), max_tokens=10_000)  # pyright: ignore[reportArgumentType]
    question = sample.messages[1].text()
    fields = {"messages": [{"role": "user", "content": question}]}
    shown = packed.message.text() if packed.message else ""
    sent = with_recalled(fields, shown, place=0, form=PROFILE.recall_place)  # pyright: ignore[reportArgumentType]
    assert sent["messages"] == [{"role": held.role, "content": held.text()} for held in sample.messages]


def test_replies_are_what_the_served_parsers_read() -> None:
    for seed in range(40):
        for related in draw_relating(TRAINED, Random(seed)):
            verb = "new" if related.sort == "new" else "updates"
            assert [relation.verb for relation in parse_relations(Completion(related.reply))] == [verb]
        written = draw_writing(TRAINED, Random(seed))
        found = find_memory_lines(Completion(written.reply))
        entries = found.entries if isinstance(found, FoundList) else []
        assert len(entries) == (0 if written.sort in {"ignore", "wait"} else len(written.reply.splitlines()))
