"""Memories from mem0's own API, page by page. Source: mem0's API reference, "Get Memories" (``POST /v3/memories/``)."""

from collections.abc import AsyncGenerator
from typing import Final

import aiohttp
from yarl import URL

from memloop.wire.chat import Json
from memloop_cli.errors import BadInput, CliError
from memloop_cli.importing.entries import Unreadable, fields_of, list_of
from memloop_cli.importing.streaming import Record

_PAGE: Final = 100
_PAGES: Final = 100_000
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60.0)


async def mem0_records(url: str, token: str, user_id: str) -> AsyncGenerator[Record]:
    """Yield all memories of a user. Raises CliError when the API refuses or answers in another form."""
    address = URL(url)
    if address.scheme not in {"http", "https"} or not address.host:
        raise BadInput(f"{url!r} is not an http URL")
    headers = {"Authorization": f"Token {token}"}
    number = 0
    async with aiohttp.ClientSession(headers=headers, timeout=_TIMEOUT) as http:
        for page in range(1, _PAGES):
            found = await _page(http, address, user_id, page)
            try:
                results = list_of(found.get("results"), "results")
            except Unreadable as error:
                raise CliError(f"mem0 at {address} answered in another form: {error}") from error
            for value in results:
                number += 1
                yield Record(number, value)
            if not results or found.get("next") is None:
                return


async def _page(http: aiohttp.ClientSession, address: URL, user_id: str, page: int) -> Json:
    body = {"filters": {"user_id": user_id}}
    params = {"page": str(page), "page_size": str(_PAGE)}
    try:
        async with http.post(
            address.join(URL("/v3/memories/")), json=body, params=params, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise CliError(f"mem0 at {address} answered {response.status}")
            return fields_of(await response.json())
    except (aiohttp.ClientError, TimeoutError, ValueError, Unreadable) as error:
        raise CliError(f"mem0 at {address} cannot be read: {type(error).__name__}") from error
