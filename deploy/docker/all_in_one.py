#!/usr/bin/env python3
"""Runs the all-in-one image: Redis, the memory store, the gateway and its worker, in one container.

They start in this order. When one of them dies, all are stopped and the status is 1, so that the container's restart
policy starts them again; on SIGTERM they are stopped and the status is 0. Standard library only.
"""

import asyncio
import hashlib
import os
import secrets
import signal
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

DATA = Path("/data")
KEYS = "api-keys"
APP_SCOPES = "chat+memory:read+memory:write+long-read"
SHORTEST_KEY = 16
LOOPBACK = ("localhost", "127.0.0.1", "::1")
POLL_S = 0.1
GIVEN_KEYS = ("MEMLOOP_API_KEYS", "MEMLOOP_API_KEYS_FILE")
REDIS_PORT, STORE_PORT, WORKER_PORT = 6379, 7801, 7804


class Refused(Exception):
    """The container cannot start as it was run; the message is the way out."""


@dataclass(frozen=True)
class Part:
    """A process. It is ready once ``is_ready`` returns true; ``given`` is its standard input."""

    name: str
    command: Sequence[str]
    is_ready: Callable[[], Awaitable[bool]]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    given: bytes = b""
    start_s: float = 300.0
    grace_s: float = 20.0


def main() -> int:
    """Run until a signal or a death. Returns the exit status: 2 for a wrong environment."""
    try:
        environment = prepared(os.environ, DATA)
    except Refused as refusal:
        print(f"memloop: {refusal}", file=sys.stderr, flush=True)
        return 2
    port = environment["MEMLOOP_PORT"]
    return asyncio.run(run(stages(environment, DATA), f"memloop: ready; the API is on port {port} of this container"))


def prepared(given: Mapping[str, str], data: Path) -> dict[str, str]:
    """The environment of gateway and worker. Makes the folders and, where none is given, a key. Raises Refused."""
    if not (given.get("MEMLOOP_ENGINE_URL") or given.get("MEMLOOP_MODELS")):
        raise Refused("set MEMLOOP_ENGINE_URL to the OpenAI base URL of your model: -e MEMLOOP_ENGINE_URL=https://…/v1")
    if urlsplit(given.get("MEMLOOP_ENGINE_URL", "")).hostname in LOOPBACK:
        print(
            "memloop: MEMLOOP_ENGINE_URL names this container itself. An engine on its host is at "
            "http://host.docker.internal:PORT/v1, with --add-host host.docker.internal:host-gateway",
            file=sys.stderr,
        )
    try:
        for name in ("redis", "edge", "documents"):
            (data / name).mkdir(exist_ok=True)
        keys = {} if any(given.get(name) for name in GIVEN_KEYS) else {"MEMLOOP_API_KEYS": _keys(given, data)}
    except OSError as error:
        raise Refused(f"{data} must be writable for the user {os.getuid()}: {error}") from error
    password = secrets.token_urlsafe(32)
    ours = {
        "MEMLOOP_REDIS_URL": f"redis://:{password}@127.0.0.1:{REDIS_PORT}/0",
        "MEMLOOP_STORE_URL": f"http://127.0.0.1:{STORE_PORT}",
        "MEMLOOP_STORE_KEY": secrets.token_urlsafe(32),
    }
    default = {"MEMLOOP_PORT": "7800", "MEMLOOP_STORAGE_URL": (data / "documents").as_uri()}
    return {**default, **{name: value for name, value in given.items() if value}, **keys, **ours}


def _keys(given: Mapping[str, str], data: Path) -> str:
    """The entry of the application's key: the given one, that of an earlier start, or a new one, printed once."""
    kept, key = data / KEYS, given.get("MEMLOOP_API_KEY", "")
    if key and len(key) < SHORTEST_KEY:
        raise Refused(f"MEMLOOP_API_KEY must have at least {SHORTEST_KEY} characters")
    if key or not kept.exists():
        chosen = key or f"ml_{secrets.token_urlsafe(32)}"
        entry = f"local:{hashlib.sha256(chosen.encode()).hexdigest()} scopes={APP_SCOPES}"
        if key:
            return entry
        kept.touch(mode=0o600)
        kept.write_text(f"{entry}\n")
        print(f"memloop: the API key, shown this once: {chosen}", flush=True)
    return kept.read_text().strip()


_OF_THE_GATEWAY = (
    *("MEMLOOP_METRICS_PORT", "MEMLOOP_UNIX_SOCKET"),
    *("MEMLOOP_TLS_CERT", "MEMLOOP_TLS_KEY", "MEMLOOP_TLS_CLIENT_CA"),
)
"""How the container is reached: between its parts go plain requests on the loopback."""


