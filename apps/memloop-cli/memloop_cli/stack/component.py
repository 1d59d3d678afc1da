"""One process of the local stack and its readiness check; and the console's address."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import aiohttp

_PROBE_TIMEOUT_S = 5.0
_CONSOLE_TIMEOUT_S = 10.0

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns None when ready, else the reason."""


@dataclass(frozen=True, slots=True)
class Component:
    """A process. ``environment`` is its whole environment; it has ``timeout_s`` seconds
    to get ready, and ``grace_s`` to end.
    """

    name: str
    what: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    port: int
    probe: Probe
    timeout_s: float
    grace_s: float = 10.0


def http_probe(port: int) -> Probe:
    """Check ``/readyz`` on this port."""

    async def probe() -> str | None:
        timeout = aiohttp.ClientTimeout(total=_PROBE_TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://127.0.0.1:{port}/readyz") as answer,
            ):
                return None if answer.status == 200 else (await answer.text())[:300]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return str(error) or type(error).__name__

    return probe


def redis_probe(port: int) -> Probe:
    """Check that Redis on this port answers PING with PONG (LOADING while it reads its file)."""

    async def probe() -> str | None:
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"PING\r\n")
                answer = await reader.readline()
                writer.close()
        except (OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        return None if answer == b"+PONG\r\n" else answer.decode("utf-8", "replace").strip()

    return probe


async def console_address(gateway_url: str) -> str | None:
    """Return the address of the console's start page; None if the gateway was started without a built console."""
    address = f"{gateway_url}/console/"
    timeout = aiohttp.ClientTimeout(total=_CONSOLE_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(address) as answer:
            return address if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None
