"""Items of a LangGraph deployment's store, page by page.

Source: LangGraph's server API, "Store" (``POST /store/items/search``), as its own ``langgraph-sdk`` sends it.
"""

from collections.abc import AsyncGenerator
from typing import Final

from memloop.wire.chat import Json
from memloop_cli.importing.source_api import MOST_PAGES, source_api
from memloop_cli.importing.streaming import Record

_PAGE: Final = 100


async def langgraph_records(url: str, key: str | None) -> AsyncGenerator[Record]:
    """Yield all items of the store. Raises CliError when the API refuses or answers in another form."""
    number = 0
    async with source_api("LangGraph", url, {} if key is None else {"x-api-key": key}) as api:
        for _ in range(MOST_PAGES):
            asked: Json = {"namespace_prefix": [], "limit": _PAGE, "offset": number}
            found = api.fields(await api.post("store/items/search", asked))
            items = api.rows(found.get("items"), "items")
            for value in items:
                number += 1
                yield Record(number, value)
            if not items:
                return
