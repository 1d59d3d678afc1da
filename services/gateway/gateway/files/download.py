"""Downloads a document into the storage. Every connection, of redirects too, goes to checked addresses only."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize
from urllib.parse import unquote

import aiohttp
from yarl import URL

from gateway.addresses import AddressRefused, AddressRules, Lookup, checked_session, system_lookup
from gateway.files.blobs import Blobs
from gateway.files.uploads import Upload
from memloop.wire.errors import Unprocessable

_REDIRECTS: Final = 5
_MOVED: Final = frozenset((301, 302, 303, 307, 308))
_BLOCK_BYTES: Final = 1 << 18
_MEDIA_TYPE_CHARS: Final = 255
_NAME_CHARS: Final = 255
_HEADERS: Final = {"User-Agent": "memloop", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Downloads:
    """``addresses`` are the addresses that a download may connect to; ``timeout_s`` bounds a whole download."""

    addresses: AddressRules
    timeout_s: float
    lookup: Lookup = system_lookup

    async def stored(self, url: str, *, blobs: Blobs, tenant: str, max_bytes: int) -> Upload:
        """Return the unclaimed content; it is deleted again on any error.

        Raises Unprocessable when the address is refused or does not answer with a document, TooLarge, Unavailable.
        """
        try:
            async with (
                asyncio.timeout(self.timeout_s),
                checked_session(self.addresses, self.lookup, headers=_HEADERS) as session,
                _answered(session, self._checked(url)) as response,
            ):
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise _refused("The URL answered with compressed content.")
                blocks = response.content.iter_chunked(_BLOCK_BYTES)
                content = await blobs.written(tenant, blocks, max_bytes=max_bytes, param="url")
                if content.size_bytes == 0:
                    await blobs.drop(content.place)
                    raise _refused("The URL answered with an empty document.")
                return Upload(
                    content=content,
                    filename=_name_of(response.url),
                    media_type=response.headers.get("content-type", "")[:_MEDIA_TYPE_CHARS],
                )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(getattr(error, "os_error", error), AddressRefused):
                raise _refused("The URL's address is not public.") from error
            raise _refused(f"The URL cannot be downloaded: {type(error).__name__}.") from error

    def _checked(self, text: str) -> URL:
        """Return the URL. Raises Unprocessable for one that is never downloaded; names are resolved on connection."""
        url = URL(text)
        if url.scheme not in {"http", "https"} or not url.raw_host:
            raise _refused("The URL must begin with https:// or http:// and contain a host.")
        if url.raw_user is not None or url.raw_password is not None:
            raise _refused("The URL must contain no user name.")
        with suppress(ValueError):  # a name
            self.addresses.check(url.raw_host)
        return url


@asynccontextmanager
async def _answered(session: aiohttp.ClientSession, url: URL) -> AsyncGenerator[aiohttp.ClientResponse]:
    """Follow a few redirects. Raises Unprocessable for any answer but 200."""
    for _ in range(_REDIRECTS + 1):
        async with session.get(url, allow_redirects=False) as response:
            if response.status == 200:
                yield response
                return
            if response.status not in _MOVED or "location" not in response.headers:
                raise _refused(f"The URL answered {response.status}.")
            url = url.join(URL(response.headers["location"]))
            if url.scheme not in {"http", "https"} or not url.raw_host or url.raw_user is not None:
                raise _refused("The URL redirects to an address that is not downloaded.")
    raise _refused("The URL redirects too often.")


def _name_of(url: URL) -> str:
    """Return a name for the file: nobody gave it one, so it is made of what can be shown of the address."""
    last = unquote(url.raw_path.rstrip("/").rpartition("/")[2])
    shown = "".join(letter for letter in last or url.host or "" if letter.isprintable())
    return normalize("NFC", shown)[:_NAME_CHARS].strip() or "file"


def _refused(message: str) -> Unprocessable:
    return Unprocessable(message, param="url", code="url_not_downloaded")
