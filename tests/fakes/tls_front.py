"""Ends TLS before a server that does not speak it, as stunnel does."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.fakes.tcp import joined


@asynccontextmanager
async def tls_front(port: int, context: ssl.SSLContext) -> AsyncGenerator[int]:
    """The port of a front before a loopback port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await joined(reader, writer, port)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
