"""Texts of similar length share a batch of the encoder."""

from collections.abc import Iterable, Sequence

from memory_store.embedding.graph import Rows, by_length


class Model:
    """Gives each text its length as its vector, and keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def forward(self, batches: Iterable[list[str]]) -> Sequence[Rows]:
        given = list(batches)
        self.batches += given
        return [[[float(len(text))] for text in texts] for texts in given]


def test_each_text_gets_its_own_vector_whatever_the_order() -> None:
    lengths = [900, 3, 40, 400, 41, 8, 900, 1]

    vectors = by_length(["x" * length for length in lengths], 3, Model().forward)

    assert vectors == [(float(length),) for length in lengths]


def test_a_long_text_does_not_pad_short_ones() -> None:
    model = Model()

    by_length(["x" * 1000, *["x" * 60] * 5, "x" * 1100], 32, model.forward)

    assert [[len(text) for text in batch] for batch in model.batches] == [[60] * 5, [1000, 1100]]


def test_very_short_texts_stay_together() -> None:
    model = Model()

    by_length(["", "x", "x" * 10, "x" * 30], 32, model.forward)

    assert len(model.batches) == 1


def test_a_batch_has_no_more_texts_than_it_may() -> None:
    model = Model()

    by_length(["x" * 50] * 70, 32, model.forward)

    assert [len(batch) for batch in model.batches] == [32, 32, 6]
    assert by_length([], 32, model.forward) == []


def test_several_threads_share_the_texts_of_a_batch() -> None:
    model = Model()

    by_length(["x" * 50] * 32, 32, model.forward, threads=2)

    assert [len(batch) for batch in model.batches] == [16, 16]
