"""Checks on a Qdrant cluster: ``make test-qdrant``."""

from collections.abc import AsyncIterator

import pytest

from tests.memory_store.qdrant.cluster import Cluster, empty_cluster


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """An empty cluster."""
    async with empty_cluster() as nodes:
        yield nodes
