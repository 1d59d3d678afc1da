"""The real mem0 client in front of a gateway with a worker and the real store; nothing leaves the machine."""

import os
import tempfile

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")  # it writes there when it is imported

# What follows imports mem0, which reads both.
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.gateway.mem0_client.drop_in import DropIn, drop_in


@pytest.fixture
async def it(redis_url: str, tmp_path: Path) -> AsyncGenerator[DropIn]:
    """The gateway of two tenants."""
    async with drop_in(redis_url, tmp_path) as running:
        yield running
