"""Our processes for an evaluation: Redis, store, gateway and worker, with their data beside the results."""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.gateway import servers
from benchmarks.gateway.workload import API_KEY
from benchmarks.memory.quality.endpoint import Address

KEY = API_KEY


@contextmanager
def own_stack(folder: Path, model: Address, *, profile: str | None = None) -> Generator[str]:
    """The gateway's base URL. What was stored in the folder by an earlier run is there again. Raises ServerError."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"MEMLOOP_MODEL": model.model, "MEMLOOP_ENGINE_API_KEY": model.api_key, "MEMLOOP_PROFILE": profile}
    settings["MEMLOOP_ENGINE_TEMPLATE_OPTIONS"] = "false" if model.plain else None
    given = {name: value for name, value in settings.items() if value}
    with ExitStack() as stack:
        redis = stack.enter_context(servers.redis_server(folder))
        store = stack.enter_context(servers.memory_store(redis=redis, folder=folder))
        gateway = stack.enter_context(servers.gateway(engine_url=model.url, redis=redis, store=store, settings=given))
        stack.enter_context(servers.worker(engine_url=model.url, redis=redis, store=store, settings=given))
        yield f"http://127.0.0.1:{gateway.port}"


def embedding_threads() -> int:
    """All cores: nothing else runs while turns are embedded."""
    return os.cpu_count() or 1
