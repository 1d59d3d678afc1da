"""Tracks an engine's life: starting, warming up, ready, stopping.

Runs one short generation per shape of request, so that no user waits for the first of its kind.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

import aiohttp

from inference.checkpoint import read_record, read_tokenizer
from inference.engines import EnginePlan
from inference.metrics import EngineLoad, LauncherMetrics, engine_load
from inference.process import ChildProcess
from inference.prompts import files_of, refuses_tools
from inference.stuck import StuckWatch
from inference.template import describe_template
from memloop.chunking import TokenizerSplitter
from memloop.ports import Prompt, Sampling
from memloop.profiles import Profile, ProfileError, check_fit, profile_from_files
from memloop.profiles.profile import PromptName
from memloop.templates import ChatTemplate
from memloop.wire.chat import ChatMessage, Json
from memloop.wire.errors import DependencyError, NotFound, Unavailable
from memloop_clients import EngineClient

Phase: TypeAlias = Literal["starting", "warming up", "ready", "stopping"]
LOOP_PROMPTS: tuple[PromptName, ...] = ("read", "answer", "judge", "integrate", "memory")
_TOKENS = 4
_FILLING = "Warm-up."
_METRICS_EVERY_S = 5.0
_LOOKS_UNTIL_STUCK = 4
_DRAIN_EVERY_S = 0.2
_POLL_S = 0.5
_METRICS_TIMEOUT = aiohttp.ClientTimeout(total=3.0)
log = logging.getLogger(__name__)


def warmup_prompts(profile: Profile, *, tools: bool = True) -> dict[str, Prompt]:
    """Return the requests by name: every loop prompt of the profile with filled slots, and a plain chat.

    Without ``tools`` no request has any, and the memory writer is asked for JSON if the profile can do so.
    """
    prompts: dict[str, Prompt] = {
        "chat": Prompt((ChatMessage(role="user", content=_FILLING),), Sampling(max_tokens=_TOKENS))
    }
    for name in LOOP_PROMPTS if tools else (*LOOP_PROMPTS, "extract"):
        if name in profile.prompts:
            slots = profile.prompts[name].slots
            prompt = profile.prompt(name, **dict.fromkeys(slots, _FILLING))
            if prompt.tools and not tools:
                continue
            prompts[name] = replace(prompt, sampling=replace(prompt.sampling, max_tokens=_TOKENS))
    return prompts


class NotReady(RuntimeError):
    """The engine is not serving the model; the message carries the reason."""


async def wait_until_served(client: EngineClient, model: str, process: ChildProcess, *, timeout_s: float) -> int | None:
    """Poll until the engine lists the model; return its window in tokens, if listed. Raises NotReady.

    Raises NotReady early when the process ends; the watcher of the process has the details.
    """
    last = "it has not answered yet"
    try:
        async with asyncio.timeout(timeout_s):
            while process.exit_code is None:
                try:
                    return _window(await client.get_json("models"), model)
                except (DependencyError, NotReady) as error:
                    last = str(error)
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise NotReady(f"the engine was not ready within {timeout_s:g} s: {last}") from None
    raise NotReady(f"the engine ended with status {process.exit_code} before it was ready")


def _window(listing: Json, model: str) -> int | None:
    served = listing.get("data")
    rows = [row for row in served if isinstance(row, dict)] if isinstance(served, list) else []
    for row in rows:
        if row.get("id") == model:
            window = row.get("max_model_len")
            return window if isinstance(window, int) else None
    raise NotReady(f"it serves {[row.get('id') for row in rows]}, not {model}")


class Lifecycle:
    """Brings one engine from its start to readiness and then watches its gauges."""

    def __init__(
        self, plan: EnginePlan, client: EngineClient, metrics: LauncherMetrics, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.plan = plan
        self.profile_files = files_of(plan)
        self.profile = profile_from_files(self.profile_files)
        self.checkpoint = read_record(Path(plan.model)) if plan.local else None
        self.phase: Phase = "starting"
        self.window_tokens = plan.max_model_len
        self.template: ChatTemplate | None = None
        self._client = client
        self._metrics = metrics
        self._tls = tls or True

    async def run(self, process: ChildProcess, *, start_timeout_s: float, stuck_after_s: float) -> None:
        """Wait, warm up, then watch until cancelled.

        Raises NotReady or DependencyError before it was ready, EngineStuck afterwards.
        """
        began = time.monotonic()
        self.template = await describe_template(self.plan)
        window = await wait_until_served(self._client, self.plan.served_name, process, timeout_s=start_timeout_s)
        self.window_tokens = window or self.window_tokens
        if self.template is None:  # the engine has loaded the model's files by now
            self.template = await describe_template(self.plan)
        try:
            tokenizer = await read_tokenizer(self.plan.model, local=self.plan.local, revision=self.plan.revision)
            splitter = await asyncio.to_thread(TokenizerSplitter, tokenizer)
            check_fit(self.profile, splitter, window_tokens=self.window_tokens or self.profile.budget.window_tokens)
        except NotFound:  # a hub model's tokenizer and its own window are known only now, or never
            log.info("no tokenizer of %s is at hand to check the profile's sizes", self.plan.model)
        except ProfileError as error:
            raise NotReady(str(error)) from error
        self._metrics.start_seconds.set(time.monotonic() - began)
        self.phase = "warming up"
        for shape, prompt in warmup_prompts(self.profile, tools=not refuses_tools(self.plan)).items():
            asked_at = time.monotonic()
            await self._client.complete(prompt)
            self._metrics.warmup_seconds.labels(shape).set(time.monotonic() - asked_at)
        self.phase = "ready"
        self._metrics.up.set(1)
        log.info("ready: %s on %s after %.1f s", self.plan.served_name, self.plan.engine, time.monotonic() - began)
        watch = StuckWatch(self._client, after_s=stuck_after_s)
        every_s = min(_METRICS_EVERY_S, stuck_after_s / _LOOKS_UNTIL_STUCK or _METRICS_EVERY_S)
        async with aiohttp.ClientSession(timeout=_METRICS_TIMEOUT) as session:
            while True:
                load = await self._load(session)
                self._metrics.up.set(load is not None)
                await watch.look(load)
                await asyncio.sleep(every_s)

    async def drain(self, *, drain_s: float, timeout_s: float) -> None:
        """Fail readiness, and serve for ``drain_s`` those who have not seen it; return when no request is left or the
        time is up.
        """
        warm, self.phase = self.phase == "ready", "stopping"
        if not warm:
            return
        await asyncio.sleep(drain_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), aiohttp.ClientSession(timeout=_METRICS_TIMEOUT) as session:
                while True:
                    load = await self._load(session)
                    if load is None or not load.requests:
                        return
                    await asyncio.sleep(_DRAIN_EVERY_S)

    async def check(self) -> None:
        """Check readiness. Raises Unavailable before the warm-up is done and when the engine stops answering."""
        if self.phase != "ready":
            raise Unavailable(f"the engine is {self.phase}", retry_after_s=1)
        await self._client.check()

    def url_for(self, hostname: str | None) -> str:
        """Return the engine's address for a client that reached the launcher as ``hostname``."""
        if self.plan.listens_openly and hostname:
            return f"{self.plan.scheme}://{hostname}:{self.plan.port}"
        return self.plan.url

    async def _load(self, session: aiohttp.ClientSession) -> EngineLoad | None:
        """Read the engine's gauges and copy them to the launcher's metrics; None if the engine does not answer."""
        try:
            async with session.get(f"{self.plan.url}/metrics", ssl=self._tls) as response:
                load = engine_load(await response.text())
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
        self._metrics.show(load)
        return load
