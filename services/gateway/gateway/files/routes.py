"""``/v1/files``: documents for long reads, in OpenAI's file API. The worker extracts their text."""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from gateway.access import (
    AllowanceDep,
    Principal,
    PrincipalDep,
    Room,
    access_of,
    announced_bytes,
    namespace_named,
    needs,
    principal_of,
)
from gateway.files.blobs import Blob
from gateway.files.files import FilesDep
from gateway.files.records import FileJob, FileRecords
from gateway.files.uploads import Upload, receive_upload
from gateway.idempotency import refuse_key_of_stream
from memloop.wire.errors import (
    Conflict,
    Erased,
    InvalidRequest,
    NotSupported,
    RateLimited,
    TooLarge,
    UnknownParameter,
    Unprocessable,
)
from memloop.wire.files import FileDeleted, FileFromUrl, FileObject, FilePage, FilePurpose
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours
from memloop_state.owners import Owner

_UPLOAD_HOLDS_BYTES: Final = 16 << 20
"""The admission bytes that an upload takes, whatever its size."""
_FORM_BYTES: Final = 1 << 16
"""The most that an upload's form takes beside its file."""
_LONGEST_EXPIRY_S: Final = 30 * 24 * 3600
_PURPOSES: Final[tuple[FilePurpose, ...]] = get_args(FilePurpose)
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["file", "purpose"],
    "dependentRequired": {
        "expires_after[anchor]": ["expires_after[seconds]"],
        "expires_after[seconds]": ["expires_after[anchor]"],
    },
    "additionalProperties": False,
    "properties": {
        "file": {"type": "string", "format": "binary", "minLength": 1},
        "purpose": {"enum": list(_PURPOSES)},
        "expires_after[anchor]": {"const": "created_at"},
        "expires_after[seconds]": {"type": "integer", "minimum": 3600, "maximum": _LONGEST_EXPIRY_S},
    },
}

_PATH: Final = "/v1/files"
openais = APIRouter(
    prefix=_PATH, tags=["files"], dependencies=[needs("long-read", ignores_unknown=True)], responses=ERRORS
)
ours = APIRouter(prefix=_PATH, tags=["files"], dependencies=[needs("long-read")], responses=ERRORS)


async def upload_room(request: Request) -> AsyncIterator[None]:
    """Hold the room of an upload in the process."""
    principal = await principal_of(request)  # only authenticated callers take a slot
    with access_of(request).admission.room("batch", tenant=principal.tenant, body_bytes=_UPLOAD_HOLDS_BYTES):
        yield


@openais.post(
    "",
    dependencies=[Depends(upload_room)],
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}},
)
async def upload_file(
    request: Request, files: FilesDep, principal: PrincipalDep, allowance: AllowanceDep
) -> FileObject:
    """Upload a document, mail, spreadsheet, presentation, book or text; it is readable once it is processed."""
    refuse_key_of_stream(request)
    records = files.stored()
    await allowance.admit()
    owner = await _owner_of(request, records, principal)
    async with records.room(principal.tenant, size_bytes=max(0, announced_bytes(request) - _FORM_BYTES)) as file_id:
        upload = await receive_upload(
            request.stream(),
            content_type=request.headers.get("content-type", ""),
            tenant=principal.tenant,
            blobs=records.blobs,
            max_bytes=files.max_bytes,
        )
        try:
            purpose, lasts_s = _asked(upload.fields)
        except InvalidRequest:
            await records.blobs.drop(upload.content.place)
            raise
        return await _registered(
            upload, records, tenant=principal.tenant, file_id=file_id, owner=owner, purpose=purpose, lasts_s=lasts_s
        )


@ours.post("/from-url", dependencies=[Depends(upload_room)], openapi_extra=body_of(FileFromUrl))
async def fetch_file(request: Request, files: FilesDep, principal: PrincipalDep, allowance: AllowanceDep) -> FileObject:
    """Download a document from a public address, as ``POST /v1/files`` takes it. The operator must allow it."""
    refuse_key_of_stream(request)
    asked = await read_ours(request, FileFromUrl)
    if files.downloads is None:
        raise NotSupported("URLs are not downloaded here (MEMLOOP_FETCH_URLS).")
    records = files.stored()
    await allowance.admit()
    owner, tenant = await _owner_of(request, records, principal), principal.tenant
    async with records.room(tenant, size_bytes=0) as file_id:
        upload = await files.downloads.stored(asked.url, blobs=records.blobs, tenant=tenant, max_bytes=files.max_bytes)
        lasts_s = asked.expires_after_s
        return await _registered(
            upload, records, tenant=tenant, file_id=file_id, owner=owner, purpose="user_data", lasts_s=lasts_s
        )


