"""Questions about what novels tell: sentences of the novel answer each, and a section that tells it holds them."""

from random import Random

import pytest

from trainer.small.kinds import English, Part
from trainer.small.novels import asked, prose
from trainer.small.reading import draw_reading_of_novel
from trainer.small.sample import PROFILE

TRAINED = English("train", kinds_of=("train", "reward"))


@pytest.mark.parametrize(("part", "least"), [("train", 300), ("held_out", 50)])
def test_a_quote_stands_in_the_novel_and_holds_the_answer(part: Part, least: int) -> None:
    sentences = prose(part)
    assert len(asked(part)) >= least
    assert len({each.quote for each in asked(part)}) == len(asked(part))
    for each in asked(part):
        assert each.quote == " ".join(sentences[place] for place in each.places)
        assert each.answer in each.quote


def test_a_title_does_not_end_a_sentence() -> None:
    assert not [text for text in prose("train") if text.endswith((" Mr.", " Mrs.", " Dr."))]


def test_what_a_section_tells_is_kept_word_for_word() -> None:
    rng = Random(1)
    for _ in range(60):
        first, *others = draw_reading_of_novel(TRAINED, rng, words=160, questions=5)[:5]
        section = first.messages[-1].text()
        assert first.sort == "keeps in novels"
        for turn in (first, *others):
            before = turn.messages[-1].text().partition("<memory>\n")[2].partition("\n</memory>")[0]
            told = turn.reply.removeprefix(before).strip() if before != PROFILE.empty_memory else turn.reply
            assert turn.sort.startswith("leaves") or all(line in section for line in turn.golds)
            assert turn.sort.startswith("keeps") or not told or told == PROFILE.empty_memory


def test_a_section_at_the_end_of_the_prose_is_shorter() -> None:
    held_out = English("held_out", words_held_out=True)
    assert asked("held_out")[-1].places.stop > len(prose("held_out")) - 40
    for seed in range(60):
        assert draw_reading_of_novel(held_out, Random(seed), words=700)
