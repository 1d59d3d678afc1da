"""The address of the console, where the gateway has one."""

import aiohttp

_TIMEOUT_S = 10.0


async def console_address(gateway_url: str) -> str | None:
    """Return the address of the console's start page; None if the gateway was started without a built console."""
    address = f"{gateway_url}/console/"
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(address) as answer:
            return address if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None
