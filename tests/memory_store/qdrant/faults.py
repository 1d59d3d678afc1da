"""Faults of a cluster's nodes: of the stand-in's, or by the commands of whoever runs real nodes.

``QDRANT_KILL`` and ``QDRANT_START`` end a node's process and bring it back. ``QDRANT_HANG`` and ``QDRANT_RESUME`` stop
it and let it go on, as SIGSTOP and SIGCONT do. In each, ``{node}`` is the node's place in ``QDRANT_NODES``, from 0 on.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal, Protocol, TypeAlias

import pytest

from tests.fakes.qdrant_cluster import QdrantCluster

Fault: TypeAlias = Literal["kill", "hang"]
_COMMANDS = {"kill": ("QDRANT_KILL", "QDRANT_START"), "hang": ("QDRANT_HANG", "QDRANT_RESUME")}


class Faults(Protocol):
    """What can be done to nodes."""

    def on(self, fault: Fault, node: int) -> AbstractAsyncContextManager[None]:
        """The node has that fault during the block. Skips the test where nobody can bring it about."""
        ...


class StandInFaults:
    """Of a stand-in."""

    def __init__(self, server: QdrantCluster) -> None:
        self._server = server

    @asynccontextmanager
    async def on(self, fault: Fault, node: int) -> AsyncGenerator[None]:
        """The node has that fault during the block."""
        begin, end = {
            "kill": (self._server.kill, self._server.start),
            "hang": (self._server.stop, self._server.go_on),
        }[fault]
        begin(node)
        try:
            yield
        finally:
            end(node)


class CommandFaults:
    """By commands of a shell."""

    @asynccontextmanager
    async def on(self, fault: Fault, node: int) -> AsyncGenerator[None]:
        """The node has that fault during the block."""
        names = _COMMANDS[fault]
        begin, end = (os.environ.get(name) for name in names)
        if begin is None or end is None:
            pytest.skip(f"needs {names[0]} and {names[1]}")
        await _run(begin.replace("{node}", str(node)))
        try:
            yield
        finally:
            await _run(end.replace("{node}", str(node)))


async def _run(command: str) -> None:
    process = await asyncio.create_subprocess_shell(command)
    assert await process.wait() == 0, command
