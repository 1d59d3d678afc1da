"""A request's body as it comes in: limited, counted, in time, and unpacked; what its route would ignore,
refused; and what the process holds for its routes.

An ignored parameter widens a request: ``DELETE /v1/memory?user_id=U&agentId=A`` would erase all of U. FastAPI's
declaration of the route is the only list of what it knows.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast, get_args, get_origin
from urllib.parse import parse_qsl

import orjson
from fastapi import Depends, Request, params
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import Message, Receive

from memloop.chores import patient_until
from memloop.wire.errors import InvalidRequest, SlowBody, TooLarge, UnknownParameter
from memloop_service.unpacking import Unpacking

INCOMING: Final = "memloop.incoming"
"""Where a request's scope holds its body."""
_NOTHING: Final[Message] = {"type": "http.request"}


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """A client may take ``timeout_s`` to send a body of up to ``max_bytes``, and a second more per ``bytes_per_s``."""

    max_bytes: int
    timeout_s: float
    bytes_per_s: int


class IncomingBody:
    """Receives a body. Whoever sets ``count`` gets the size of each piece, and may raise an error to refuse it.

    ``unpacking`` is that of a packed body; the limit is on its size before and after, and ``count`` gets the latter.
    """

    def __init__(self, receive: Receive, limits: BodyLimits) -> None:
        self.is_whole = False
        self.count: Callable[[int], None] | None = None
        self.unpacking: Unpacking | None = None
        self._receive = receive
        self._limits = limits
        self._received = self._size = 0
        self._is_all_here = False
        self._waited_s = 0.0

    def check(self, size: int) -> None:
        """Raise TooLarge for a body of that size."""
        if size > self._limits.max_bytes:
            raise TooLarge(f"the body is over the limit of {self._limits.max_bytes} bytes")

    async def next(self) -> Message:
        """Return the next piece, or the client's leaving.

        Raises TooLarge, SlowBody, InvalidRequest for a body that cannot be unpacked, and what ``count`` raises.
        """
        unpacking = self.unpacking
        if unpacking is None or not unpacking.has_more:
            message = await self._sent()
        else:
            await asyncio.sleep(0)  # a small body may unpack to a large one: others have their turn
            message = _NOTHING
        if unpacking is not None and message["type"] == "http.request":
            message = {**message, "body": unpacking.piece(message.get("body", b""))}
            message["more_body"] = unpacking.has_more or not self._is_all_here
            if not message["more_body"]:
                unpacking.end()
        size = len(message.get("body", b""))
        self._size += size
        self.is_whole = not message.get("more_body", False)
        self.check(self._size)
        if size and self.count is not None:
            self.count(size)
        return message

    async def _sent(self) -> Message:
        """Return the client's next message. Only waiting for it counts, not what is done with the body in between."""
        limits, loop = self._limits, asyncio.get_running_loop()
        began = loop.time()
        left_s = limits.timeout_s + self._received / limits.bytes_per_s - self._waited_s
        try:
            async with patient_until(began + left_s):
                message = await self._receive()
        except TimeoutError:
            late = f"{self._received} bytes of the body came in {limits.timeout_s + self._waited_s:.0f} s."
            raise SlowBody(late) from None
        finally:
            self._waited_s += loop.time() - began
        self._received += len(message.get("body", b""))
        self._is_all_here = not message.get("more_body", False)
        self.check(self._received)
        return message


_MANY: Final = (list, tuple, set, frozenset)
_PARSED_BYTES: Final = 1 << 16
_NAMELESS: Final = "body"
DRY_RUN: Final = "dry_run"


async def refuse_unknown(request: Request) -> None:
    """Raise UnknownParameter (400) for what the matched route does not know, InvalidRequest for a repeated parameter.

    A body that the route does not read has UnknownParameter's code, and a message of its own.

    A dependency. ``{}`` as a body asks for nothing, and passes.
    """
    route = cast(APIRoute, request.scope["route"])
    if request.scope["query_string"]:
        known = dict(_query_parameters(route.dependant))
        seen: set[str] = set()
        for name, _ in request.query_params.multi_items():
            if name not in known:
                raise UnknownParameter(name, known=known)
            if name in seen and not known[name]:
                raise InvalidRequest(f"{name} may come only once.", param=name, code="repeated_parameter")
            seen.add(name)
    headers = request.headers
    announced = headers.get("content-length", "").strip(" 0") or "transfer-encoding" in headers
    if announced and not takes_body(route) and (fields := _fields_of(await request.body())):
        known = ", ".join(sorted(dict(_query_parameters(route.dependant)))) or "none"
        message = (
            f"{request.method} reads no body here: {fields[0][:64]!r} would be ignored. Known in the query: {known}."
        )
        raise InvalidRequest(message, param=fields[0][:64], code=UnknownParameter.default_code)


def refuse_unknown_dry_run(request: Request) -> None:
    """Raise UnknownParameter for a dry run of a deletion that has none, on a route that ignores what it does not know.

    A client that asks for a dry run must not lose anything.
    """
    if DRY_RUN in request.query_params:
        known = dict(_query_parameters(cast(APIRoute, request.scope["route"]).dependant))
        if DRY_RUN not in known:
            raise UnknownParameter(DRY_RUN, known=known)


def takes_body(route: APIRoute) -> bool:
    """Return whether the route declares a body, for FastAPI to read or to read by hand."""
    return route.body_field is not None or "requestBody" in (route.openapi_extra or {})


def _fields_of(raw: bytes) -> list[str]:
    """Return the names of the body's fields, ``body`` for one without names, and none for one that asks for nothing."""
    if not raw.strip():
        return []
    if len(raw) > _PARSED_BYTES:
        return [_NAMELESS]
    try:
        value: object = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return [name for name, _ in parse_qsl(raw.decode("latin-1"))] or [_NAMELESS]
    if isinstance(value, dict):
        return [*cast("dict[str, object]", value)]
    return [] if value is None else [_NAMELESS]


def _query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the name of each declared query parameter, and whether it may come more than once."""
    for declared in dependant.query_params:
        kind: object = declared.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for name, field in kind.model_fields.items():
                yield field.alias or name, _is_many(field.annotation)
        else:
            yield declared.alias, _is_many(cast(object, kind))
    for needed in dependant.dependencies:
        yield from _query_parameters(needed)


def _is_many(kind: object) -> bool:
    return any(get_origin(part) in _MANY or part in _MANY for part in (kind, *get_args(kind)))


def of_app(name: str) -> params.Depends:
    """Return the dependency of what the process's ``main`` has put into the application's state under this name.

    It is a coroutine, because FastAPI calls any other function in a thread.
    """

    async def found(request: Request) -> object:
        return getattr(request.app.state, name)

    return Depends(found)
