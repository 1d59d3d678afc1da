"""``/v1/files/from-url``: a document of the web becomes a file."""

from dataclasses import replace

from fastapi import APIRouter, Depends, Request

from gateway.access import AllowanceDep, PrincipalDep, needs
from gateway.files.download import downloaded
from gateway.files.fetching import FetchingDep
from gateway.files.files import FilesDep
from gateway.files.routes import entered, upload_room
from gateway.idempotency import refuse_key_of_stream
from memloop.wire.files import FileFromUrl, FileObject
from memloop_service import ERRORS
from memloop_service.http import body_of, read_ours

router = APIRouter(prefix="/v1/files", tags=["files"], dependencies=[needs("long-read")], responses=ERRORS)


@router.post("/from-url", dependencies=[Depends(upload_room)], openapi_extra=body_of(FileFromUrl))
async def fetch_file(
    request: Request, files: FilesDep, fetching: FetchingDep, principal: PrincipalDep, allowance: AllowanceDep
) -> FileObject:
    """Download a document from a public address, as ``POST /v1/files`` takes it. The operator must allow it."""
    refuse_key_of_stream(request)
    asked = await read_ours(request, FileFromUrl)
    fetching.check_enabled()
    records = files.stored()
    await allowance.admit()
    await records.check_room(principal.tenant)
    upload = await downloaded(
        asked.url, fetching, blobs=records.blobs, tenant=principal.tenant, max_bytes=files.max_bytes
    )
    return await entered(replace(upload, fields=_form(asked)), records, principal.tenant)


def _form(asked: FileFromUrl) -> dict[str, str]:
    """Return the fields that the form of an upload would have."""
    fields = {"purpose": "user_data"}
    if asked.expires_after_s is not None:
        fields |= {"expires_after[anchor]": "created_at", "expires_after[seconds]": str(asked.expires_after_s)}
    return fields
