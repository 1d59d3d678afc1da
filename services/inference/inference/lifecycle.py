"""An engine's life as the launcher sees it: starting, warming up, ready; and what it serves."""

import asyncio
import logging
import time
from typing import Literal, TypeAlias

import aiohttp

from inference.engines import EnginePlan
from inference.metrics import LauncherMetrics
from inference.readiness import Lives, wait_until_served
from inference.warmup import warm_up
from memloop.clients import EngineClient
from memloop.profiles import load_profile, profile_files
from memloop.wire.errors import Unavailable

Phase: TypeAlias = Literal["starting", "warming up", "ready"]
_METRICS_EVERY_S = 5.0
_METRICS_TIMEOUT = aiohttp.ClientTimeout(total=3.0)

log = logging.getLogger(__name__)


class Lifecycle:
    """Brings one engine from its start to readiness and then watches its gauges."""

    def __init__(self, plan: EnginePlan, client: EngineClient, metrics: LauncherMetrics) -> None:
        self.plan = plan
        self.profile = load_profile(plan.profile)
        self.profile_files = profile_files(plan.profile)
        self.phase: Phase = "starting"
        self.window_tokens = plan.max_model_len
        self._client = client
        self._metrics = metrics

    async def run(self, process: Lives, *, start_timeout_s: float) -> None:
        """Wait, warm up, then watch until cancelled. Raises NotReady or DependencyError before it was ready."""
        began = time.monotonic()
        window = await wait_until_served(self._client, self.plan.served_name, process, timeout_s=start_timeout_s)
        self.window_tokens = window or self.window_tokens
        self._metrics.start_seconds.set(time.monotonic() - began)
        self.phase = "warming up"
        async for shape, seconds in warm_up(self._client, self.profile):
            self._metrics.warmup_seconds.labels(shape).set(seconds)
        self.phase = "ready"
        self._metrics.up.set(1)
        log.info("ready: %s on %s after %.1f s", self.plan.served_name, self.plan.engine, time.monotonic() - began)
        await self._watch()

    async def check(self) -> None:
        """Readiness: raises Unavailable before the warm-up is done, and when the engine stops to answer."""
        if self.phase != "ready":
            raise Unavailable(f"the engine is {self.phase}", retry_after_s=1)
        await self._client.check()

    def url_for(self, hostname: str | None) -> str:
        """The engine's address for a client that reached us as ``hostname``: an engine that listens openly is there."""
        if self.plan.listens_openly and hostname:
            return f"http://{hostname}:{self.plan.port}"
        return self.plan.url

    async def _watch(self) -> None:
        async with aiohttp.ClientSession(timeout=_METRICS_TIMEOUT) as session:
            while True:
                await self._read_gauges(session)
                await asyncio.sleep(_METRICS_EVERY_S)

    async def _read_gauges(self, session: aiohttp.ClientSession) -> None:
        try:
            async with session.get(f"{self.plan.url}/metrics") as response:
                self._metrics.show_engine(await response.text())
                self._metrics.up.set(1)
        except (aiohttp.ClientError, TimeoutError, ValueError):
            self._metrics.up.set(0)
