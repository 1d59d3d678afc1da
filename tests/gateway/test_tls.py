"""TLS between the parts, as real processes: each shows a certificate, and the store and what it uses ask for one."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from gateway.settings import GatewaySettings
from tests.fakes.authority import Authority, Pair
from tests.fakes.model_endpoint import KEY, model_endpoint
from tests.fakes.ports import free_port
from tests.fakes.qdrant_server import QdrantStandIn
from tests.fakes.service_process import ServiceProcess, started
from tests.fakes.streaming_engine import FakeEngine
from tests.fakes.tls_front import tls_front

ADD, SEARCH, CHAT = "/v1/memory/add", "/v1/memory/search", "/v1/chat/completions"
PARTS = ("gateway", "store", "engine", "redis", "qdrant")


@dataclass
class Stack:
    """Gateway and store as processes; an authority that signed all certificates, and the one of a rotation."""

    gateway: ServiceProcess
    store: ServiceProcess
    authority: Authority

    async def ask(self, path: str, body: dict[str, Any]) -> Any:
        """The gateway's answer, which is a success, over a new connection."""
        tls = self.authority.of_client()
        async with aiohttp.ClientSession() as http, http.post(self.gateway.url + path, json=body, ssl=tls) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def remember(self, text: str) -> None:
        """Store a memory without the writer."""
        said = {"messages": [{"role": "user", "content": text}], "user_id": "u1", "infer": False}
        await self.ask(ADD, said)

    async def found(self, query: str) -> str:
        """What a search finds, as text."""
        return str(await self.ask(SEARCH, {"query": query, "user_id": "u1"}))


def shows(pair: Pair, authority: Authority) -> dict[str, str]:
    """The settings of a process that shows this certificate on its port and where it connects."""
    return {
        "MEMLOOP_TLS_CERT": str(pair.chain),
        "MEMLOOP_TLS_KEY": str(pair.key),
        "MEMLOOP_CONNECT_CA": str(authority.file),
        "MEMLOOP_CONNECT_CERT": str(pair.chain),
        "MEMLOOP_CONNECT_KEY": str(pair.key),
        "MEMLOOP_METRICS_PORT": str(free_port()),
    }


@asynccontextmanager
async def stack_of(settings: GatewaySettings, engine: FakeEngine, folder: Path) -> AsyncGenerator[Stack]:
    authority = Authority(folder)
    pairs = {part: authority.issue(part) for part in PARTS}

    async def front(part: str, url: str) -> int:
        context = authority.of_server(pairs[part], clients=authority)
        return await stack.enter_async_context(tls_front(urlsplit(url).port or 0, context))

    async with AsyncExitStack() as stack:
        qdrant = await stack.enter_async_context(QdrantStandIn().running())
        models = await stack.enter_async_context(model_endpoint())
        redis = f"rediss://127.0.0.1:{await front('redis', settings.redis_url.get_secret_value())}/0"
        of_store = {
            **shows(pairs["store"], authority),
            "MEMLOOP_TLS_CLIENT_CA": str(authority.file),
            "MEMLOOP_REDIS_URL": redis,
            "QDRANT_URL": f"https://127.0.0.1:{await front('qdrant', qdrant)}",
            "MEMLOOP_EMBEDDING_MODEL": "endpoint:m",
            "MEMLOOP_EMBEDDING_URL": models.url,
            "MEMLOOP_EMBEDDING_API_KEY": KEY,
        }
        store = await stack.enter_async_context(started("memory_store.main", folder, of_store))
        of_gateway = {
            **shows(pairs["gateway"], authority),
            "MEMLOOP_REDIS_URL": redis,
            "MEMLOOP_STORE_URL": store.url,
            "MEMLOOP_ENGINE_URL": f"https://127.0.0.1:{await front('engine', engine.url)}/v1",
        }
        gateway = await stack.enter_async_context(started("gateway.main", folder, of_gateway))
        yield Stack(gateway, store, authority)


async def test_a_chat_and_a_memory_go_over_tls_alone_and_outlive_a_renewal(
    settings: GatewaySettings, engine: FakeEngine, tmp_path: Path
) -> None:
    async with stack_of(settings, engine, tmp_path) as stack:
        await stack.remember("The harbour opens at six.")
        assert "at six" in await stack.found("harbour")
        said = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
        assert (await stack.ask(CHAT, said))["choices"]

        async with aiohttp.ClientSession() as http:
            for url in (stack.store.url, stack.gateway.url):
                with pytest.raises(aiohttp.ClientError):
                    await http.get(url.replace("https:", "http:") + "/livez")
            with pytest.raises(aiohttp.ClientError):
                await http.get(f"{stack.store.url}/livez", ssl=stack.authority.of_client())  # it shows no certificate
            assert (await http.get(f"{stack.store.health_url}/livez")).status == 200

        for part in PARTS:
            stack.authority.issue(part)
        await stack.remember("The ferry leaves at nine.")
        assert "at nine" in await stack.found("ferry")


async def test_a_certificate_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    environment = {"MEMLOOP_TLS_CERT": str(tmp_path / "absent.crt")}
    with pytest.raises(AssertionError, match=r"MEMLOOP_TLS_CLIENT_CA: .*No such file"):
        await ServiceProcess.start("gateway.main", tmp_path, environment)
