"""``/livez``: the process is running. ``/readyz``: each dependency, by name, is available."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fastapi import APIRouter
from starlette.responses import JSONResponse

from memloop.wire.base import Wire
from memloop.wire.errors import ErrorEnvelope, MemloopError, Unavailable
from memloop_service.drain import Drain
from memloop_service.errors import ERRORS

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Raises when the dependency is unavailable."""
Warn: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns a sentence for an operator, or None. A process with warnings is still ready."""

CHECK_TIMEOUT_S = 3.0
_OK = "ok"


class Ready(Wire):
    """The ``/readyz`` body when every dependency is available."""

    status: str
    dependencies: dict[str, str]
    warnings: dict[str, str] | None = None
    """By name; omitted when empty."""


class NotReady(ErrorEnvelope):
    """The ``/readyz`` body when a dependency is unavailable: the state of each."""

    status: str
    dependencies: dict[str, str]


def health_routes(
    readiness: Mapping[str, Check], drain: Drain, warnings: Mapping[str, Warn] | None = None
) -> APIRouter:
    """Build both routes. The checks run in parallel, each within three seconds; failures are named with the reason.

    A draining process is not ready, whatever the state of its dependencies.
    """
    router = APIRouter(tags=["health"], responses=ERRORS)

    @router.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": _OK}

    @router.get("/readyz", response_model=Ready, responses={503: {"model": NotReady}})
    async def readyz() -> JSONResponse:
        if drain.begun:
            return _not_ready("draining", "This process is stopping.", {})
        states = await asyncio.gather(*(_state(check) for check in readiness.values()))
        found = dict(zip(readiness, states, strict=True))
        down = [name for name, state in found.items() if state != _OK]
        if not down:
            return JSONResponse({"status": _OK, "dependencies": found, **await _warnings(warnings or {})})
        return _not_ready("not_ready", f"not ready: {', '.join(down)}", found)

    _ = livez, readyz
    return router


async def is_there(check: Check) -> bool:
    """Return whether the dependency answers within three seconds."""
    return await _state(check) == _OK


def _not_ready(code: str, message: str, dependencies: Mapping[str, str]) -> JSONResponse:
    error = Unavailable(message, code=code, retry_after_s=1)
    body = {"status": "unavailable", "dependencies": dependencies, **error.envelope().model_dump(mode="json")}
    return JSONResponse(body, status_code=error.http_status, headers={"Retry-After": "1"})


async def _warnings(warnings: Mapping[str, Warn]) -> dict[str, dict[str, str]]:
    warned = await asyncio.gather(*(_warning(warn) for warn in warnings.values()))
    found = {name: sentence for name, sentence in zip(warnings, warned, strict=True) if sentence is not None}
    return {"warnings": found} if found else {}


async def _warning(warn: Warn) -> str | None:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await warn()
    except (TimeoutError, MemloopError):
        return None


async def _state(check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            await check()
    except TimeoutError:
        return f"no answer within {CHECK_TIMEOUT_S:g} s"
    except MemloopError as error:
        return error.message
    except Exception as error:  # noqa: BLE001 - whatever a driver raises, the dependency is not ready
        return type(error).__name__
    return _OK
