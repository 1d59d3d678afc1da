"""The HTTP APIs of other systems, from which memories are read page by page: what they share, mem0's and LangGraph's.

Sources: mem0's API reference, "Get Memories" (``POST /v3/memories/``); LangGraph's server API, "Store"
(``POST /store/items/search``), as its own ``langgraph-sdk`` sends it.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import aiohttp
from yarl import URL

from memloop.wire.chat import Json
from memloop_cli.errors import BadInput, CliError
from memloop_cli.importing.entries import Unreadable, fields_of, list_of
from memloop_cli.importing.streaming import Record

MOST_PAGES: Final = 100_000
_PAGE: Final = 100
_TRIES: Final = 6
_LATER: Final = frozenset({429, 502, 503, 504})
_MOST_WAIT_S: Final = 60.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=60.0)


@dataclass(frozen=True, slots=True)
class SourceApi:
    """One system's API. Its methods raise CliError when it refuses, cannot be reached or answers in another form."""

    name: str
    address: URL
    http: aiohttp.ClientSession

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> object:
        """Return the JSON at a path below the address."""
        return await self._asked("GET", path, params or {}, None)

    async def post(self, path: str, body: Json, params: Mapping[str, str] | None = None) -> object:
        """Return the JSON that answers the body."""
        return await self._asked("POST", path, params or {}, body)

    def fields(self, value: object) -> Json:
        """Return an answer's fields."""
        try:
            return fields_of(value)
        except Unreadable as error:
            raise self._another_form(error) from error

    def rows(self, value: object, name: str) -> list[object]:
        """Return a list of an answer; None is an empty one."""
        try:
            return list_of([] if value is None else value, name)
        except Unreadable as error:
            raise self._another_form(error) from error

    async def _asked(self, method: str, path: str, params: Mapping[str, str], body: Json | None) -> object:
        url = URL(f"{str(self.address).rstrip('/')}/{path}", encoded=True)
        for tried in range(1, _TRIES + 1):
            try:
                async with self.http.request(method, url, params=params, json=body, allow_redirects=False) as answer:
                    if answer.status == 200:
                        return await answer.json()
                    if answer.status not in _LATER or tried == _TRIES:
                        raise CliError(f"{self.name} at {self.address} answered {answer.status}")
                    wait_s = _wait_s(answer.headers.get("Retry-After"), tried)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise CliError(f"{self.name} at {self.address} cannot be read: {type(error).__name__}") from error
            await asyncio.sleep(wait_s)
        raise AssertionError("the last try returns or raises")

    def _another_form(self, error: Unreadable) -> CliError:
        return CliError(f"{self.name} at {self.address} answered in another form: {error}")


@asynccontextmanager
async def source_api(name: str, url: str, headers: Mapping[str, str]) -> AsyncGenerator[SourceApi]:
    """Open the API at a URL. Raises BadInput."""
    address = URL(url)
    if address.scheme not in {"http", "https"} or not address.host:
        raise BadInput(f"{url!r} is not an http URL")
    async with aiohttp.ClientSession(headers=headers, timeout=_TIMEOUT) as http:
        yield SourceApi(name, address, http)


def part(name: str) -> str:
    """Return a name as one part of a path."""
    return quote(name, safe="")


def _wait_s(retry_after: str | None, tried: int) -> float:
    """Return the pause that the API asks for, else one that doubles."""
    if retry_after is not None and retry_after.isdecimal():
        return min(float(retry_after), _MOST_WAIT_S)
    return min(2.0**tried, _MOST_WAIT_S)


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


async def langgraph_records(url: str, key: str | None) -> AsyncGenerator[Record]:
    """Yield all items of the store. Raises CliError when the API refuses or answers in another form."""
    number = 0
    async with source_api("LangGraph", url, {} if key is None else {"x-api-key": key}) as api:
        for _ in range(MOST_PAGES):
            asked: Json = {"namespace_prefix": [], "limit": _PAGE, "offset": number}
            items = api.rows(api.fields(await api.post("store/items/search", asked)).get("items"), "items")
            for value in items:
                number += 1
                yield Record(number, value)
            if not items:
                return
