"""The gate from its command line to its verdict, on served models without a model."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from huggingface_hub import EvalResult
from huggingface_hub.repocard_data import model_index_to_eval_results

from inference.registry import read_registry
from memloop.wire.errors import Forbidden, MemloopError, Unprocessable
from memloop.wire.long_read import LongReadRequest
from tests.trainer.gate_rig import (
    ROWS,
    rig,
    right,
    write_candidate,
    write_rows,
    wrong_below,
)
from trainer.gate.conformance import check_engine

Caught = pytest.CaptureFixture[str]


def on_hub(card: Path) -> tuple[dict[str, Any], list[EvalResult]]:
    """What the hub reads of a card."""
    told = cast(dict[str, Any], yaml.safe_load(card.read_text().split("---")[1]))
    return told, model_index_to_eval_results(told["model-index"])[1]


async def test_a_candidate_that_is_as_good_gets_a_row_that_inference_reads(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate() == 0
        registry = tmp_path / "models.toml"
        registry.write_text(capsys.readouterr().out)
        row = read_registry(registry)["tiny-new"]
    shipped = read_registry()["memloop-tiny"]
    assert row == shipped.model_copy(update={"source": str(tmp_path / "tiny-new")})


async def test_each_row_is_read_by_both_behind_productions_reads_and_nothing_stays(tmp_path: Path) -> None:
    async with rig(tmp_path) as it:
        await it.gate()
        for served in (it.candidate, it.incumbent):
            assert sorted(int(right(read)) for read in served.asked) == list(range(ROWS))
            assert {(read.background, read.service_tier) for read in served.asked} == {(True, "flex")}
            assert not served.held


async def test_a_worse_candidate_is_refused_with_the_reason_and_nothing_on_stdout(
    tmp_path: Path, capsys: Caught
) -> None:
    async with rig(tmp_path, answer=wrong_below(2)) as it:
        assert await it.gate() == 1
        assert not it.card.exists()
    out, told = capsys.readouterr()
    assert out == ""
    assert "refused: not shown that strict is not lower than the incumbent's by 0.2 or more" in told
    assert "the gain is -0.125" in told


async def test_a_gain_that_is_wanted_must_be_shown(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate("--require-gain") == 1
        assert "strict is higher than the incumbent's" in capsys.readouterr().err
        it.incumbent.answer = wrong_below(8)
        assert await it.gate("--require-gain", "--out", str(tmp_path / "again")) == 0


async def test_the_card_is_in_the_hubs_form_with_both_models_results(tmp_path: Path) -> None:
    async with rig(tmp_path) as it:
        it.incumbent.answer = wrong_below(4)
        await it.gate("--license", "cc0-1.0", "--base-model", "org/base", "--limit", "English alone.")
        told, results = on_hub(it.card)
        text = it.card.read_text()
    assert (told["license"], told["base_model"]) == ("cc0-1.0", "org/base")
    assert {result.metric_type: result.metric_value for result in results}["strict"] == 1.0
    assert "| strict | 1.000 | 0.806 to 1.000 | 0.750 |" in text
    assert "English alone." in text


async def test_a_card_keeps_what_another_loop_came_to(tmp_path: Path) -> None:
    async with rig(tmp_path) as it:
        await it.gate()
        await it.gate("--loop", "memreread", "--out", str(tmp_path / "reread"))
        _, results = on_hub(it.card)
    assert [result.task_name for result in results] == ["memagent"] * 4 + ["memreread"] * 4


OTHER = {"step": 40, "weights_sha256": "f" * 64}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"record": None}, "has no export.json: it is another checkpoint", id="no record"),
        pytest.param({"profile": "default"}, "the launcher serves the profile default@", id="profile"),
        pytest.param({"gateway_profile": "tiny@1:0"}, "the gateway asks with the profile tiny@1:0", id="gateway"),
        pytest.param({"tokenizer": b"{}"}, "the launcher serves another tokenizer.json", id="tokenizer"),
    ],
)
async def test_a_candidate_that_is_not_what_is_served_is_not_asked(
    tmp_path: Path, capsys: Caught, changes: dict[str, object], reason: str
) -> None:
    async with rig(tmp_path, **changes) as it:
        assert await it.gate() == 1
        assert it.candidate.asked == []
    out, told = capsys.readouterr()
    assert out == ""
    assert f"refused: {reason}" in told or reason in told


async def test_another_export_that_is_served_is_named(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert it.candidate.record is not None
        it.candidate.record = it.candidate.record.model_copy(update=OTHER)
        assert await it.gate() == 1
    assert (
        "the launcher serves another checkpoint: memloop-tiny, step 40, weights ffffffffffff" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("model.safetensors", "the weights differ from the exported ones"),
        ("tokenizer.json", "the tokenizer's files or the chat template differ from those of memloop-tiny"),
    ],
)
async def test_files_that_were_changed_are_refused_before_anybody_is_asked(
    tmp_path: Path, capsys: Caught, file: str, reason: str
) -> None:
    async with rig(tmp_path) as it:
        (tmp_path / "tiny-new" / file).write_bytes(b"changed")
        assert await it.gate() == 1
        assert it.incumbent.asked == []
    assert capsys.readouterr().err == f"refused: {reason}\n"


async def test_an_engine_that_fails_inferences_own_checks_is_refused(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate(check=check_engine) == 1
    assert "refused: the engine does not conform: FAILED a reply ends by itself" in capsys.readouterr().err


async def test_a_failed_read_counts_as_wrong_and_is_reported(tmp_path: Path) -> None:
    def answer(asked: LongReadRequest) -> str:
        if right(asked) == "3":
            raise ValueError
        if right(asked) == "4":
            raise Unprocessable("too long")
        return right(asked)

    async with rig(tmp_path, answer=answer) as it:
        assert await it.gate("--margin", "0.5") == 0
        assert "2 of the candidate's, 0 of the incumbent's" in it.card.read_text()
        assert not it.candidate.held


async def test_a_gateways_own_fault_is_tried_again_and_is_nobodys_wrong_answer(tmp_path: Path, capsys: Caught) -> None:
    faults = 0

    def answer(asked: LongReadRequest) -> str:
        nonlocal faults
        if right(asked) == "3":
            faults += 1
            raise MemloopError("Something broke.")
        return right(asked)

    async with rig(tmp_path, answer=answer) as it:
        assert await it.gate("--at-once", "1", "--attempts", "2") == 2
        told = capsys.readouterr().err
        kept = it.answers("candidate")
        it.candidate.answer, it.candidate.asked = right, []
        assert await it.gate() == 0
    assert faults == 2
    assert f"the gateway {it.candidate.url} answered 500: Something broke.\nNothing is lost: run the same" in told
    assert (len(kept), len(it.candidate.asked)) == (3, ROWS - 3)


async def test_a_key_without_the_scope_stops_the_run_and_a_better_one_goes_on(tmp_path: Path, capsys: Caught) -> None:
    def answer(asked: LongReadRequest) -> str:
        if len(it.candidate.asked) > 6:
            raise Forbidden("The key lacks the scope long-read.")
        return right(asked)

    async with rig(tmp_path, answer=answer) as it:
        assert await it.gate("--at-once", "1") == 2
        assert "answered 403: The key lacks the scope long-read." in capsys.readouterr().err
        kept = it.answers("candidate")
        it.candidate.answer, it.candidate.asked = right, []
        assert await it.gate() == 0
        assert (len(kept), len(it.candidate.asked)) == (6, ROWS - 6)


async def test_a_cut_journal_loses_its_last_row_alone(tmp_path: Path) -> None:
    async with rig(tmp_path) as it:
        await it.gate()
        journal = tmp_path / "out" / "candidate.jsonl"
        journal.write_bytes(journal.read_bytes()[:-9])
        it.candidate.asked = []
        assert await it.gate() == 0
        assert len(it.candidate.asked) == 1


async def test_an_incumbent_that_was_measured_need_not_be_there(tmp_path: Path) -> None:
    async with rig(tmp_path) as it:
        await it.gate()
        assert await it.gate("--incumbent-gateway", "http://127.0.0.1:1") == 0


async def test_answers_of_other_weights_are_not_mixed(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        await it.gate()
        it.candidate.record = write_candidate(tmp_path / "newer", b"newer")
        assert await it.gate("--candidate", str(tmp_path / "newer")) == 2
    assert "candidate.jsonl is of another run: weights differ; give another --out" in capsys.readouterr().err


async def test_the_candidate_is_not_taken_for_the_incumbent(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate("--incumbent-gateway", it.candidate.url) == 2
    assert "serve the incumbent until it is measured" in capsys.readouterr().err


async def test_an_outage_is_nobodys_wrong_answer(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate("--incumbent-gateway", "http://127.0.0.1:1") == 2
    told = capsys.readouterr().err
    assert "http://127.0.0.1:1 cannot be reached" in told
    assert "Nothing is lost: run the same command again to resume." in told


async def test_a_launcher_that_is_gone_is_named(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate("--inference", "http://127.0.0.1:1") == 2
    assert "http://127.0.0.1:1: the inference launcher cannot be reached" in capsys.readouterr().err


async def test_a_model_that_the_gateway_does_not_serve_is_named(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        it.incumbent.models = ("another",)
        assert await it.gate() == 2
    assert "serves no model memloop-tiny, only another" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--candidate", "."), "is not an export: it has no export.json"),
        (("--held-out", "missing.parquet"), "cannot be read as Parquet"),
        (("--score", "exact"), "memagent has no score exact, only strict, em, f1, sub_em"),
        (("--margin", "0.01"), "16 rows, and even equal models need 276"),
        (("--name", "Qwen3-4B"), "has a model Qwen3-4B already"),
        (("--name", "a b"), "a model cannot be named 'a b'"),
        (("--like", "nobody"), "has no model nobody: name one with --like"),
        (("--gateway", "localhost:7800"), "'localhost:7800' is not an http URL"),
        (("--registry", "README.md"), "README.md is not a model registry"),
        (("--loop", "memreader"), "holds no row for memreader"),
    ],
)
async def test_wrong_options_are_reported_before_any_request(
    tmp_path: Path, capsys: Caught, more: tuple[str, ...], reason: str
) -> None:
    async with rig(tmp_path) as it:
        assert await it.gate(*more) == 2
        assert it.incumbent.asked == it.candidate.asked == []
    out, told = capsys.readouterr()
    assert out == ""
    assert reason in told


async def test_rows_of_no_loop_or_of_none_are_refused(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        write_rows(tmp_path / "rows.parquet", 0)
        assert await it.gate() == 2
    assert "its rows are for no loop: it is empty" in capsys.readouterr().err


async def test_a_readme_of_a_persons_own_is_not_overwritten(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        it.card.write_text("# Mine\n")
        assert await it.gate() == 2
        assert it.card.read_text() == "# Mine\n"
    assert "is not the gate's, and would be overwritten" in capsys.readouterr().err


async def test_an_invalid_record_is_reported(tmp_path: Path, capsys: Caught) -> None:
    async with rig(tmp_path) as it:
        (tmp_path / "tiny-new" / "export.json").write_text(json.dumps({"step": 1}))
        assert await it.gate() == 2
    assert "is not a record of an export (dtype, profile," in capsys.readouterr().err
