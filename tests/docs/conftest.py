"""A gateway for the code of the pages: everything is real but the engine, which knows the pages' facts."""

import os
import re
from base64 import b64encode
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.fakes.job_engine import Body, Reply, add_memory, last_text, tool_call
from tests.gateway.whole import Whole, whole

os.environ["MEM0_TELEMETRY"] = "False"
_SECRET = f"whsec_{b64encode(bytes(32)).decode()}"
_TOLD = re.compile(r"\b(?:My|my) ([\w ]+?) is ([\w ]+)\.")
_FACT = re.compile(r"The [\w ]+? of \w+ is [\w ]+\.")


def answer(body: Body) -> Reply:
    """Writes memories of "My … is …", reads facts of "The … of … is …", and answers from what the prompt has."""
    if body.get("tools"):
        return _written(body)
    prompt = last_text(body)
    if "states another fact" in prompt:
        return "1: new"
    if "<section>" in prompt:
        return " ".join(dict.fromkeys(_FACT.findall(prompt.partition("<memory>")[2]))) or "No facts yet."
    if r"\boxed" in prompt:
        problem, _, memory = prompt.partition("<memory>")
        name = re.search(r"of (\w+)\?", problem)
        known = re.search(rf"of {name[1]} is ([\w ]+)\.", memory) if name else None
        return rf"\boxed{{{known[1] if known else 'unknown'}}}"
    recalled = re.search(r"user's ([\w ]+?) is ([\w ]+)", str(body["messages"]))
    return f"Your {recalled[1]} is {recalled[2]}." if recalled and prompt.endswith("?") else "I see."


def _written(body: Body) -> Reply:
    turns = str([message["content"] for message in body["messages"] if message["role"] == "user"][-1])
    told = _TOLD.findall(turns)
    return (
        add_memory(*(f"The user's {what} is {value}." for what, value in told))
        if told
        else tool_call("ignore_memory", reason="no fact")
    )


@pytest.fixture
async def it(redis_url: str, tmp_path: Path) -> AsyncGenerator[Whole]:
    folder, files = tmp_path / "memories", (tmp_path / "files").as_uri()
    async with whole(redis_url, folder, answer, api_keys="", storage_url=files, webhook_secret=_SECRET) as running:
        yield running
