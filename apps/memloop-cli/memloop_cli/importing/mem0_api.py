"""Memories from mem0's own API, page by page. Source: mem0's API reference, "Get Memories" (``POST /v3/memories/``)."""

from collections.abc import AsyncGenerator
from typing import Final

from memloop_cli.importing.source_api import MOST_PAGES, source_api
from memloop_cli.importing.streaming import Record

_PAGE: Final = 100


async def mem0_records(url: str, token: str, user_id: str) -> AsyncGenerator[Record]:
    """Yield all memories of a user. Raises CliError when the API refuses or answers in another form."""
    number = 0
    async with source_api("mem0", url, {"Authorization": f"Token {token}"}) as api:
        for page in range(1, MOST_PAGES):
            params = {"page": str(page), "page_size": str(_PAGE)}
            found = api.fields(await api.post("v3/memories/", {"filters": {"user_id": user_id}}, params))
            results = api.rows(found.get("results"), "results")
            for value in results:
                number += 1
                yield Record(number, value)
            if not results or found.get("next") is None:
                return
