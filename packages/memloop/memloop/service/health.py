"""``/livez``: the process runs. ``/readyz``: so does each of its dependencies, by name."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fastapi import APIRouter
from starlette.responses import JSONResponse

from memloop.wire.base import Wire
from memloop.wire.errors import ErrorEnvelope, MemloopError, Unavailable

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Raises when the dependency is not there."""

CHECK_TIMEOUT_S = 3.0
_OK = "ok"


class Ready(Wire):
    """``/readyz`` when every dependency is there, each by name."""

    status: str
    dependencies: dict[str, str]


class NotReady(ErrorEnvelope):
    """``/readyz`` when one is not: what each of them says."""

    status: str
    dependencies: dict[str, str]


def health_routes(readiness: Mapping[str, Check]) -> APIRouter:
    """Both routes. The checks run together, each within three seconds; what fails is named, with the reason."""
    router = APIRouter(tags=["health"])

    @router.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": _OK}

    @router.get("/readyz", response_model=Ready, responses={503: {"model": NotReady}})
    async def readyz() -> JSONResponse:
        states = await asyncio.gather(*(_state(check) for check in readiness.values()))
        found = dict(zip(readiness, states, strict=True))
        down = [name for name, state in found.items() if state != _OK]
        if not down:
            return JSONResponse({"status": _OK, "dependencies": found})
        error = Unavailable(f"not ready: {', '.join(down)}", code="not_ready", retry_after_s=1)
        body = {"status": "unavailable", "dependencies": found, **error.envelope().model_dump(mode="json")}
        return JSONResponse(body, status_code=error.http_status, headers={"Retry-After": "1"})

    _ = livez, readyz
    return router


async def is_there(check: Check) -> bool:
    """Whether the dependency answers within three seconds."""
    return await _state(check) == _OK


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
