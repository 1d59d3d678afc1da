"""Ends TLS before a server that does not speak it, as stunnel does."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def tls_front(port: int, context: ssl.SSLContext) -> AsyncGenerator[int]:
    """The port of a front before a loopback port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside, outside = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copied(reader, outside))
                group.create_task(_copied(inside, writer))
        finally:
            outside.close()
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
