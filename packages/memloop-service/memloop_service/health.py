"""``/livez``: the process is running. ``/readyz``: each dependency, by name, is available.

A process that serves a part of its routes without some dependency is ready while that is away: ``degraded``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias, TypeVar, cast

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import JSONResponse

from memloop.chores import patient
from memloop.wire.base import Wire
from memloop.wire.chat import Json
from memloop.wire.errors import ErrorEnvelope, MemloopError, Unavailable
from memloop_service.errors import ERRORS
from memloop_service.incoming import refuse_unknown
from memloop_service.serving import Drain

Check: TypeAlias = Callable[[], Awaitable[object]]
"""Raises when the dependency is unavailable."""
Warn: TypeAlias = Callable[[], Awaitable[str | None]]
"""Returns a sentence for an operator, or None. A process with warnings is still ready."""

Detail: TypeAlias = Callable[[], Awaitable[Json]]
"""Returns what an operator may want to see of a part, beyond whether it works."""

CHECK_TIMEOUT_S = 3.0
_OK = "ok"
_DEGRADED = "degraded"
_Told = TypeVar("_Told")


class StillStarting(Unavailable, code="starting"):
    """The dependency of a process that has just started is not there yet: the process is not ready in any case."""


class Ready(Wire):
    """The ``/readyz`` body of a ready process.

    ``status`` is ``degraded`` while a dependency is away without which the process serves a part of its routes.
    """

    status: str
    dependencies: dict[str, str]
    warnings: dict[str, str] | None = None
    """By name; omitted when empty."""
    details: dict[str, Json] | None = None
    """By name, for ``?verbose``."""


class NotReady(ErrorEnvelope):
    """The ``/readyz`` body when a dependency is unavailable: the state of each."""

    status: str
    dependencies: dict[str, str]


@dataclass(frozen=True, slots=True)
class Health:
    """What a process shows of itself. A failure of an ``optional`` check leaves it ready."""

    drain: Drain
    checks: Mapping[str, Check]
    optional: Collection[str] = ()
    warnings: Mapping[str, Warn] = field(default_factory=dict[str, Warn])
    details: Mapping[str, Detail] = field(default_factory=dict[str, Detail])


router = APIRouter(tags=["health"], dependencies=[Depends(refuse_unknown)], responses=ERRORS)


@router.get("/livez")
async def livez() -> dict[str, str]:
    return {"status": _OK}


# The checks run in parallel, each within three seconds; failures are named with the reason. A draining process is not
# ready, whatever the state of its dependencies. ``?verbose`` adds the details.
@router.get("/readyz", response_model=Ready, responses={503: {"model": NotReady}})
async def readyz(request: Request, verbose: Annotated[str | None, Query()] = None) -> JSONResponse:
    health = cast(Health, request.app.state.health)
    if health.drain.began_at is not None:
        return _not_ready("draining", "This process is stopping.", {})
    found, down = await look(health.checks, health.optional)
    if not down:
        status = _OK if set(found.values()) <= {_OK} else _DEGRADED
        told = await _told(health.details) if verbose is not None else {}
        sentences = await _told(health.warnings)
        more = {name: shown for name, shown in (("warnings", sentences), ("details", told)) if shown}
        return JSONResponse({"status": status, "dependencies": found, **more})
    return _not_ready("not_ready", f"not ready: {', '.join(down)}", found)


async def look(checks: Mapping[str, Check], optional: Collection[str]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the state of each dependency, and the names of those without which the process is not ready."""
    states = dict(zip(checks, await asyncio.gather(*map(_state, checks.values())), strict=True))
    needed = [name for name, state in states.items() if state.starting or name not in optional]
    found = {name: state.text for name, state in states.items()}
    return found, [name for name in needed if found[name] != _OK]


async def is_there(check: Check) -> bool:
    """Return whether the dependency answers within three seconds."""
    return (await _state(check)).text == _OK


def _not_ready(code: str, message: str, dependencies: Mapping[str, str]) -> JSONResponse:
    error = Unavailable(message, code=code, retry_after_s=1)
    body = {"status": "unavailable", "dependencies": dependencies, **error.envelope().model_dump(mode="json")}
    return JSONResponse(body, status_code=error.http_status, headers={"Retry-After": "1"})


async def _told(asked: Mapping[str, Callable[[], Awaitable[_Told | None]]]) -> dict[str, _Told]:
    """Return the answers by name, without those that are None or not in time."""

    async def answer(ask: Callable[[], Awaitable[_Told | None]]) -> _Told | None:
        with suppress(TimeoutError, MemloopError):
            async with patient(CHECK_TIMEOUT_S):
                return await ask()
        return None

    answers = zip(asked, await asyncio.gather(*map(answer, asked.values())), strict=True)
    return {name: told for name, told in answers if told is not None}


@dataclass(frozen=True, slots=True)
class _State:
    """The reason why a dependency is not available, or ``ok``."""

    text: str
    starting: bool = False


async def _state(check: Check) -> _State:
    try:
        async with patient(CHECK_TIMEOUT_S):
            await check()
    except TimeoutError:
        return _State(f"no answer within {CHECK_TIMEOUT_S:g} s")
    except MemloopError as error:
        return _State(error.message, starting=isinstance(error, StillStarting))
    except Exception as error:  # noqa: BLE001 - whatever a driver raises, the dependency is not ready
        return _State(type(error).__name__)
    return _State(_OK)
