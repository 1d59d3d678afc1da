"""The scripted dialogues' tasks as rows of a data set."""

from memloop.wire.chat import Json
from tests.dialogues.scripted import ANSWER, DOCUMENT, QUESTION, STORED, TURNS
from trainer.data.rows import AgentName, reading_row, writing_row


def row_of(loop: AgentName) -> Json:
    """The row that the loop reads."""
    if loop == "memreader":
        gold = ("add", "The locker code of the user is 512.")
        return writing_row(data_source="test", index=0, id_="0", turns=TURNS, stored=STORED, gold=gold)
    return reading_row(
        data_source="test",
        index=0,
        id_="0",
        question=QUESTION,
        answers=(ANSWER,),
        context=DOCUMENT,
        agent=loop,
    )
