"""``/livez``: the process runs. ``/readyz``: so does each of its dependencies, by name."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fastapi import APIRouter
from starlette.responses import JSONResponse

from memloop.wire.base import Wire
from memloop.wire.errors import ErrorEnvelope, MemloopError, Unavailable
from memloop_service.drain import Drain

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Raises when the dependency is not there."""
Warn: TypeAlias = Callable[[], Awaitable[str | None]]
"""Gives a sentence for an operator, or None. A process that warns is ready all the same."""

CHECK_TIMEOUT_S = 3.0
_OK = "ok"


class Ready(Wire):
    """``/readyz`` when every dependency is there, each by name."""

    status: str
    dependencies: dict[str, str]
    warnings: dict[str, str] | None = None
    """By name; left out where there are none."""


class NotReady(ErrorEnvelope):
    """``/readyz`` when one is not: what each of them says."""

    status: str
    dependencies: dict[str, str]


def health_routes(
    readiness: Mapping[str, Check], drain: Drain, warnings: Mapping[str, Warn] | None = None
) -> APIRouter:
    """Both routes. The checks run together, each within three seconds; what fails is named, with the reason.

    A process that takes leave is not ready, whatever its dependencies say.
    """
    router = APIRouter(tags=["health"])

    @router.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": _OK}

    @router.get("/readyz", response_model=Ready, responses={503: {"model": NotReady}})
    async def readyz() -> JSONResponse:
        if drain.begun:
            return _not_ready("draining", "This process is about to stop.", {})
        states = await asyncio.gather(*(_state(check) for check in readiness.values()))
        found = dict(zip(readiness, states, strict=True))
        down = [name for name, state in found.items() if state != _OK]
        if not down:
            return JSONResponse({"status": _OK, "dependencies": found, **await _warnings(warnings or {})})
        return _not_ready("not_ready", f"not ready: {', '.join(down)}", found)

    _ = livez, readyz
    return router


async def is_there(check: Check) -> bool:
    """Whether the dependency answers within three seconds."""
    return await _state(check) == _OK


def _not_ready(code: str, message: str, dependencies: Mapping[str, str]) -> JSONResponse:
    error = Unavailable(message, code=code, retry_after_s=1)
    body = {"status": "unavailable", "dependencies": dependencies, **error.envelope().model_dump(mode="json")}
    return JSONResponse(body, status_code=error.http_status, headers={"Retry-After": "1"})


async def _warnings(warnings: Mapping[str, Warn]) -> dict[str, dict[str, str]]:
    said = await asyncio.gather(*(_warning(warn) for warn in warnings.values()))
    found = {name: sentence for name, sentence in zip(warnings, said, strict=True) if sentence is not None}
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
