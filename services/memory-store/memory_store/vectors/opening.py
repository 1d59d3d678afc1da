"""Opens the collection at start, and waits for a server that is not there yet."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator

from memloop.wire.errors import DependencyError, Timeout, Unavailable
from memory_store.vectors.live import LiveCollection
from memory_store.vectors.schema import CollectionSpec, EmbeddingMismatch
from memory_store.vectors.server_version import ServerTooOld

_RETRY_S = 1.0
_log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def kept_open(vectors: LiveCollection, spec: CollectionSpec) -> AsyncGenerator[None]:
    """Open the collection, or keep trying in the background as long as the server is away.

    Every call of the collection raises ``Unavailable`` until then. Raises what ``open`` raises if waiting cannot help.
    The caller closes the collection.
    """
    try:
        await _open(vectors, spec)
    except (Unavailable, Timeout) as error:
        _log.warning("waiting for the vectors, not ready until then: %s (%r)", error.message, error.__cause__)
    waiting = asyncio.create_task(_until_open(vectors, spec), name="opening the vectors")
    try:
        yield
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def _open(vectors: LiveCollection, spec: CollectionSpec) -> None:
    await vectors.open(spec)
    state = None
    with contextlib.suppress(DependencyError):
        state = await vectors.state()
    _log.info("collection %s is open, on %s", spec.name, state or "embedded vectors")
    if state and state.warning:
        _log.warning("%s", state.warning)


async def _until_open(vectors: LiveCollection, spec: CollectionSpec) -> None:
    """Try for ever; log each refusal that waiting cannot end, once."""
    logged = set[str]()
    while not vectors.opened.is_set():
        await asyncio.sleep(_RETRY_S)
        try:
            await _open(vectors, spec)
        except (Unavailable, Timeout):
            continue
        except (DependencyError, EmbeddingMismatch, ServerTooOld) as error:
            if str(error) not in logged:
                _log.error("the vectors cannot be opened: %s", error)
                logged.add(str(error))
