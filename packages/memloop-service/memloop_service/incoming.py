"""Refuses a request by its address, its headers and its parameters, and finds what the process holds for its routes.

An address must be percent-encoded UTF-8, or it would be read otherwise than it was meant. Decoders put U+FFFD in the
place of every byte that is no UTF-8, so ``%ff`` and ``%fe`` would name one user. A byte beyond ASCII that is not
percent-encoded would be read as Latin-1.

Headers that name the caller or whose data it asks for come at most once. ``If-Match`` names the version of a memory
that a request edits.

A process without keys answers only this machine's own programs, and no page that a browser has open. A page may send
requests to the loopback interface too. Its browser names the page's site in ``Origin``, and in ``Host`` the name that
led here, which may be the page's own (DNS rebinding). A page can send a body without asking first only as a form or as
plain text (Fetch, "CORS-safelisted request-header"), so a JSON route takes nothing but JSON. A port that other machines
reach has other names, so its Host is not checked: such a port without keys serves health and metrics, which no page can
read from there.

An ignored parameter widens a request: ``DELETE /v1/memory?user_id=U&agentId=A`` would erase all of U. So a parameter
that its route would ignore is refused. FastAPI's declaration of the route is the only list of what it knows.
"""

import ipaddress
import json
import re
import secrets
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Final, cast, get_args, get_origin
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

import orjson
from fastapi import Depends, Request, params
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memloop.wire.errors import Forbidden, InvalidRequest, Unauthenticated, UnknownParameter, Unprocessable
from memloop.wire.fields import INVALID_NAME
from memloop_service.errors import RouteError, error_response


def refuse_lost_characters(scope: Scope) -> None:
    """Raise Unprocessable (422 ``invalid_name``) with the name of the query's parameter, or ``path``."""
    if not _is_whole(scope.get("raw_path") or b""):
        raise _refusal("path")
    query: bytes = scope["query_string"]
    if not _is_whole(query):
        first = next(pair for pair in query.split(b"&") if not _is_whole(pair))
        raise _refusal(unquote_to_bytes(first.partition(b"=")[0]).decode("utf-8", "replace"))


def _is_whole(encoded: bytes) -> bool:
    if not encoded.isascii():
        return False
    if b"%" not in encoded:
        return True
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return False
    return True


def _refusal(param: str) -> Unprocessable:
    message = f"{param}: the address must be percent-encoded UTF-8, without half a surrogate pair."
    return Unprocessable(message, param=param, code=INVALID_NAME)


IF_MATCH: Final = r'^(\*|(W/)?"?[0-9]{1,18}"?)$'
"""A version: ``3``, ``"3"`` or ``W/"3"``; ``*`` matches any."""


def version_in(if_match: str) -> int | None:
    """Return the version, or None for any. Raises InvalidRequest for a header of another form."""
    if not re.match(IF_MATCH, if_match):
        raise InvalidRequest("If-Match takes a version number", param="If-Match")
    return None if if_match == "*" else int(if_match.removeprefix("W/").strip('"'))


USER_HEADER: Final = "x-memory-user-id"
AGENT_HEADER: Final = "x-memory-agent-id"
TASK_HEADERS: Final = ("x-memory-task", "x-openwebui-task")
"""Name a front end's own task, such as a title: a chat without memory."""
_SINGLE: Final = (
    "host",
    "authorization",
    "x-api-key",
    "x-memloop-tenant",
    USER_HEADER,
    AGENT_HEADER,
    "idempotency-key",
)
"""No list of several values (RFC 9110, section 5.3)."""


def refuse_repeated(headers: Headers) -> None:
    """Raise InvalidRequest when one of these headers comes twice."""
    if len(set(headers)) == len(headers):
        return
    for name in _SINGLE:
        if len(headers.getlist(name)) > 1:
            raise InvalidRequest(f"The header {name} may come only once.", param=name, code="repeated_header")


_JSON: Final = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)


class LocalOnly:
    """Refuses requests that are not from this machine: 403, and 415 for a body that should be JSON and is not.

    ``listens_at`` is the address that the port is bound to; ``other_bodies`` are the paths whose bodies are not JSON,
    ``other_origins`` those of pages that an operator lets in.
    """

    def __init__(
        self, app: ASGIApp, *, listens_at: str, other_bodies: Collection[str] = (), other_origins: Collection[str] = ()
    ) -> None:
        self._app = app
        self._any_host = not is_loopback(listens_at)
        self._other_bodies, self._other_origins = frozenset(other_bodies), frozenset(other_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, refusal = Headers(scope=scope), None
        if not (self._any_host or _is_here(f"//{headers.get('host', '')}")):
            refusal = Forbidden("Without API keys, the Host header must name a loopback address.", code="foreign_host")
        elif not all(_is_here(origin) or origin in self._other_origins for origin in headers.getlist("origin")):
            refusal = Forbidden("Without API keys, pages of other sites are refused.", code="foreign_origin")
        elif (
            scope["path"] not in self._other_bodies
            and (headers.get("content-length", "0") != "0" or "transfer-encoding" in headers)
            and _JSON.fullmatch(headers.get("content-type", "")) is None
        ):
            refusal = RouteError(415, "The body must be JSON: send 'Content-Type: application/json'.", {})
        await (self._app if refusal is None else error_response(refusal))(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Return whether the host's name or address is this machine's own."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _is_here(url: str) -> bool:
    """Whether the URL's host is the loopback interface, at any port."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        plain = parts.username is None and not parts.path and parts.port != 0  # a port that is none raises
        return plain and is_loopback(host)
    except ValueError:
        return False


async def refuse_wrong_key(request: Request) -> None:
    """Compare the bearer key with ``key`` in the application's state, in constant time; None lets every request pass.

    A dependency. Raises Unauthenticated.
    """
    key: str | None = request.app.state.key
    if key is None:
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    fits = secrets.compare_digest(given.strip().encode(), key.encode())
    if scheme.lower() != "bearer" or not fits:
        raise Unauthenticated("the store's key is missing or wrong")


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


async def refuse_half_characters(request: Request) -> None:
    """Raise Unprocessable (422) for a lone surrogate in a body that FastAPI reads: pydantic would pass it on.

    A dependency.
    """
    raw = await request.body()
    if b"\\ud" in raw or b"\\uD" in raw:
        try:
            json.dumps(await request.json(), ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise Unprocessable("The body has half of a surrogate pair.", code="invalid_json") from error


def of_app(name: str) -> params.Depends:
    """Return the dependency of what the process's ``main`` has put into the application's state under this name.

    It is a coroutine, because FastAPI calls any other function in a thread.
    """

    async def found(request: Request) -> object:
        return getattr(request.app.state, name)

    return Depends(found)
