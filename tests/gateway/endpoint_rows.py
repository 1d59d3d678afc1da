"""One gateway in front of every strict endpoint: each is a model of its models file, and has a worker of its own."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.engine import read_models
from gateway.metrics import Metrics
from gateway.settings import WorkerSettings
from gateway.worker import open_work, working
from memloop_service import new_registry
from tests.fakes.real_store import real_store
from tests.fakes.strict_endpoint import StrictEndpoint, strict_endpoint
from tests.fakes.strict_specs import SPECS, Spec
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway


@dataclass(frozen=True)
class Rows:
    """The running gateway and its endpoints by name."""

    gateway: Gateway
    settings: WorkerSettings
    folder: Path
    endpoints: dict[str, StrictEndpoint]

    def endpoint(self, spec: Spec) -> StrictEndpoint:
        """The endpoint, as if it had just been started."""
        found = self.endpoints[spec.name]
        found.asked.clear()
        found.refusals.clear()
        return found

    @asynccontextmanager
    async def writing(self, spec: Spec, *, profile: str) -> AsyncGenerator[None]:
        """A worker whose writer is the endpoint's model."""
        models = _file(self.folder / "writer.toml", [self.endpoints[spec.name]], f'profile = "{profile}"')
        settings = self.settings.model_copy(update={"models": models})
        async with open_work(read_models(settings), settings, Metrics(new_registry())) as work, working(work, settings):
            yield


@asynccontextmanager
async def all_rows(redis_url: str, folder: Path) -> AsyncGenerator[Rows]:
    """Everything real but the endpoints; no worker."""
    async with AsyncExitStack() as stack:
        endpoints = [await stack.enter_async_context(strict_endpoint(spec)) for spec in SPECS]
        store = await stack.enter_async_context(real_store(redis_url, folder / "store"))
        first = model_of(SPECS[0])
        roles = "\n".join(f'{role} = "{first}"' for role in ("writer", "reader", "chat"))
        models = _file(folder / "models.toml", endpoints, head=f"[roles]\n{roles}\n")
        settings = settings_for(redis_url, models=models, model=None, store_url=store, job_poll_s=0.02)
        gateway = await stack.enter_async_context(running_gateway(settings))
        yield Rows(gateway, settings, folder, {endpoint.spec.name: endpoint for endpoint in endpoints})


def model_of(spec: Spec) -> str:
    """The id under which clients of the gateway name the endpoint's model."""
    return spec.name.replace(",", "").replace(" ", "-")


def _file(path: Path, endpoints: Sequence[StrictEndpoint], *lines: str, head: str = "") -> Path:
    path.write_text(head + "\n".join(_table(endpoint, *lines) for endpoint in endpoints))
    return path


def _table(endpoint: StrictEndpoint, *lines: str) -> str:
    """A model's table. A server that shows its kind itself needs no ``dialect``."""
    spec = endpoint.spec
    dialect = "auto" if spec.owner or spec.probes else spec.dialect
    given = [f'engine_url = "{endpoint.url}"', f'engine_model = "{spec.model}"', f'dialect = "{dialect}"', *lines]
    key = ['api_key_env = "KEY_OF_ENDPOINT"'] if spec.headers else []
    return "\n".join([f'[models."{model_of(spec)}"]', *given, *key, ""])
