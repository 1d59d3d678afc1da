"""A snapshot of a Redis server as its replicas get it: one point in time, no file of the server touched by us.

Source: the replication protocol's ``SYNC``, https://redis.io/docs/latest/operate/oss_and_stack/management/replication/.
"""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from memloop.wire.errors import DependencyError, Unavailable
from memloop_state.link import Address

_TIMEOUT_S: Final = 600.0
_SILENCE_S: Final = 60.0
_BLOCK_BYTES: Final = 1 << 20


async def dump(server: Address, target: Path) -> int:
    """Write the server's RDB file; its size in bytes. Raises Unavailable, and DependencyError when it refuses."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            tls = ssl.create_default_context() if server.tls else None
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=tls)
            try:
                return await _dumped(server, reader, writer, target)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise Unavailable(f"{server.host}:{server.port} returned no snapshot: {error!r}") from error


async def _dumped(server: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Path) -> int:
    if server.password:
        words = ["AUTH", *([server.username] if server.username else []), server.password]
        writer.write(_command(*words))
        _expect(await reader.readline(), b"+OK")
    writer.write(_command("SYNC"))
    head = _expect(await _line(reader), b"$")
    left = size = int(head[1:])
    with target.open("wb") as file:
        while left:
            async with asyncio.timeout(_SILENCE_S):
                block = await reader.read(min(left, _BLOCK_BYTES))
            if not block:
                raise asyncio.IncompleteReadError(b"", left)
            file.write(block)
            left -= len(block)
    return size


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the first line that is not a keep-alive."""
    while True:
        async with asyncio.timeout(_SILENCE_S):
            line = await reader.readline()
        if line != b"\n":
            return line


def _expect(line: bytes, start: bytes) -> bytes:
    if not line.startswith(start) or line.startswith(b"$EOF"):
        raise DependencyError(f"Redis returned no snapshot: {line[:200].decode(errors='replace').strip()}")
    return line.strip()


def _command(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    parts += [b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words]
    return b"".join(parts)
