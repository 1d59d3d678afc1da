"""The real MCP client in front of a gateway with a worker and the real store."""

import uuid
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.gateway.mcp_client.caller import think
from tests.gateway.whole import Whole, whole
from tests.memory_store.conftest import quick_disk as quick_disk


@pytest.fixture
def folder(quick_disk: Path) -> Path:
    return quick_disk / uuid.uuid4().hex


@pytest.fixture
async def it(redis_url: str, folder: Path) -> AsyncGenerator[Whole]:
    async with whole(redis_url, folder, think) as running:
        yield running
