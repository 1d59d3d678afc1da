"""Snapshots of the shards of :class:`QdrantCluster`, each on the node that made it, from Qdrant's public REST API."""

import hashlib
from typing import Any, cast

from aiohttp import web
from pydantic import TypeAdapter
from qdrant_client import models

from tests.fakes.qdrant_copies import Copies, filled, records_of
from tests.fakes.qdrant_server import failed, succeeded
from tests.fakes.qdrant_shards import Shards

_RECORDS: TypeAdapter[list[models.Record]] = TypeAdapter(list[models.Record])


class Snapshots:
    """The snapshots of one cluster, ``kept`` until deleted. ``here`` gives the number of the node that answers."""

    def __init__(self, collections: dict[str, Shards], here: Any) -> None:
        self._collections = collections
        self._here = here
        self.kept: dict[tuple[int, str, int], bytes] = {}

    def routes(self) -> list[web.RouteDef]:
        """What a node answers."""
        of_shard = "/collections/{name}/shards/{shard}/snapshots"
        return [
            web.post(of_shard, self._make),
            web.post(f"{of_shard}/upload", self._upload),
            web.get(f"{of_shard}/{{snapshot}}", self._download),
            web.delete(f"{of_shard}/{{snapshot}}", self._delete),
        ]

    def _place(self, request: web.Request) -> tuple[int, str, int]:
        return self._here(), request.match_info["name"], int(request.match_info["shard"])

    def _copies(self, request: web.Request) -> Copies:
        """The copies of the shard that a request names. Refused by a node without one."""
        shards = list(self._collections[request.match_info["name"]].shards.values())
        copies = cast(Copies, shards[int(request.match_info["shard"])])
        if self._here() not in copies.by_node:
            raise web.HTTPBadRequest(text="Wrong input: shard is not local")
        return copies

    async def _make(self, request: web.Request) -> web.Response:
        records = records_of(self._copies(request).by_node[self._here()])
        self.kept[self._place(request)] = _RECORDS.dump_json(list(records.values()))
        return succeeded({"name": "made", "creation_time": "2026-11-23T00:00:00", "size": 1})

    async def _download(self, request: web.Request) -> web.Response:
        return web.Response(body=self.kept[self._place(request)])

    async def _delete(self, request: web.Request) -> web.Response:
        del self.kept[self._place(request)]
        return succeeded(True)

    async def _upload(self, request: web.Request) -> web.Response:
        raw = cast(web.FileField, (await request.post())["snapshot"]).file.read()
        if request.query["checksum"] != hashlib.sha256(raw).hexdigest() or request.query["priority"] != "snapshot":
            return failed(400, "Wrong input: Snapshot checksum mismatch")
        copies = self._copies(request)
        copies.by_node[self._here()] = filled(copies.made(), _RECORDS.validate_json(raw))
        return succeeded(True)
