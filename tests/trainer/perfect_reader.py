"""A model double that plays the reading roles by rule, as well as they can be played."""

import re
from collections.abc import Iterable

from memloop.ports import Completion, Prompt
from trainer.tiny.example import memory_text
from trainer.tiny.world import HOME, Fact, Question, sought

_FACT = re.compile(r"The ([a-z ]+) (?:of|for) ([A-Z]\w+) (?:is|was) (\w+)\.")
_QUESTION = re.compile(rf"the ([a-z ]+?) of (the {HOME} of )?([A-Z]\w+)")


class PerfectReader:
    """Answers the read, answer, judge and integrate prompts without a fault."""

    async def complete(self, prompt: Prompt) -> Completion:
        text = prompt.messages[-1].text()
        question = _question(_slot(text, "problem") or _slot(text, "question"))
        known = tuple(fact for fact in _facts(_slot(text, "memory")) if fact.known)
        if text.startswith("Read"):
            return Completion(memory_text(sought(question, (*known, *_facts(_slot(text, "section"))))))
        if text.startswith("Merge"):
            asked = _question(_slot(text, "subquestion"))
            news = Fact(asked.entity, asked.attribute, _slot(text, "subanswer"))
            return Completion(memory_text(sought(question, (news, *known))))
        held = sought(question, known)
        if text.startswith("Solve"):
            found = len(held) == question.hops and held[-1].known
            return Completion(f"\\boxed{{{held[-1].value if found else 'unknown'}}}")
        missing = [fact for fact in held if not fact.known]
        return Completion("".join(f"<query>What is the {f.attribute} of {f.entity}?</query>" for f in missing))


def _slot(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", text, re.DOTALL)
    return found[1] if found else ""


def _facts(text: str) -> Iterable[Fact]:
    return [Fact(entity, attribute, value) for attribute, entity, value in _FACT.findall(text)]


def _question(text: str) -> Question:
    found = _QUESTION.search(text)
    assert found
    return Question(found[3], found[1], 2 if found[2] else 1)
