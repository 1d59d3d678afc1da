import pytest

from memloop.loops.journal import max_calls, memreread_calls
from memloop.wire.long_read import LongReadRequest


@pytest.mark.parametrize(("rereads", "calls"), [(0, 10 + 1 + 1), (1, 20 + 2 + 3), (2, 30 + 2 + 5)])
def test_memreread_follows_the_papers_formula(rereads: int, calls: int) -> None:
    assert memreread_calls(10, rereads=rereads, max_rereads=2) == calls


def dearest(chunks: int, **fields: object) -> int:
    """The most calls; two memories fit a chunk."""
    request = LongReadRequest.model_validate({"model": "m", "document": {"text": "t"}, "question": "q", **fields})
    return max_calls(request, chunks, memories_in_a_chunk=2)


def test_the_estimate_is_the_dearest_read() -> None:
    assert dearest(10) == 11
    assert dearest(10, strategy="memreread") == max(
        memreread_calls(10, rereads=used, max_rereads=2) for used in range(3)
    )


@pytest.mark.parametrize(
    ("fields", "calls"),
    [
        ({"question": None, "questions": ["a", "b", "c"]}, 33),
        ({"options": {"parallel": {"segments": 8}}}, 10 + 4 + 1),
        ({"options": {"parallel": {"segments": 64}}}, 10 + 5 + 1),
        ({"options": {"gated": {}}}, 21),
        ({"options": {"gated": {"skip": True}}}, 11),
    ],
)
def test_options_and_questions_count(fields: dict[str, object], calls: int) -> None:
    assert dearest(10, **fields) == calls
