"""Bodies of ``/v1/files``. Source: OpenAI API reference, "Files"."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from memloop.wire.base import Integral, Wire
from memloop.wire.lists import Deleted, ListPage

FilePurpose: TypeAlias = Literal["user_data", "assistants"]
"""What a client says that a file is for. Both are read, and searched in vector stores, alike."""


class FileObject(Wire):
    """An uploaded file. ``status_details``: why it has no text, or what its text lacks."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None = None
    filename: str
    purpose: FilePurpose = "user_data"
    status: Literal["uploaded", "processed", "error"]
    status_details: str | None = None


class FileFromUrl(Wire):
    """``POST /v1/files/from-url``: a document that the gateway downloads; it expires after 1 hour to 30 days."""

    url: str = Field(max_length=2048, pattern=r"^https?://[^\s\x00-\x20\x7f-\xa0]+$")
    expires_after_s: Annotated[int, Field(ge=3600, le=30 * 24 * 3600), Integral] | None = None


class FilePage(ListPage[FileObject]):
    """``GET /v1/files``."""


class FileDeleted(Deleted):
    """``DELETE /v1/files/{id}``."""

    object: Literal["file"] = "file"
