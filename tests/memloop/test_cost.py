import pytest

from memloop.loops.cost import max_calls, memagent_calls, memreread_calls


def test_memagent_costs_one_call_per_chunk_and_the_answer() -> None:
    assert memagent_calls(7) == 8


@pytest.mark.parametrize(("rereads", "calls"), [(0, 10 + 1 + 1), (1, 20 + 2 + 3), (2, 30 + 2 + 5)])
def test_memreread_follows_the_papers_formula(rereads: int, calls: int) -> None:
    assert memreread_calls(10, rereads=rereads, max_rereads=2) == calls


def test_the_estimate_is_the_dearest_read() -> None:
    assert max_calls("memagent", 10, max_rereads=2) == 11
    assert max_calls("memreread", 10, max_rereads=2) == max(
        memreread_calls(10, rereads=used, max_rereads=2) for used in range(3)
    )
