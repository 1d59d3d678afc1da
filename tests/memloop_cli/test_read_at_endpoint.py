"""``memloop read --base-url`` and ``MemReread``: the loop at an endpoint, without a stack."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from benchmarks.parity.items import Reply
from benchmarks.parity.scripted_model import ScriptedModel
from memloop_clients.memreread import MemReread
from tests.fakes.strict_endpoint import strict_endpoint
from tests.fakes.strict_specs import SPECS
from tests.memloop_cli.conftest import Memloop

TINY = Path("services/inference/models/memloop-tiny")
QUESTION, TEXT = "Where is the seal?", "The keeper put the seal into locker 13."
SCRIPT = (
    "The seal is with the keeper.",
    "<query>In which locker is the seal?</query>",
    "Locker 13.",
    r"\boxed{locker 13}",
    "The seal is in locker 13.",
    "",
    r"\boxed{locker 13}",
)


def scripted() -> ScriptedModel:
    """A model that asks once, and is content."""
    return ScriptedModel({"m": [Reply(text) for text in SCRIPT]})


async def _memloop(*arguments: str, **environment: str) -> tuple[int, str, str]:
    command = [str(Path(sys.executable).parent / "memloop"), "read", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=os.environ | environment)
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_document_is_read_at_an_endpoint_with_memrereads_flags(tmp_path: Path) -> None:
    document = tmp_path / "harbours.txt"
    document.write_text(TEXT)
    model = scripted()
    flags = ["--tokenizer-model", str(TINY), "--model", "m", "--api-key", "k", "--max-reread", "3"]
    async with model.served() as port:
        at = ["--base-url", f"http://127.0.0.1:{port}/v1"]
        status, out, err = await _memloop(str(document), QUESTION, "--strategy", "memreread", *at, *flags)
    assert status == 0, err
    assert "reread  In which locker is the seal? → locker 13" in out
    assert "answer  locker 13" in out
    assert len(model.requests["m"]) == len(SCRIPT)


async def test_url_and_api_key_are_those_of_memagents_quick_start_with_an_azure_deployments_url(tmp_path: Path) -> None:
    document = tmp_path / "harbours.txt"
    document.write_text(TEXT)
    deployment = next(spec for spec in SPECS if spec.name == "azure deployment")
    async with strict_endpoint(deployment) as endpoint:
        where = {"URL": endpoint.url.partition("?")[0], "API_KEY": "k"}
        assert where["URL"].endswith("/openai/deployments/m")
        status, out, err = await _memloop(str(document), QUESTION, "--model", "m", "--from-env", **where)
    assert status == 0, err
    assert "answer  " in out
    assert not endpoint.refusals


async def test_the_class_reads_by_the_same_loop() -> None:
    model = scripted()
    async with model.served() as port:
        url = f"http://127.0.0.1:{port}/v1"
        async with MemReread(tokenizer_model=TINY, model="m", base_url=url, api_key="k") as reader:
            result = await reader(question=QUESTION, context=TEXT)
    assert (result.answer, result.rereads) == ("locker 13", 1)
    assert len(model.requests["m"]) == len(SCRIPT)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "--base-url needs --model"),
        (["--tokenizer-model", "x"], "are for --base-url"),
        (["--from-env", "--base-url", "http://127.0.0.1:9/v1"], "in the place of --base-url"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--evidence"], "--base-url takes no"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--profile", "none"], "none"),
        (["--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--tokenizer-model", "/no/where"], "no tokenizer at"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    memloop: Memloop, tmp_path: Path, options: list[str], reason: str
) -> None:
    document = tmp_path / "document.txt"
    document.write_text("Text.")
    result = memloop("read", str(document), "What?", *options)
    assert result.exit_code == 2
    assert reason in result.output + result.stderr