def stages(environment: Mapping[str, str], data: Path) -> Sequence[Sequence[Part]]:
    """The parts, by the order of their start."""
    password = urlsplit(environment["MEMLOOP_REDIS_URL"]).password or ""
    redis = [
        *(f"requirepass {password}", f"port {REDIS_PORT}", "bind 127.0.0.1", f"dir {data / 'redis'}", 'save ""'),
        *("appendonly yes", "appendfsync always", "maxmemory-policy noeviction"),
        f"maxmemory {environment.get('MEMLOOP_REDIS_MAXMEMORY', '1gb')}",
    ]
    inside = {**environment, **dict.fromkeys(_OF_THE_GATEWAY, ""), "MEMLOOP_HOST": "127.0.0.1"}
    store = {**inside, "MEMLOOP_PORT": str(STORE_PORT), "MEMLOOP_DATA_DIR": str(data / "edge")}
    worker = {**inside, "MEMLOOP_PORT": str(WORKER_PORT)}
    gateway_port = int(environment["MEMLOOP_PORT"])
    return (
        [Part("redis", ["redis-server", "-"], listens(REDIS_PORT), environment, "\n".join(redis).encode())],
        [_python("store", "memory_store.main", answers(STORE_PORT), store)],
        [
            _python("worker", "gateway.worker", listens(WORKER_PORT), worker),
            _python("gateway", "gateway.main", listens(gateway_port), environment),
        ],
    )


def _python(name: str, module: str, is_ready: Callable[[], Awaitable[bool]], environment: Mapping[str, str]) -> Part:
    return Part(name, [sys.executable, "-m", module], is_ready, environment)


def listens(port: int) -> Callable[[], Awaitable[bool]]:
    """Whether a connection to the port of this machine is accepted."""

    async def check() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return False
        writer.close()
        return True

    return check


def answers(port: int) -> Callable[[], Awaitable[bool]]:
    """Whether ``/readyz`` on the port answers 200."""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    return lambda: asyncio.to_thread(ask)


async def run(stages: Sequence[Sequence[Part]], ready: str) -> int:
    """Start the stages in turn, print ``ready``, and wait for a signal or a death; then stop all, the last first."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    started: list[list[_Running]] = []
    try:
        return await _watched(stages, started, stop, ready)
    except TimeoutError as late:
        print(f"memloop: {late}", file=sys.stderr, flush=True)
        return 1
    finally:
        for stage in reversed(started):
            await asyncio.gather(*(one.stop() for one in stage))


async def _watched(
    stages: Sequence[Sequence[Part]], started: "list[list[_Running]]", stop: asyncio.Event, ready: str
) -> int:
    for stage in stages:
        started.append([])
        for part in stage:
            started[-1].append(await _started(part))
        status = await _first(started, stop, asyncio.gather(*(_until_ready(part) for part in stage)))
        if status is not None:
            return status
    print(ready, flush=True)
    return await _first(started, stop, asyncio.Event().wait()) or 0


@dataclass(frozen=True)
class _Running:
    part: Part
    process: asyncio.subprocess.Process

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL after the grace."""
        if self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), self.part.grace_s)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


async def _started(part: Part) -> _Running:
    process = await asyncio.create_subprocess_exec(
        *part.command, stdin=asyncio.subprocess.PIPE, env=dict(part.environment), start_new_session=True
    )
    if process.stdin is not None:
        process.stdin.write(part.given)
        process.stdin.close()
    return _Running(part, process)


async def _until_ready(part: Part) -> None:
    try:
        async with asyncio.timeout(part.start_s):
            while True:
                if await part.is_ready():
                    return
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        raise TimeoutError(f"{part.name} was not ready within {part.start_s:.0f} s") from None


async def _first(started: Sequence[Sequence[_Running]], stop: asyncio.Event, work: Awaitable[object]) -> int | None:
    """None when the work is done, 0 at a signal, 1 at a death, whichever comes first. Raises what the work raises."""
    done, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    deaths = {asyncio.ensure_future(one.process.wait()): one.part.name for stage in started for one in stage}
    try:
        await asyncio.wait({done, stopped, *deaths}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            return 0
        for death, name in deaths.items():
            if death.done():
                print(f"memloop: {name} ended with status {death.result()}; stopping", file=sys.stderr, flush=True)
                return 1
        done.result()
        return None
    finally:
        for one in (done, stopped, *deaths):
            one.cancel()
        await asyncio.gather(done, stopped, *deaths, return_exceptions=True)


if __name__ == "__main__":
    sys.exit(main())
