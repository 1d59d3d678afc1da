"""The demo's document and the questions about it."""

from pathlib import Path

from pydantic import BaseModel, ValidationError

from memloop_cli.errors import BadInput
from memloop_cli.reading.sources import document_text


class DemoQuestion(BaseModel):
    """A question, its gold answer and the number of facts that it needs."""

    id: str
    question: str
    answer: str
    hops: int


class DemoReading(BaseModel):
    """``questions.json``; ``tokens`` is the document's length in the tiny model's tokens."""

    document: str
    tokens: int
    source: str
    questions: tuple[DemoQuestion, ...]

    def with_hops(self, hops: int) -> tuple[DemoQuestion, ...]:
        """Return the questions that need this many facts."""
        return tuple(question for question in self.questions if question.hops == hops)

    def some(self, one_hop: int, two_hop: int) -> "DemoReading":
        """Return the reading with the first questions of each kind."""
        kept = (*self.with_hops(1)[:one_hop], *self.with_hops(2)[:two_hop])
        return self.model_copy(update={"questions": kept})


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
