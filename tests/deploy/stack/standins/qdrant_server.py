"""The part of Qdrant's REST API that the memory store uses, over qdrant-client's persistent local mode.

A write is answered after SQLite has committed it. Requests are worked one after another, for local mode is no place
for two at once. The contract tests of the vector stores hold it beside the other adapters (``QDRANT_NODES``).
"""

import email
import hashlib
import hmac
import json
import os
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, TypeAdapter
from qdrant_client import QdrantClient, models

STORAGE: Final = os.environ.get("QDRANT__STORAGE__STORAGE_PATH", "/qdrant/storage")
API_KEY: Final = os.environ.get("QDRANT__SERVICE__API_KEY", "")
READ_KEY: Final = os.environ.get("QDRANT__SERVICE__READ_ONLY_API_KEY", "")
PORT: Final = int(os.environ.get("QDRANT__SERVICE__HTTP_PORT", "6333"))
_OPEN_PATHS: Final = ("/", "/healthz", "/livez", "/readyz")
_SELECTOR: Final[TypeAdapter[Any]] = TypeAdapter(models.PointsSelector)

warnings.filterwarnings("ignore", message="Payload indexes have no effect")
warnings.filterwarnings("ignore", message="Local mode is not recommended")
client = QdrantClient(path=STORAGE)
app = FastAPI()


def answer(result: object) -> JSONResponse:
    """Qdrant's envelope around a result."""
    return JSONResponse({"result": _plain(result), "status": "ok", "time": 0.0})


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


@app.middleware("http")
async def guarded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Asks for the key, as Qdrant does of all but its health checks."""
    if API_KEY and request.url.path not in _OPEN_PATHS and not _known(request):
        return PlainTextResponse("Must provide an API key or an Authorization bearer token", status_code=401)
    return await call_next(request)


def _known(request: Request) -> bool:
    """Whether the key is the whole one; the reading one is known at the metrics alone, which is all it is used for."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    given = request.headers.get("api-key", bearer)
    if hmac.compare_digest(given, API_KEY):
        return True
    return bool(READ_KEY) and request.url.path == "/metrics" and hmac.compare_digest(given, READ_KEY)


@app.exception_handler(ValueError)
async def refused(request: Request, error: ValueError) -> JSONResponse:
    """Local mode says with a ValueError what the server says with 404 or 400."""
    del request
    status = 404 if "not found" in str(error) else 400
    return JSONResponse({"status": {"error": str(error)}, "time": 0.0}, status_code=status)


@app.get("/healthz")
@app.get("/livez")
@app.get("/readyz")
async def healthy() -> PlainTextResponse:
    return PlainTextResponse("all shards are ready")


@app.get("/")
async def about() -> JSONResponse:
    return JSONResponse({"title": "qdrant - vector search engine", "version": "1.20.0", "commit": "0"})


@app.get("/metrics")
async def metrics() -> PlainTextResponse:
    count = len(client.get_collections().collections)
    return PlainTextResponse(f"# HELP collections_total number of collections\ncollections_total {count}\n")


@app.get("/cluster")
async def cluster() -> JSONResponse:
    return answer({"status": "disabled"})


@app.get("/collections")
async def collections() -> JSONResponse:
    return answer(client.get_collections())


@app.get("/aliases")
async def aliases() -> JSONResponse:
    return answer(client.get_aliases())


@app.post("/collections/aliases")
async def change_aliases(request: Request) -> JSONResponse:
    change = models.ChangeAliasesOperation.model_validate(await request.json())
    return answer(client.update_collection_aliases(change.actions))


@app.get("/collections/{name}/exists")
async def exists(name: str) -> JSONResponse:
    return answer({"exists": client.collection_exists(name)})


@app.get("/collections/{name}")
async def collection(name: str) -> JSONResponse:
    return answer(client.get_collection(name))


@app.put("/collections/{name}")
async def create(name: str, request: Request) -> JSONResponse:
    wanted = models.CreateCollection.model_validate(await request.json())
    return answer(
        client.create_collection(
            name,
            vectors_config=wanted.vectors,
            sparse_vectors_config=wanted.sparse_vectors or None,
            metadata=wanted.metadata,
        )
    )


@app.delete("/collections/{name}")
async def drop(name: str) -> JSONResponse:
    return answer(client.delete_collection(name))


@app.put("/collections/{name}/index")
async def index(name: str, request: Request) -> JSONResponse:
    wanted = models.CreateFieldIndex.model_validate(await request.json())
    return answer(client.create_payload_index(name, wanted.field_name, wanted.field_schema))


