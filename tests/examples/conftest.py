"""The examples against a gateway with everything real behind it but the engine."""

import os
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.fakes.job_engine import Body, Reply, add_memory
from tests.gateway.whole import Whole, whole

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")  # it writes there when it is imported


def think(body: Body) -> Reply:
    """A memory writer when it has tools; else it knows a code only if somebody shows it."""
    if body.get("tools"):
        return add_memory("The user's locker code is 482.")
    shown = str(body["messages"])
    if "<section>" in shown:
        return "The notice period is 482 days."
    if "boxed" in shown:
        return r"\boxed{482 days}"
    return "It is 482." if "482" in shown else "I do not know."


@pytest.fixture
async def it(redis_url: str, tmp_path: Path) -> AsyncGenerator[Whole]:
    async with whole(redis_url, tmp_path / "memories", think, storage_url=(tmp_path / "files").as_uri()) as running:
        yield running
