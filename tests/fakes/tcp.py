"""What stands between a client and a server and passes their bytes on."""

import asyncio
from contextlib import suppress

_BLOCK_BYTES = 1 << 16


async def joined(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, *, sends: bytes = b"", answers: bytes = b""
) -> None:
    """Join a client's connection to a server on this machine until one of them ends. Raises OSError.

    ``sends`` goes to the server first, and ``answers`` to the client.
    """
    server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
    server_writer.write(sends)
    writer.write(answers)
    both = [
        asyncio.create_task(_passed_on(reader, server_writer)),
        asyncio.create_task(_passed_on(server_reader, writer)),
    ]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        server_writer.close()


async def _passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while block := await reader.read(_BLOCK_BYTES):
            writer.write(block)
            await writer.drain()
