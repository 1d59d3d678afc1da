"""``memloop-evaluate published``: tables as they were published, on scripted engines and made-up checkouts."""

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from evaluation.published.command import main
from evaluation.published.figures import published_tables
from evaluation.published.serving import Served, while_served
from memloop.wire.chat import Json
from tests.evaluation.ruler_rig import DATA, HQA_FILE
from tests.fakes import engine_process
from tests.fakes.harbour_engine import HarbourEngine, prompt_of
from tests.fakes.job_engine import Body, engine_server, last_text
from tests.fakes.published_sources import PLAIN_ENDING, write_memagent, write_memreread
from trainer.data.json_rows import DataError


def _of_size(documents: int, folder: Path) -> Path:
    """The made-up items, as if each had so many documents."""
    rows: list[Json] = [json.loads(line) for line in HQA_FILE.read_text().splitlines()]
    path = folder / "eval.jsonl"
    path.write_text("\n".join(json.dumps({**row, "num_docs": documents, "index": n}) for n, row in enumerate(rows)))
    return path


async def _published(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, dict[str, Any]]:
    """The table and the last line of a run, which has an event loop of its own."""
    await asyncio.to_thread(main, arguments)
    printed = capsys.readouterr().out
    return printed, json.loads(printed.splitlines()[-1])


async def test_memagents_table_stands_beside_ours_with_intervals_and_every_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout, data = write_memagent(tmp_path / "checkout"), _of_size(50, tmp_path)
    async with HarbourEngine().running() as engine:
        where = ["--checkout", str(checkout), "--engine-url", engine.url, "--model", "RL-MemoryAgent-14B"]
        printed, found = await _published(
            capsys, "memagent", *where, "--data", str(data), "--out", str(tmp_path / "out")
        )
    assert "| hqa | 50 (7K) | 83.59 [76.2, 89.0] | 80.47 [72.8, 86.4] | 100.00 [100.0, 100.0] | 6 | 0 |" in printed, (
        printed
    )
    assert (tmp_path / "out" / "published.md").read_text() in printed
    assert any(PLAIN_ENDING in prompt_of(body) for body in engine.bodies)
    assert found["models"][0]["calls"] == len(engine.bodies)
    differences = found["models"][0]["differences"]
    assert differences["items"] == "hqa 50: 6 of 128"
    assert differences["failed reads"].startswith("a read that failed counts as wrong")
    assert "by an estimate" in differences["chunks"]
    assert "model" not in differences


async def test_slimes_table_has_the_best_of_five_runs_and_their_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout, data = write_memagent(tmp_path / "checkout"), _of_size(200, tmp_path)
    async with HarbourEngine().running() as engine:
        where = ["--checkout", str(checkout), "--engine-url", engine.url, "--model", "mine", "--limit", "1"]
        printed, found = await _published(
            capsys, "memagent-slime", *where, "--data", str(data), "--out", str(tmp_path / "out")
        )
    answers = [body for body in engine.bodies if "<section>" not in prompt_of(body)]
    assert all("give the answer in \\boxed{}" in prompt_of(body) for body in answers)
    assert len(answers) == found["models"][0]["cells"][0]["items"] * 5
    assert not any("seed" in body for body in engine.bodies)
    assert all(body["max_tokens"] == 256 for body in answers)
    assert "| 75.78 | 74.22 [66.0, 81.0] | 100.00 [100.0, 100.0] | 100.00 | 1 | 0 |" in printed
    assert "runs" not in found["models"][0]["differences"]
    assert found["models"][0]["differences"]["model"].startswith("mine is not in the published table")


