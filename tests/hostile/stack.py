"""The real stack as processes at the chart's default limits: Redis, store, gateway, worker; a scripted engine."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp

from tests.fakes.redis_server import RedisServer
from tests.fakes.service_process import ServiceProcess, started
from tests.gateway.api_rig import TWO_TENANTS
from tests.hostile.chart import defaults_of

WEBHOOK_SECRET: Final = "whsec_" + "bWVtbG9vcC1ob3N0aWxlLXRlc3Qtc2VjcmV0"
_COMPONENTS: Final = {"gateway": "gateway", "worker": "worker", "store": "memoryStore"}
_REDIS: Final = ("--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
"""The chart's ``redis.maxMemory``."""
_LOOPBACK_WEBHOOKS: Final = {
    "MEMLOOP_WEBHOOK_SECRET": WEBHOOK_SECRET,
    "MEMLOOP_WEBHOOK_ALLOW_HTTP": "true",
    "MEMLOOP_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
}
"""Beyond the chart's defaults: the host that hangs is on this machine."""


@dataclass(frozen=True)
class Stack:
    """The running processes."""

    engine: ServiceProcess
    redis: RedisServer
    ours: Mapping[str, ServiceProcess]
    """Gateway, worker and store."""

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self.ours["gateway"].url

    async def unfinished_jobs(self) -> float:
        """The jobs of all queues but that of webhooks, whose retries wait for hours."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.ours['worker'].url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        depths = [line for line in lines if line.startswith("job_queue_depth{") and '"webhooks"' not in line]
        return sum(float(line.rpartition(" ")[2]) for line in depths)

    async def release_engine(self) -> None:
        """Let the engine answer those that it makes wait."""
        async with aiohttp.ClientSession() as http, http.post(f"{self.engine.url}/release") as answer:
            assert answer.status == 200


def memory_limits() -> dict[str, int]:
    """The chart's memory limit of each process, in bytes."""
    return {name: defaults_of(component).memory_bytes for name, component in _COMPONENTS.items()}


@asynccontextmanager
async def hostile_stack(
    folder: Path, *, redis_folder: Path | None = None, redis_options: Sequence[str] = ()
) -> AsyncGenerator[Stack]:
    """The stack, ready; one process of each kind. ``redis_options`` come after the chart's."""
    async with AsyncExitStack() as stack:
        redis = RedisServer.start(folder=redis_folder, appendonly=True, options=(*_REDIS, *redis_options))
        stack.callback(redis.stop)
        engine = await stack.enter_async_context(started("tests.hostile.engine", folder, {}))
        shared = {"MEMLOOP_REDIS_URL": redis.url}
        at_store = {"MEMLOOP_DATA_DIR": str(folder / "edge"), "HF_HUB_OFFLINE": "1"}
        store = await stack.enter_async_context(
            started("memory_store.main", folder, defaults_of("memoryStore").settings | shared | at_store)
        )
        shared |= {
            "MEMLOOP_STORE_URL": store.url,
            "MEMLOOP_ENGINE_URL": f"{engine.url}/v1",
            "MEMLOOP_MODEL": "m",
            "MEMLOOP_API_KEYS": TWO_TENANTS,
            "MEMLOOP_STORAGE_URL": (folder / "objects").as_uri(),
        } | _LOOPBACK_WEBHOOKS
        gateway = await stack.enter_async_context(
            started("gateway.main", folder, defaults_of("gateway").settings | shared)
        )
        worker = await stack.enter_async_context(
            started("gateway.worker", folder, defaults_of("worker").settings | shared)
        )
        yield Stack(engine, redis, {"gateway": gateway, "worker": worker, "store": store})
