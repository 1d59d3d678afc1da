"""The API below a path of a proxy, on a Unix socket, and before an engine with a certificate of its own authority."""

from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.requests import Request

from gateway.mem0.answers import url_of
from gateway.settings import GatewaySettings
from memloop_service import ServiceSettings
from memloop_service.serving import main_listener
from tests.fakes.authority import Authority
from tests.fakes.streaming_engine import FakeEngine
from tests.fakes.tls_front import tls_front
from tests.gateway.running import CHAT, question, running_gateway
from tests.memloop_service.small_process import small_process


@pytest.mark.parametrize("left", ["/ai/memloop", ""], ids=["the proxy leaves the path", "the proxy removes it"])
async def test_routes_answer_below_the_path_of_a_proxy(left: str, settings: GatewaySettings) -> None:
    async with running_gateway(settings, root_path="/ai/memloop/") as gateway:
        assert (await gateway.post(left + CHAT, question())).status == 200
        assert (await gateway.post(f"{left}{CHAT}/", question())).status == 200
        refused = await gateway.post(f"{left}/v1/messages", {})
        assert refused.json["type"] == "error", "the path has Anthropic's style"
        assert (await gateway.get(f"{left}/livez")).status == 200
        document = (await gateway.get(f"{left}/openapi.json")).json
        assert document["servers"] == [{"url": "/ai/memloop"}]
        other = await gateway.get(f"/ai/memloops{CHAT}")
        assert other.status == 404


def test_links_lead_through_the_proxy() -> None:
    """mem0's lists link their pages."""
    scope = {"type": "http", "path": "/v3/memories", "root_path": "/ai", "query_string": b"page=2", "scheme": "https"}
    asked = Request({**scope, "headers": [(b"host", b"site.example"), (b"x-forwarded-proto", b"https")]})
    assert str(url_of(asked)) == "https://site.example/ai/v3/memories/?page=2"


@pytest.mark.parametrize("path", ["memloop", "/v1", "/mcp/x", "/a b", "/a?b", "https://x"])
def test_a_path_that_is_none_or_one_of_the_api_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="a path such as /memloop"):
        GatewaySettings(root_path=path)


def test_a_process_may_listen_on_a_unix_socket_alone(tmp_path: Path) -> None:
    path = tmp_path / "memloop.sock"
    with small_process(unix_socket=path) as small:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost") as client:
            assert client.get("/livez").status_code == 200
            made = client.post("/things", json={"name": "tea"})
            assert made.json() == {"name": "tea", "count": 1}
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{small.port}/livez")
        with small_process(unix_socket=tmp_path / "other.sock"):
            assert path.is_socket()
        with pytest.raises(SystemExit, match=r"memloop\.sock: Address already in use"):
            main_listener(ServiceSettings(unix_socket=path))
    assert path.is_socket(), "it stays behind, and the next process replaces it"
    with small_process(unix_socket=path):
        pass


def test_a_file_in_the_place_of_a_socket_stays(tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text("mine")
    with pytest.raises(SystemExit, match="cannot listen on"):
        main_listener(ServiceSettings(unix_socket=note))
    assert note.read_text() == "mine"


@pytest.mark.parametrize("trusts", [True, False])
async def test_an_engine_of_an_own_authority_is_trusted_by_setting_or_refused_with_the_reason(
    trusts: bool, settings: GatewaySettings, engine: FakeEngine, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    context = authority.of_server(authority.issue("engine"))
    async with tls_front(urlsplit(settings.engine_url).port or 0, context) as port:
        more = {"connect_ca": str(authority.file)} if trusts else {}
        async with running_gateway(settings, engine_url=f"https://127.0.0.1:{port}/v1", **more) as gateway:
            answer, ready = await gateway.post(CHAT, question()), await gateway.get("/readyz")
    if trusts:
        assert answer.status == 200
    else:
        assert answer.status == 503
        assert b"its certificate is refused (unable to get local issuer certificate)" in ready.raw
        assert b"MEMLOOP_CONNECT_CA" in ready.raw


async def test_a_plain_engine_behind_an_https_url_is_named(settings: GatewaySettings, engine: FakeEngine) -> None:
    url = settings.engine_url.replace("http://", "https://")
    async with running_gateway(settings, engine_url=url) as gateway:
        ready = await gateway.get("/readyz")
    assert b"it does not speak TLS; is its URL one of http://?" in ready.raw