async def test_memrereads_questions_end_as_its_checkout_says_and_a_users_figures_stand_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(body: Body) -> str:
        text = last_text(body)
        if "<query_history>" in text:
            return ""
        return "noted" if "<section>" in text else r"\boxed{Ada}"

    row = {"context": "Ada keeps it.", "input": "Who keeps it?", "answers": ["Ada"], "target_length": 8192, "index": 0}
    data, figures = tmp_path / "2wiki.json", tmp_path / "figures.toml"
    data.write_text(json.dumps([row]))
    figures.write_text(
        '[memreread]\nsource = "mine"\nitems = 128\n[[memreread.rows]]\nname = "theirs"\nmodels = ["MemReread-4B"]\n'
        'figures."2wiki" = { 8192 = 71.5 }\n'
    )
    checkout = write_memreread(tmp_path / "checkout")
    async with engine_server(answer) as engine:
        where = ["--checkout", str(checkout), "--engine-url", engine.url, "--model", "owner/MemReread-4B"]
        printed, _ = await _published(
            capsys,
            "memreread",
            *where,
            "--data",
            str(data),
            "--figures",
            str(figures),
            "--out",
            str(tmp_path / "out"),
        )
    assert all("Who keeps it? In few words." in last_text(body) for body in engine.calls)
    assert "| 2wiki | 8192 | 71.50 [63.1, 78.6] | 100.00 [100.0, 100.0] | 1 | 0 |" in printed


async def test_a_baseline_reads_in_one_prompt_beside_its_own_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout, data = write_memagent(tmp_path / "checkout"), _of_size(50, tmp_path)
    async with engine_server(lambda _: "Therefore, the answer is (none)") as engine:
        where = ["--checkout", str(checkout), "--engine-url", engine.url, "--model", "Qwen2.5-7B-Instruct"]
        direct = ["--reader", "direct", "--data", str(data), "--out", str(tmp_path / "out")]
        printed, found = await _published(capsys, "memagent", *where, *direct)
    assert {body["max_tokens"] for body in engine.calls} == {10_000}
    assert "| hqa | 50 (7K) | 52.34 [43.7, 60.8] | 0.00 [0.0, 0.0] | 6 | 0 |" in printed
    assert found["models"][0]["reader"] == "direct"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["memagent", "--engine-url", "http://127.0.0.1:9/v1"], "--engine-url needs --model"),
        (["memagent", "--model", "m"], "give --engine-url URL, or URL and API_KEY in the environment"),
        (["memreread", "--engine-url", "u", "--model", "m", "--reader", "direct"], "baselines of MemAgent's table"),
        (["memagent", "--engine-url", "u", "--model", "m"], "recurrent.py: expected this file"),
        (["memreread", "--engine-url", "u", "--model", "m"], "eval_2wikimultihopqa_memreread.py: expected this file"),
    ],
    ids=["no model", "no engine", "no baseline", "no checkout", "no suffix"],
)
def test_what_cannot_be_made_is_refused_before_a_call(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    reason: str,
) -> None:
    monkeypatch.delenv("URL", raising=False)
    (tmp_path / "checkout").mkdir()
    more = ["--checkout", str(tmp_path / "checkout"), "--data", str(DATA / "hqa.jsonl"), "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as left:
        main([*arguments, *more])
    assert left.value.code == 2
    assert reason in capsys.readouterr().err


def test_a_file_of_figures_of_another_form_is_named(tmp_path: Path) -> None:
    file = tmp_path / "figures.toml"
    file.write_text('[memreread]\nsource = "mine"\nitems = "many"\n')
    with pytest.raises(DataError, match=r"figures\.toml"):
        published_tables(file)


def test_every_published_row_has_a_model_and_shares_below_a_hundred() -> None:
    for name, table in published_tables().items():
        for row in table.rows:
            assert row.models, (name, row.name)
            shares = [value for cells in row.figures.values() for cell, value in cells.items() if "tokens" not in cell]
            assert all(0 <= share <= 100 for share in shares), (name, row.name)
            assert table.rows_of(f"owner/{row.models[0]}", row.reader)


def test_a_model_is_served_as_long_as_its_table_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_ENGINE_PIDS", str(tmp_path / "pids"))
    for name, value in (("SERVE_PYTHON", engine_process.__file__), ("ENGINE", "vllm-cpu")):
        monkeypatch.setenv(f"MEMLOOP_{name}", value)

    def asked(served: Served) -> tuple[Served, bytes]:
        with urllib.request.urlopen(f"{served.url}/models", timeout=30) as answer:
            return served, answer.read()

    served, listed = while_served("memloop-tiny", tmp_path, asked, profile="tiny")
    assert (served.model, served.window_tokens) == ("memloop-tiny", 2048)
    assert b"memloop-tiny" in listed
    assert json.loads(served.tokenizer_json)["model"]
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"{served.url}/models", timeout=30)
