"""What the demo says and asks: facts for the chat, a document, and the questions about it."""

from pathlib import Path

from pydantic import BaseModel, ValidationError

from memloop.wire.long_read import Strategy
from memloop_cli.errors import BadInput
from memloop_cli.reading.sources import document_text


class DemoFact(BaseModel):
    """What a user says; ``ask`` is a later question and ``gold`` its answer. Small talk has neither."""

    say: str
    ask: str | None = None
    gold: str | None = None


class DemoQuestion(BaseModel):
    """A question and the words that its answer must hold. ``group`` is the title of its table."""

    id: str
    question: str
    answer: str
    group: str = ""
    hops: int


class DemoReading(BaseModel):
    """``questions.json``. ``short`` names the questions of the short demo; none: all.

    ``rereads``: the questions of two hops are asked with memreread too.
    """

    document: str
    source: str
    facts: tuple[DemoFact, ...]
    questions: tuple[DemoQuestion, ...]
    short: tuple[str, ...] = ()
    rereads: bool = False

    def asked(self, *, full: bool) -> tuple[tuple[str, Strategy, tuple[DemoQuestion, ...]], ...]:
        """Return title, strategy and questions of each table."""
        chosen = [asked for asked in self.questions if full or not self.short or asked.id in self.short]
        titles = dict.fromkeys(asked.group for asked in chosen)
        plain = [(title, tuple(asked for asked in chosen if asked.group == title)) for title in titles]
        again = [(title, tuple(asked for asked in held if full or asked.hops > 1)) for title, held in plain]
        return (
            *((title, "memagent", held) for title, held in plain),
            *((title, "memreread", held) for title, held in again if held and self.rereads),
        )


def load_reading(folder: Path) -> tuple[DemoReading, str]:
    """Load the questions and the document's text. Raises BadInput."""
    file = folder / "questions.json"
    if not file.is_file():
        raise BadInput(f"there is no {file}: run this in the repository, or name its folder with --examples")
    try:
        reading = DemoReading.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise BadInput(f"{file} is not a list of questions: {error.errors()[0]['msg']}") from error
    return reading, document_text(folder / reading.document)