@app.put("/collections/{name}/points")
async def upsert(name: str, request: Request) -> JSONResponse:
    points = models.PointsList.model_validate(await request.json()).points
    return answer(client.upsert(name, points))


@app.post("/collections/{name}/points/delete")
async def delete(name: str, request: Request) -> JSONResponse:
    return answer(client.delete(name, _SELECTOR.validate_python(await request.json())))


@app.post("/collections/{name}/points/scroll")
async def scroll(name: str, request: Request) -> JSONResponse:
    asked = models.ScrollRequest.model_validate(await request.json())
    records, following = client.scroll(
        name,
        scroll_filter=asked.filter,
        limit=asked.limit or 10,
        order_by=asked.order_by,
        offset=asked.offset,
        with_payload=asked.with_payload if asked.with_payload is not None else True,
        with_vectors=asked.with_vector or False,
    )
    return answer({"points": records, "next_page_offset": following})


@app.post("/collections/{name}/points/count")
async def count(name: str, request: Request) -> JSONResponse:
    asked = models.CountRequest.model_validate(await request.json())
    return answer(client.count(name, count_filter=asked.filter, exact=True))


@app.post("/collections/{name}/facet")
async def facet(name: str, request: Request) -> JSONResponse:
    asked = models.FacetRequest.model_validate(await request.json())
    return answer(client.facet(name, asked.key, facet_filter=asked.filter, limit=asked.limit or 10, exact=True))


@app.post("/collections/{name}/points/query")
async def query(name: str, request: Request) -> JSONResponse:
    asked = models.QueryRequest.model_validate(await request.json())
    [found] = client.query_batch_points(name, [asked])
    return answer(found)


@app.post("/collections/{name}/points/query/batch")
async def query_batch(name: str, request: Request) -> JSONResponse:
    asked = models.QueryRequestBatch.model_validate(await request.json())
    return answer(client.query_batch_points(name, asked.searches))


@app.post("/collections/{name}/snapshots")
async def make_snapshot(name: str) -> JSONResponse:
    """All points of a collection as one file of JSON; a real snapshot is a tar of segments."""
    made = f"{name}-{time.time_ns()}.snapshot"
    _snapshots().mkdir(parents=True, exist_ok=True)
    data = json.dumps(
        {"config": _plain(client.get_collection(name).config), "points": _plain(_all_points(name))}
    ).encode()
    (_snapshots() / made).write_bytes(data)
    return answer({"name": made, "size": len(data), "checksum": hashlib.sha256(data).hexdigest()})


@app.get("/collections/{name}/snapshots/{snapshot}")
async def download_snapshot(name: str, snapshot: str) -> FileResponse:
    del name
    return FileResponse(_snapshots() / Path(snapshot).name)


@app.delete("/collections/{name}/snapshots/{snapshot}")
async def drop_snapshot(name: str, snapshot: str) -> JSONResponse:
    del name
    (_snapshots() / Path(snapshot).name).unlink(missing_ok=True)
    return answer(True)


@app.post("/collections/{name}/snapshots/upload")
async def upload_snapshot(name: str, request: Request) -> JSONResponse:
    """The collection is as in the snapshot afterwards. The image has no parser of forms but Python's of mails."""
    form = b"content-type: " + request.headers["content-type"].encode() + b"\r\n\r\n" + await request.body()
    [part] = email.message_from_bytes(form).get_payload()
    told = json.loads(part.get_payload(decode=True))
    params = models.CollectionParams.model_validate(told["config"]["params"])
    if client.collection_exists(name):
        client.delete_collection(name)
    client.create_collection(
        name,
        vectors_config=params.vectors,
        sparse_vectors_config=params.sparse_vectors or None,
        metadata=told["config"].get("metadata"),
    )
    points = [models.PointStruct.model_validate(point) for point in told["points"]]
    if points:
        client.upsert(name, points)
    return answer(True)


def _snapshots() -> Path:
    return Path(STORAGE).parent / "standin-snapshots"


def _all_points(name: str) -> list[dict[str, object]]:
    points, offset = list[dict[str, object]](), None
    while True:
        records, offset = client.scroll(name, limit=256, offset=offset, with_payload=True, with_vectors=True)
        points += [{"id": one.id, "payload": one.payload or {}, "vector": _plain(one.vector)} for one in records]
        if offset is None:
            return points


if __name__ == "__main__":
    uvicorn.run(app, host="0.0.0.0", port=PORT, access_log=False)
