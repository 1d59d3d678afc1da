"""Putting a backup's collections back onto a Qdrant cluster."""

from pathlib import Path

from memloop.wire.errors import InvalidRequest
from memory_store.backup.manifest import checked
from memory_store.backup.qdrant_nodes import Qdrant, cluster_of
from memory_store.backup.qdrant_shards import recreate_collections


async def restore_shards(folder: Path, qdrant: Qdrant) -> None:
    """Check the backup, then make its collections on a Qdrant cluster that has none of them.

    Raises InvalidRequest before anything is made, and Unavailable.
    """
    manifest = checked(folder)
    if not manifest.collections:
        raise InvalidRequest("The backup has no shards of a Qdrant cluster.")
    if qdrant.qdrant_url is None:
        raise InvalidRequest("QDRANT_URL names no Qdrant.")
    async with cluster_of(qdrant) as nodes:
        if not nodes:
            raise InvalidRequest("QDRANT_URL is no cluster. Shards go into one, which may have a single node.")
        await recreate_collections(folder, manifest, nodes)