@openais.get("", dependencies=[Room])
async def list_files(
    files: FilesDep,
    principal: PrincipalDep,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    after: Annotated[str | None, Query(max_length=64)] = None,
    order: Literal["asc", "desc"] = "desc",
    purpose: str | None = None,
) -> FilePage:
    """List the tenant's files."""
    records = files.stored()
    return await records.page(principal.tenant, limit=limit, after=after, newest_first=order == "desc", purpose=purpose)


@openais.get("/{file_id}")
async def get_file(file_id: str, files: FilesDep, principal: PrincipalDep) -> FileObject:
    """Return one file."""
    return (await files.stored().get(principal.tenant, file_id)).file


@openais.get("/{file_id}/content", response_class=StreamingResponse)
async def get_content(
    file_id: str, files: FilesDep, principal: PrincipalDep, form: Literal["original", "text"] = "original"
) -> StreamingResponse:
    """Download the uploaded bytes, or the extracted text to which positions of evidence refer."""
    records = files.stored()
    job = await records.job(principal.tenant, file_id)
    if form == "original":
        return _download(job.raw, job.file.filename, "application/octet-stream", records)
    stored = await records.get(principal.tenant, file_id)
    if stored.text is None:
        raise Conflict("The file has no extracted text (yet).", param="form", code="file_not_ready")
    return _download(stored.text, f"{job.file.filename}.txt", "text/plain; charset=utf-8", records)


@openais.delete("/{file_id}")
async def delete_file(file_id: str, files: FilesDep, principal: PrincipalDep) -> FileDeleted:
    """Delete a file and its text. A running read keeps the text until it ends."""
    return await files.stored().delete(principal.tenant, file_id)


router = APIRouter()
router.include_router(openais)
router.include_router(ours)


async def _owner_of(request: Request, records: FileRecords, principal: Principal) -> Owner | None:
    """Return the user that the request's headers name, whose erasure deletes the file."""
    named = namespace_named(principal, {}, request.headers)
    return None if named is None else Owner(named, await records.queue.newest_token())


def _asked(fields: Mapping[str, str]) -> tuple[FilePurpose, int | None]:
    """Return the purpose and the seconds that a form asks for. Raises InvalidRequest."""
    unknown = sorted(fields.keys() - _FORM["properties"].keys())
    if unknown:
        raise UnknownParameter(unknown[0], known=_FORM["properties"])
    purpose = fields.get("purpose")
    if purpose not in _PURPOSES:
        raise Unprocessable(f"The purpose must be {' or '.join(_PURPOSES)}.", param="purpose")
    if not any(name.startswith("expires_after") for name in fields):
        return purpose, None
    given, anchor = fields.get("expires_after[seconds]", ""), fields.get("expires_after[anchor]")
    if anchor != "created_at" or not given.isdecimal() or not 3600 <= int(given) <= _LONGEST_EXPIRY_S:
        what = f"expires_after needs the anchor created_at and 3600 to {_LONGEST_EXPIRY_S} s."
        raise Unprocessable(what, param="expires_after")
    return purpose, int(given)


async def _registered(
    upload: Upload,
    files: FileRecords,
    *,
    tenant: str,
    file_id: str,
    owner: Owner | None,
    purpose: FilePurpose,
    lasts_s: int | None,
) -> FileObject:
    """Store the file's record. Raises TooLarge over the tenant's quota, Erased when the owner was erased meanwhile."""
    now = int(time.time())
    file = FileObject(
        id=file_id,
        bytes=upload.content.size_bytes,
        created_at=now,
        expires_at=None if lasts_s is None else now + lasts_s,
        filename=upload.filename,
        purpose=purpose,
        status="uploaded",
    )
    blob = await files.blobs.claim(upload.content, holder=f"file:{file_id}")
    job = FileJob(tenant=tenant, raw=blob, media_type=upload.media_type, file=file)
    if owner is not None:
        job = job.model_copy(update={"owner": owner.namespace, "began": owner.began})
    try:
        await files.enqueue(job)
    except (RateLimited, TooLarge, Erased):
        await files.blobs.release(blob, holder=f"file:{file_id}")
        raise
    return file


def _download(stored: Blob, name: str, media_type: str, records: FileRecords) -> StreamingResponse:
    headers = {
        "content-length": str(stored.size_bytes),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name)}",
    }
    return StreamingResponse(records.blobs.storage.stream(stored.place), media_type=media_type, headers=headers)
