"""What the evaluation shows a model, for one scripted dialogue of each loop: see ``tests.dialogues``."""

import pytest

from memloop.chunking import TokenizerSplitter
from memloop.profiles import load_profile
from tests.dialogues.scripted import (
    ANSWER,
    DOCUMENT,
    MEMAGENT,
    MEMREADER,
    MEMREREAD,
    QUESTION,
    STORED,
    TINY,
    TURNS,
    Dialogue,
)
from tests.fakes.model import ScriptedModel
from trainer.chat_template import sent_messages
from trainer.tiny.conversations import Conversation
from trainer.tiny.documents import Document
from trainer.tiny.evaluate import answer_is_right, decision_is_right

PROFILE = load_profile("tiny")


@pytest.mark.parametrize("dialogue", [MEMAGENT, MEMREREAD], ids=lambda each: each.loop)
async def test_an_evaluated_read_shows_the_model_what_the_gateway_shows(dialogue: Dialogue) -> None:
    splitter = TokenizerSplitter((TINY / "tokenizer.json").read_bytes())
    chunks = splitter.split(DOCUMENT, chunk_tokens=PROFILE.budget.chunk_tokens)
    model = ScriptedModel(dialogue.replies)
    document = Document(QUESTION, ANSWER, chunks)
    assert await answer_is_right(model, PROFILE, document, reread=dialogue is MEMREREAD)
    dialogue.check(_sent(model))


async def test_an_evaluated_decision_shows_the_model_what_the_gateway_shows() -> None:
    model = ScriptedModel(MEMREADER.replies)
    gold = ("add", "The locker code of the user is 512.")
    assert await decision_is_right(model, PROFILE, Conversation("update", TURNS, STORED, gold))
    MEMREADER.check(_sent(model))


def _sent(model: ScriptedModel) -> list[dict[str, object]]:
    return [{"messages": sent_messages(prompt), "tools": list(prompt.tools)} for prompt in model.prompts]
