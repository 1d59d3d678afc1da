"""``--protocol memos``: the memory evaluation as MemOS's public scripts do it, and MemReader's published table."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.memory import command
from evaluation.memory.memos import label_of, set_f1, texts_of
from evaluation.memory.options import parsed
from evaluation.published import command as published
from evaluation.published.figures import published_tables
from evaluation.published.memory import Model, Tables, outcome_of, profile_of
from evaluation.published.report import markdown
from inference.profile_import.sources import ImportRefused
from memloop.profiles import load_profile
from tests.fakes.embedder import HashingEncoder
from tests.fakes.examined_engine import by_words, examined
from tests.fakes.job_engine import Body, engine_server
from tests.fakes.published_sources import MEMOS_GRADER, write_card, write_memos
from tests.fakes.synthetic_conversations import synthetic, write_synthetic
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.whole import whole
from trainer.data.dialogues.formats import Format, conversations

SESSIONS = 2
_ASKED = re.compile(r"Question: (.+)")


def _words(text: str) -> int:
    return len(text.split())


def _examined(format_: Format) -> Any:
    """An engine that writes all turns, answers MemOS's question by its reference, and grades two of three right."""
    talk = synthetic(format_, sessions=SESSIONS)
    answers = {question.text: question.answer for question in talk.questions}
    ours = examined(talk)

    def answer(body: Body) -> Any:
        first, last = str(body["messages"][0]["content"]), str(body["messages"][-1]["content"])
        if first.strip() == "You grade.":
            return json.dumps({"label": "WRONG" if body["seed"] % 3 == 2 else "CORRECT"})
        found = _ASKED.search(last)
        return answers[found[1]] if len(body["messages"]) == 1 and found else ours(body)

    return answer


def _arguments(folder: Path, format_: Format, engine: str, *more: str) -> list[str]:
    write_synthetic(folder / "data", format_, sessions=SESSIONS)
    where = ["--format", format_, "--data", str(folder / "data"), "--out", str(folder / "out"), "--engine-url", engine]
    memos = ["--protocol", "memos", "--memos-checkout", str(write_memos(folder / "MemOS"))]
    return [*where, "--model", "m", "--pause-s", "0", "--attempts", "1", *memos, *more]


async def _evaluated(arguments: list[str]) -> dict[str, Any]:
    options = parsed(arguments)
    told = await asyncio.to_thread(command.evaluate, options, load=HashingEncoder, count=lambda: _words)
    return json.loads(told.splitlines()[-1])


async def test_locomo_is_written_from_both_sides_judged_three_times_and_counted_as_memos_counts(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", ALICE_KEY)
    (talk,) = [synthetic("locomo", sessions=SESSIONS)]
    async with whole(redis_url, tmp_path / "edge", _examined("locomo")) as it:
        here = ["--gateway-url", it.gateway.url, "--gateway-key-variable", "GATEWAY_KEY", "--writer", "m"]
        found = await _evaluated(_arguments(tmp_path, "locomo", it.engine.url, *here, "--limit", "1"))
        calls = it.engine.calls
    row = found["rows"]["ours"]
    assert list(found["rows"]) == ["ours"]
    assert (found["protocol"], found["top_k"]) == ("memos", 20)
    assert row["accuracy"]["share"] == pytest.approx(2 / 3)
    assert row["set_f1"] == 1.0
    assert row["context_tokens"] > 20
    asked = [body for body in calls if len(body["messages"]) == 1 and "Say it shortly." in str(body["messages"][0])]
    speakers = list(dict.fromkeys(turn.speaker for turn in talk.turns))
    assert len(asked) == len(talk.questions)
    assert all(f"Of {name}:" in asked[0]["messages"][0]["content"] for name in speakers)
    written = "\n".join(str(body["messages"][-1]["content"]) for body in calls if body.get("tools"))
    for name in speakers:
        assert re.search(rf"\[user\] \(.*\): {name}: ", written)
        assert re.search(rf"\[assistant\] \(.*\): {name}: ", written)
    card = (tmp_path / "out" / "scorecard.md").read_text()
    assert "| row | F1 of word sets (memos), % | F1 (ours), % | context tokens by cl100k (memos)" in card


async def test_halumems_details_are_those_of_its_code(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", ALICE_KEY)
    seen: list[Mapping[str, Any]] = []

    def judge(data: Mapping[str, Any]) -> str:
        seen.append(data)
        return by_words(data)

    arguments = _arguments(tmp_path, "halumem", "")
    rows = [json.loads(line) for line in (tmp_path / "data").read_text().splitlines()]
    for session in rows[0]["sessions"]:
        for question in session["questions"]:
            question["evidence"] = [{"memory_content": "the evidence"}]
    (tmp_path / "data").write_text("\n".join(map(json.dumps, rows)))
    oracle = examined(synthetic("halumem", sessions=SESSIONS), judge=judge)
    async with whole(redis_url, tmp_path / "edge", oracle) as it:
        arguments[arguments.index("--engine-url") + 1] = it.engine.url
        here = ["--gateway-url", it.gateway.url, "--gateway-key-variable", "GATEWAY_KEY", "--writer", "m"]
        found = await _evaluated([*arguments, *here])
    points = [point for session in rows[0]["sessions"] for point in session["memory_points"]]
    assert found["points"]["updates"] == 0, "none of the made-up updates replaces anything"
    assert found["points"]["points"] == sum(point["memory_source"] != "interference" for point in points)
    assert {tuple(data["evidence"]) for data in seen if "answer" in data} == {("the evidence",)}


def test_a_session_that_is_only_there_to_be_remembered_is_not_judged(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "data", "halumem", sessions=SESSIONS)
    row = json.loads((tmp_path / "data").read_text())
    row["sessions"][0]["is_generated_qa_session"] = True
    (tmp_path / "data").write_text(json.dumps(row))
    (talk,) = conversations(tmp_path / "data", "halumem")
    assert talk.sessions[0].turns
    assert not talk.sessions[0].points
    assert all(question.after_sessions > 1 for question in talk.questions)


def test_captions_of_pictures_are_left_out(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "data", "locomo", sessions=1)
    rows = json.loads((tmp_path / "data").read_text())
    rows[0]["conversation"]["session_1"][0]["blip_caption"] = "a boat"
    (tmp_path / "data").write_text(json.dumps(rows))
    ((_, shown), (_, bare)) = [
        (talk.id, next(talk.turns).text)
        for captions in (True, False)
        for talk in conversations(tmp_path / "data", "locomo", captions=captions)
    ]
    assert shown == f"{bare} [picture: a boat]"


def test_the_texts_are_the_checkouts_own(tmp_path: Path) -> None:
    texts = texts_of(write_memos(tmp_path), "locomo")
    assert texts is not None
    assert texts.judge_system == "\n        You grade.\n        "
    assert texts.judge.format(question="{q}", gold_answer="g", response="{r}") == (
        "\n    Question: {q}\n    Gold answer: g\n    Generated answer: {r}\n"
        '    Reply as {"label": "CORRECT or WRONG"}.\n    '
    )
    assert texts_of(tmp_path, "halumem") is None


@pytest.mark.parametrize(
    ("grader", "reason"),
    [
        (MEMOS_GRADER.replace("accuracy_prompt", "prompt"), "expected one text accuracy_prompt; found 0"),
        (MEMOS_GRADER.replace("{response}", "{response[0]}"), "expected the slots question, gold_answer, response"),
        ("def (", "expected Python"),
    ],
)
def test_a_checkout_of_another_shape_is_refused(tmp_path: Path, grader: str, reason: str) -> None:
    with pytest.raises(ImportRefused, match=re.escape(reason)):
        texts_of(write_memos(tmp_path, grader), "locomo")


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('It fits. {"label": "CORRECT"}', "correct"),
        ("{'label' : 'wrong'}", None),
        ("{ \"label\": 'WRONG' }", "wrong"),
        ("CORRECT", None),
    ],
)
def test_a_label_is_read_as_memos_reads_it(reply: str, verdict: str | None) -> None:
    assert label_of(reply) == verdict


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_f1_of_sets_is_symmetric_and_whole_only_for_equal_sets(one: str, other: str) -> None:
    assert set_f1(one, other) == set_f1(other, one)
    assert 0.0 <= set_f1(one, other) <= 1.0
    assert set_f1(one, one) == float(bool(one.strip()))


