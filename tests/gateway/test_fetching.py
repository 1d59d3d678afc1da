"""``POST /v1/files/from-url``: documents of the web, from allowed addresses alone."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.fakes.web_server import serving
from tests.gateway.api_rig import Api, api
from tests.gateway.file_uploads import processed, stored
from tests.gateway.long_reads import reader
from tests.gateway.test_files import with_storage

PATH = "/v1/files/from-url"


def pages() -> list[web.RouteDef]:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<h1>Tea</h1><p>at five</p>", content_type="text/html")

    async def moved(request: web.Request) -> web.Response:
        raise web.HTTPFound(request.query["to"])

    async def loop(request: web.Request) -> web.Response:
        raise web.HTTPFound("/loop")

    async def gone(request: web.Request) -> web.Response:
        raise web.HTTPNotFound

    async def large(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 5000)

    async def empty(request: web.Request) -> web.Response:
        return web.Response(body=b"")

    return [
        web.get("/a/tea", page),
        web.get("/moved", moved),
        web.get("/gone", gone),
        web.get("/loop", loop),
        web.get("/large", large),
        web.get("/empty", empty),
    ]


@asynccontextmanager
async def fetching(redis_url: str, folder: Path, **changes: Any) -> AsyncGenerator[tuple[Api, str]]:
    """A gateway that may download from loopback, and a web server there."""
    allowed = {"fetch_urls": True, "fetch_allow_networks": "127.0.0.0/8", "max_file_bytes": 4000}
    async with (
        api(redis_url, reader, **with_storage(folder, **(allowed | changes))) as it,
        serving(pages()) as url,
    ):
        yield it, url


@pytest.mark.parametrize("way", ["/a/tea", "/moved?to=/a/tea"])
async def test_a_page_becomes_a_file_with_its_text(redis_url: str, tmp_path: Path, way: str) -> None:
    async with fetching(redis_url, tmp_path) as (it, url), it.rig.working():
        answer = await it.post(PATH, {"url": url + way, "expires_after_s": 3600})
        assert (answer.status, answer.json["filename"]) == (200, "tea"), answer.raw
        assert answer.json["expires_at"] == answer.json["created_at"] + 3600
        file = await processed(it.gateway, answer.json["id"])
        assert file["status"] == "processed"
        text = await it.get(f"/v1/files/{file['id']}/content?form=text")
        assert text.raw == b"Tea\nat five"


NO_DOCUMENTS = {
    "/gone": (422, "The URL answered 404."),
    "/loop": (422, "The URL redirects too often."),
    "/large": (413, "A file may have at most 4000 bytes."),
    "/empty": (422, "The URL answered with an empty document."),
    "/moved?to=file:///etc/passwd": (422, "The URL redirects to an address that is not downloaded."),
    "/moved?to=http://10.0.0.1/": (422, "The URL's address is not public."),
    "/moved?to=http://169.254.169.254/latest": (422, "The URL's address is not public."),
}


async def test_what_is_no_document_is_refused_and_leaves_nothing(redis_url: str, tmp_path: Path) -> None:
    async with fetching(redis_url, tmp_path) as (it, url):
        for way, refusal in NO_DOCUMENTS.items():
            answer = await it.post(PATH, {"url": url + way})
            assert (answer.status, answer.error["message"]) == refusal
            assert stored(tmp_path) == []


async def test_addresses_that_are_not_public_and_urls_of_another_form_are_refused(
    redis_url: str, tmp_path: Path
) -> None:
    async with fetching(redis_url, tmp_path, fetch_allow_networks="") as (it, _):
        for host in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "[::1]", "localhost", "0.0.0.0"):
            answer = await it.post(PATH, {"url": f"http://{host}:1/a"})
            assert (answer.status, answer.error["message"]) == (422, "The URL's address is not public."), host
        for url in ("ftp://example.org/a", "https://", "https://user:secret@example.org/a", "a b"):
            assert (await it.post(PATH, {"url": url})).status == 422, url


async def test_downloads_are_off_unless_the_operator_allows_them(redis_url: str, tmp_path: Path) -> None:
    async with fetching(redis_url, tmp_path, fetch_urls=False) as (it, url):
        assert (await it.post(PATH, {"url": url + "/a/tea"})).status == 501


async def test_a_body_that_a_form_of_another_site_could_send_is_refused(redis_url: str, tmp_path: Path) -> None:
    async with fetching(redis_url, tmp_path) as (it, url):
        body = f'{{"url": "{url}/a/tea"}}'.encode()
        answer = await it.call("POST", PATH, body, headers={"Content-Type": "text/plain"})
    assert answer.status in (403, 415, 422)
    assert stored(tmp_path) == []
