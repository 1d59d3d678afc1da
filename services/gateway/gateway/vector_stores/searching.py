"""Searches the chunks of a vector store in the memory store."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from gateway.vector_stores.filters import passes
from gateway.vector_stores.records import Attached
from gateway.vector_stores.schemas import Found, SearchFields, TextContent
from memloop.wire.memory import Namespace, Scope, SearchHit, StoreSearch
from memloop_clients import StoreClient

_IDS_OF_A_CONDITION: Final = 200
_DECIMALS: Final = 4


def chunks_in(tenant: str, store_id: str) -> Scope:
    """Return where the memory store holds a vector store's chunks: beside the tenant's memories, in no list of them.

    No key's tenant has a colon in its name.
    """
    return Scope(tenant=f"files:{tenant}", user_id=store_id)


def chunks_of_file(tenant: str, store_id: str, file_id: str) -> Namespace:
    """Return where the chunks of one file are."""
    return Namespace(tenant=f"files:{tenant}", user_id=store_id, agent_id=file_id)


async def found_in(
    store: StoreClient, where: Scope, query: str, asked: SearchFields, files: Sequence[Attached], max_tokens: int | None
) -> list[Found]:
    """Return the best chunks of these files that are indexed and pass the filters, best first."""
    shown = {
        one.file.id: one
        for one in files
        if one.file.status == "completed" and (asked.filters is None or passes(asked.filters, one.file.attributes))
    }
    if not shown:
        return []
    ids = sorted(shown)
    groups: list[JsonValue] = [
        {"agent_id": {"in": [*ids[start : start + _IDS_OF_A_CONDITION]]}}
        for start in range(0, len(ids), _IDS_OF_A_CONDITION)
    ]
    request = StoreSearch(
        namespace=where,
        query=query,
        top_k=asked.max_num_results,
        filters=None if asked.filters is None else {"OR": groups},
        max_tokens=max_tokens,
    )
    hits = (await store.search(request)).results
    found = [_found(hit, shown) for hit in hits if hit.item.agent_id in shown]
    least = asked.ranking_options.score_threshold if asked.ranking_options is not None else 0.0
    return [one for one in found if one.score >= least]


def _found(hit: SearchHit, files: Mapping[str, Attached]) -> Found:
    """Return the result. The memory store's score is a cosine and more, so it is pressed between 0 and 1."""
    one = files[hit.item.agent_id or ""]
    score = round(math.tanh(max(0.0, hit.score)), _DECIMALS)
    content = (TextContent(text=hit.item.memory),)
    return Found(
        file_id=one.file.id, filename=one.filename, score=score, attributes=one.file.attributes, content=content
    )
