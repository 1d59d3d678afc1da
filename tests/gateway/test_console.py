"""``/console`` and ``/docs``: static files of a build, safe headers, deep links, any path prefix; or none was built."""

import gzip
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from yarl import URL

from gateway.settings import GatewaySettings
from tests.gateway.running import Answer, Gateway, running_gateway

HTML = '<!doctype html><base href="./" /><script type="module" src="./assets/index-a1.js"></script>'
SCRIPT = "export {};\n"
PAGES = (
    "/console/",
    "/console/memories",
    "/console/memories?user=ann",
    "/console/a/b%2Fc",
    "/console/a/",
    "/docs",
    "/docs/",
)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder as the console's build leaves it, read-only."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(HTML)
    (folder / "docs.html").write_text(HTML.replace("index", "docs"))
    (folder / "icon.svg").write_text("<svg/>")
    (folder / "assets" / "index-a1.js").write_text(SCRIPT)
    (folder / "assets" / "index-a1.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


@pytest.fixture
async def console(settings: GatewaySettings, built: Path) -> AsyncGenerator[Gateway]:
    """A gateway with that console."""
    async with running_gateway(settings, console=built) as gateway:
        yield gateway


async def fetched(gateway: Gateway, path: str, **headers: str) -> Answer:
    """The answer to a GET, with no redirect followed and no body decoded."""
    url = URL(gateway.url + path, encoded=True)
    async with gateway.http.get(url, headers=headers, allow_redirects=False) as response:
        return Answer(response.status, response.headers, await response.read())


async def test_a_page_allows_its_own_origin_alone_and_finds_its_files_below_any_prefix(console: Gateway) -> None:
    for path in PAGES:
        answer = await fetched(console, path)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/html")
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'self'"
        assert not {"script-src", "style-src", "connect-src"} & set(policy)
        assert policy["frame-ancestors"] == "'none'"
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-cache"
        [base] = re.findall('<base href="([^"]*)" />', answer.raw.decode())
        for prefix in ("", "/team/memloop", "/console"):
            seen = f"https://proxy.example{prefix}{path}"
            assert urljoin(seen, base) == f"https://proxy.example{prefix}/console/"


async def test_the_start_page_is_at_a_slash_below_any_prefix(console: Gateway) -> None:
    answer = await fetched(console, "/console")
    assert answer.status == 307
    assert urljoin("https://proxy.example/p/console", answer.headers["Location"]) == "https://proxy.example/p/console/"


async def test_a_hashed_asset_is_kept_and_compressed(console: Gateway) -> None:
    answer = await fetched(console, "/console/assets/index-a1.js", **{"Accept-Encoding": "gzip, br"})
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "javascript" in answer.headers["Content-Type"]
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept-Encoding"
    plain = await fetched(console, "/console/assets/index-a1.js", **{"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.raw == answer.raw == SCRIPT.encode()


async def test_a_file_without_a_hash_is_asked_for_again(console: Gateway) -> None:
    answer = await fetched(console, "/console/icon.svg")
    assert (answer.raw, answer.headers["Cache-Control"]) == (b"<svg/>", "no-cache")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_missing_asset_is_not_a_page(console: Gateway) -> None:
    answer = await fetched(console, "/console/assets/gone-b2.js")
    assert (answer.status, answer.error["code"]) == (404, "not_found")


async def test_no_path_leads_out_of_the_folder(console: Gateway, built: Path) -> None:
    (built.parent / "secret").write_text("canary-4711")
    for path in ("/console/..%2f..%2fsecret", "/console/%2e%2e/secret", "/console//etc/passwd"):
        answer = await fetched(console, path)
        assert b"canary" not in answer.raw
        assert b"root:" not in answer.raw


async def test_without_a_build_the_page_states_what_to_do(settings: GatewaySettings, tmp_path: Path) -> None:
    async with running_gateway(settings, console=tmp_path) as gateway:
        for path in ("/console/", "/console/memories", "/docs"):
            answer = await fetched(gateway, path)
            assert answer.status == 404
            assert answer.headers["Content-Type"].startswith("text/html")
            assert b"make console" in answer.raw
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert (await gateway.get("/livez")).status == 200


async def test_the_pages_that_load_from_a_cdn_are_gone(console: Gateway) -> None:
    assert (await fetched(console, "/redoc")).status == 404
    assert b"cdn" not in (await fetched(console, "/docs")).raw
