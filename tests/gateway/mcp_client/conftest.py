"""The real MCP client in front of a gateway with a worker and the real store."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.gateway.mcp_client.caller import think
from tests.gateway.whole import Whole, whole


@pytest.fixture
async def it(redis_url: str, tmp_path: Path) -> AsyncGenerator[Whole]:
    async with whole(redis_url, tmp_path, think) as running:
        yield running