def test_words_that_come_twice_count_once_and_articles_count() -> None:
    assert set_f1("the the sea", "the sea") == 1.0
    assert set_f1("the sea", "sea") == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--rows", "off"], "is for the row ours"),
        (["--writer-url", "http://127.0.0.1:9/v1"], "--writer-url needs --writer NAME"),
    ],
)
def test_options_that_do_not_fit_the_protocol_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main([*_arguments(tmp_path, "locomo", "http://127.0.0.1:9/v1"), *more])
    assert left.value.code == 2
    assert reason in capsys.readouterr().err


async def test_memreaders_table_is_made_with_the_writer_behind_a_stack_of_its_own(tmp_path: Path) -> None:
    write_synthetic(tmp_path / "data", "locomo", sessions=SESSIONS)
    table = published_tables()["memreader"]
    async with engine_server(_examined("locomo")) as writer, engine_server(_examined("locomo")) as others:
        answers = Model(others.url, "gpt-4o-mini")
        tables = Tables({"locomo": tmp_path / "data"}, answers, answers, "default", write_memos(tmp_path / "MemOS"))
        outcome = await asyncio.to_thread(
            outcome_of,
            Model(writer.url, "MemReader-4B-thinking"),
            tables,
            tmp_path / "out",
            table,
            count=lambda: _words,
        )
    assert all(body.get("tools") or "New memory" in str(body) for body in writer.calls)
    assert not any(body.get("tools") for body in others.calls)
    assert outcome.calls == len(writer.calls) + len(others.calls)
    text = markdown("memreader", table, [outcome])
    assert "| locomo | overall | 81.42 [79.4, 83.3] | 66.67 [" in text
    assert "| locomo | context tokens | 1950.00 |" in text
    assert "models" not in outcome.differences
    assert outcome.differences["items"].startswith("locomo ")


def test_the_writers_prompts_are_read_from_the_card_once(tmp_path: Path) -> None:
    snapshot = write_card(tmp_path / "snapshot")
    folder = profile_of(snapshot, tmp_path / "out")
    assert load_profile(folder).prompts["memory"].tools
    assert profile_of(snapshot, tmp_path / "out") == folder
    (snapshot / "README.md").write_text("# No card\n")
    with pytest.raises(ImportRefused):
        profile_of(snapshot, tmp_path / "out")


def test_memreaders_data_is_named_by_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    who = ["--engine-url", "u", "--model", "m", "--answers-url", "u", "--answers-model", "m", "--profile", "default"]
    with pytest.raises(SystemExit) as left:
        published.main(["memreader", *who, "--data", "locomo.json", "--out", str(tmp_path)])
    assert left.value.code == 2
    assert "as locomo=FILE" in capsys.readouterr().err
