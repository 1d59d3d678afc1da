"""Files of LoCoMo, LongMemEval and HaluMem: what is written is read the same, what is wrong is refused by line."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.dialogue_files import write
from tests.fakes.synthetic_conversations import synthetic, write_synthetic
from trainer.data.dialogues.dialogue import Conversation, Point, Question, Session, Turn
from trainer.data.dialogues.formats import Format, conversations
from trainer.data.json_rows import DataError

FORMATS: tuple[Format, ...] = get_args(Format)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
MOMENT = st.datetimes(datetime(1000, 1, 1), datetime(2999, 1, 1)).map(  # noqa: DTZ001 - made aware at once
    lambda moment: moment.replace(second=0, microsecond=0, tzinfo=UTC)
)
CATEGORY = {
    "locomo": st.sampled_from(["multi-hop", "temporal", "open-domain", "single-hop"]),
    "longmemeval": TEXT,
    "halumem": TEXT,
}


@st.composite
def talks(draw: st.DrawFn, format_: Format) -> Conversation:
    """Any conversation, with ids as the format's loader gives them."""
    moments = sorted(draw(st.lists(MOMENT, min_size=1, max_size=4)))
    sessions = tuple(draw(_sessions(place, moment, format_)) for place, moment in enumerate(moments))
    ids = [turn.id for session in sessions for turn in session.turns]
    questions: list[Question] = []
    for number in range(draw(st.integers(1, 3)) if format_ != "longmemeval" else 1):
        over = len(sessions) if format_ != "halumem" else draw(st.integers(1, len(sessions)))
        names = {"locomo": f"q{number}", "longmemeval": "the-one"}
        evidence = draw(st.lists(st.sampled_from(ids), unique=True, max_size=3)) if format_ != "halumem" else []
        questions.append(
            Question(
                names.get(format_, ""),
                draw(TEXT),
                draw(TEXT),
                (draw(CATEGORY[format_]),),
                over,
                tuple(sorted(evidence, key=ids.index)),
                draw(MOMENT) if format_ == "longmemeval" else None,
            )
        )
    return Conversation("the-one", sessions, _in_order(questions, format_))


@st.composite
def _sessions(draw: st.DrawFn, place: int, moment: datetime, format_: Format) -> Session:
    texts = draw(st.lists(TEXT, min_size=1, max_size=4))
    locomo = format_ == "locomo"
    turns = tuple(
        Turn(f"D{place + 1}:{n + 1}" if locomo else f"{place}:{n}", draw(TEXT), text, moment)
        for n, text in enumerate(texts)
    )
    points = st.builds(
        Point,
        TEXT,
        TEXT,
        st.floats(0, 1),
        st.booleans(),
        st.lists(TEXT, max_size=2).map(tuple),
        st.sampled_from(["persona", "event", "relationship", ""]),
        st.booleans(),
    )
    kept = draw(st.lists(points, max_size=2)) if format_ == "halumem" else []
    return Session(str(place + 1) if locomo else str(place), moment, turns, tuple(kept))


def _in_order(questions: list[Question], format_: Format) -> tuple[Question, ...]:
    if format_ != "halumem":
        return tuple(questions)
    ordered: list[Question] = []
    for over in range(1, 5):
        due = [each for each in questions if each.after_sessions == over]
        ordered += [
            Question(f"{over - 1}.{n}", each.text, each.answer, each.categories, over) for n, each in enumerate(due)
        ]
    return tuple(ordered)


@pytest.mark.parametrize("format_", FORMATS)
def test_what_is_written_is_read_the_same(format_: Format, tmp_path: Path) -> None:
    path = tmp_path / "data"

    @settings(max_examples=60, deadline=None)
    @given(talks(format_))
    def holds(talk: Conversation) -> None:
        write([talk], path, format_)
        assert list(conversations(path, format_)) == [talk]

    holds()


@pytest.mark.parametrize("format_", FORMATS)
def test_the_made_up_set_is_read_as_it_was_made(format_: Format, tmp_path: Path) -> None:
    write_synthetic(tmp_path / "data", format_, seed=3)
    read = list(conversations(tmp_path / "data", format_))
    made = synthetic(format_, seed=3)
    assert [question for talk in read for question in talk.questions] == list(made.questions)
    assert all(talk.sessions == made.sessions for talk in read)
    assert all(question.answer for question in made.questions)


def _broken(**changes: object) -> dict[str, Any]:
    said = {"speaker": "A", "dia_id": "D1:1", "text": "Hello."}
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [said]}
    asked = {"question": "?", "answer": 7, "evidence": ["D1:1; D9:9"], "category": 4}
    return {"sample_id": "one", "conversation": talk, "qa": [asked, asked | {"category": 5}], **changes}


def _file(folder: Path, *rows: object) -> Path:
    path = folder / "data.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    return path


def test_adversarial_questions_and_unknown_evidence_are_left_out(tmp_path: Path) -> None:
    (talk,) = conversations(_file(tmp_path, _broken()), "locomo")
    (question,) = talk.questions
    assert (question.answer, question.evidence) == ("7", ("D1:1",))
    assert talk.sessions[0].began_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"qa": [{"question": "?"}]}, r"line 2: qa\.0\.category: Field required"),
        ({"conversation": {"session_1": []}}, "line 2: session_1 has no session_1_date_time"),
        ({"conversation": {}}, "line 2: no session"),
        ({"sample_id": "one"}, "line 2: one comes twice"),
    ],
)
def test_errors_name_their_line(changes: dict[str, object], told: str, tmp_path: Path) -> None:
    path = _file(tmp_path, _broken(), {**_broken(sample_id="two"), **changes})
    with pytest.raises(DataError, match=told):
        list(conversations(path, "locomo"))


def test_sessions_come_by_date_and_unanswerable_questions_have_no_evidence(tmp_path: Path) -> None:
    entry = {
        "question_id": "x_abs",
        "question": "?",
        "question_type": "t",
        "question_date": "2023/05/30 (Tue) 10:00",
        "answer": "It was never told.",
        "answer_session_ids": ["late"],
        "haystack_sessions": [[{"role": "user", "content": "b"}], [{"role": "user", "content": "a"}]],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/19 (Fri) 02:21"],
        "haystack_session_ids": ["late", "early"],
    }
    (talk,) = conversations(_file(tmp_path, entry), "longmemeval")
    assert [turn.text for turn in talk.turns] == ["a", "b"]
    assert (talk.questions[0].categories, talk.questions[0].evidence) == (("t", "abstention"), ())


def test_points_that_must_not_be_remembered_are_named_so(tmp_path: Path) -> None:
    point = {"index": 1, "memory_content": "m", "memory_source": "interference"}
    said = {"role": "user", "content": "x", "timestamp": "Sep 04, 2025, 18:42:17"}
    kept = {**point, "index": 2, "memory_source": "primary", "is_update": "True", "importance": 0.8}
    user = {"uuid": "u", "sessions": [{"dialogue": [said], "memory_points": [point, kept]}]}
    (talk,) = conversations(_file(tmp_path, user), "halumem")
    assert talk.sessions[0].points == (Point("1", "m", interferes=True), Point("2", "m", 0.8, is_update=True))
