"""Reading whole documents: what a right reader, a forgetful one and a blind one score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from trainer.small.documents import read_documents
from trainer.small.novels import prose
from trainer.small.sample import PROFILE, Sample

TOKENIZER = Path("services/inference/models/memloop-tiny/tokenizer.json")
FILLER = set(prose("held_out"))


def planted_in(sample: Sample) -> list[str]:
    """Return the sentences of the memory and of the section that no author wrote."""
    shown = sample.messages[-1].text()
    memory = shown.partition("<memory>")[2].partition("</memory>")[0].strip()
    section = shown.partition("<section>")[2].partition("</section>")[0].strip()
    for text in sorted(FILLER, key=len, reverse=True):
        section = section.replace(text, "\n")
    held = [] if memory == PROFILE.empty_memory else memory.splitlines()
    return [*held, *(line.strip() for line in section.splitlines() if line.strip())]


def keeping(sample: Sample) -> str:
    return "\n".join(planted_in(sample))


def read_with(reply: Callable[[Sample], str]) -> dict[str, object]:
    def answers(samples: Sequence[Sample]) -> list[str]:
        return [reply(sample) if sample.task == "read" else "\\boxed{nothing at all}" for sample in samples]

    return read_documents(answers, TOKENIZER, lengths=(2_000,), count=4)


def test_a_reader_that_keeps_what_it_needs_is_wrong_only_in_its_answer() -> None:
    found = read_with(keeping)
    assert found["ends"] == {"answered wrongly": 4}
    assert found["sentences lost"] == 0


def test_a_reader_that_keeps_nothing_never_kept() -> None:
    assert read_with(lambda _: "")["ends"] == {"never kept": 4}


def test_documents_of_trained_and_unseen_kinds_are_counted_apart() -> None:
    groups = [name for name in read_with(keeping) if "hop" in name]
    assert sorted(groups) == [
        f"1k, {hops}, {kinds} kinds" for hops in ("1 hop", "2 hops") for kinds in ("trained", "unseen")
    ]


def test_each_part_reads_authors_of_its_own() -> None:
    trained = set(prose("train"))
    assert not [text for text in prose("held_out") if len(text) > 40 and text in trained]
