"""What a request or a job works with: settings and adapters, built once per process and passed down."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from memloop.clients.engine import EngineClient
from memloop.clients.store import StoreClient
from memloop.ports import Splitter
from memloop.profiles import Profile
from redis.asyncio import Redis

from gateway.auth import KeyRing, load_keys
from gateway.jobs import Jobs
from gateway.metrics import Metrics
from gateway.model import ServedModel
from gateway.settings import GatewaySettings


@dataclass(frozen=True, slots=True)
class Services:
    """The adapters of one process. Nothing here holds state of a request."""

    settings: GatewaySettings
    keys: KeyRing
    metrics: Metrics
    redis: Redis
    store: StoreClient
    engine: EngineClient
    profile: Profile
    splitter: Splitter
    model: str
    """The engine's model id that the loops ask; a chat names its own."""
    jobs: Jobs


@asynccontextmanager
async def open_services(settings: GatewaySettings, metrics: Metrics) -> AsyncIterator[Services]:
    """The adapters of the API or the worker, closed on leaving.

    Waits up to ``startup_wait_s`` for inference to hand over profile and tokenizer, when it is asked for them.
    Raises Unavailable when it does not, KeyFileError and ProfileError on bad settings.
    """
    keys = load_keys(settings)
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(_redis(settings))
        engine = await stack.enter_async_context(engine_client(settings))
        store = await stack.enter_async_context(store_client(settings))
        served = await served_model(settings, engine)
        yield Services(
            settings=settings,
            keys=keys,
            metrics=metrics,
            redis=redis,
            store=store,
            engine=engine,
            profile=served.profile,
            splitter=served.splitter,
            model=served.id,
            jobs=Jobs(redis),
        )
