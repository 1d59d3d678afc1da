"""How the turns of a write are cut to the model's window."""

from dataclasses import replace

from gateway.memory.rounds import Ruler, conversation_room
from memloop.chunking import EstimatingSplitter
from memloop.loops.rendering import conversation_lines
from memloop.profiles import load_profile
from memloop.wire.memory import Source

SPLITTER = EstimatingSplitter()
RULER = Ruler(SPLITTER)


def said(*texts: str) -> tuple[Source, ...]:
    return tuple(Source(role="user", content=text) for text in texts)


def test_turns_that_fit_stay_together() -> None:
    turns = said("one", "two", "three")
    assert RULER.batches(turns, most_tokens=1000) == [turns]


def test_no_turns_make_no_batch() -> None:
    assert RULER.batches((), most_tokens=10) == []


def test_turns_are_parted_in_order_and_every_batch_fits() -> None:
    turns = said(*(f"turn {number} " + "word " * 20 for number in range(10)))
    cut = RULER.batches(turns, most_tokens=150)
    assert len(cut) > 1
    assert [turn for batch in cut for turn in batch] == list(turns)
    assert all(SPLITTER.count(conversation_lines(batch)) <= 150 for batch in cut)


def test_a_turn_longer_than_a_batch_is_cut_and_joins_again() -> None:
    long = Source(role="assistant", content="word " * 500, message_id="m1")
    cut = RULER.batches((long,), most_tokens=100)
    pieces = [turn for batch in cut for turn in batch]
    assert "".join(piece.content for piece in pieces) == long.content
    assert {(piece.role, piece.message_id) for piece in pieces} == {("assistant", "m1")}
    assert all(SPLITTER.count(conversation_lines(batch)) <= 100 for batch in cut)


def test_tags_are_counted_as_the_prompt_shows_them() -> None:
    cut = RULER.batches(said("<think>" * 100), most_tokens=200)
    assert all(SPLITTER.count(conversation_lines(batch)) <= 200 for batch in cut)


def test_a_buffer_keeps_its_newest_turns() -> None:
    turns = said(*(f"turn {number}" for number in range(300)))
    assert RULER.newest_within(turns, most_tokens=10**6) == turns[-100:]
    few = RULER.newest_within(turns, most_tokens=30)
    assert few == turns[-len(few) :]
    assert 0 < len(few) < 10


def test_the_room_is_what_prompt_tools_and_replies_leave_of_the_window() -> None:
    profile = load_profile("default")
    room = conversation_room(profile, SPLITTER)
    longer = replace(profile, budget=replace(profile.budget, window_tokens=2 * profile.budget.window_tokens))
    assert 0 < room < profile.budget.window_tokens - 2 * profile.prompts["memory"].sampling.max_tokens
    assert conversation_room(longer, SPLITTER) > room + profile.budget.window_tokens // 2


def test_a_small_window_leaves_a_quarter_for_the_turns() -> None:
    assert conversation_room(load_profile("tiny"), SPLITTER) == 1024 // 4
