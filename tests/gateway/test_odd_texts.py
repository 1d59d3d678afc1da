"""Half characters, NUL and broken escapes in every path, query and header of every route: never a failure of ours."""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from fastapi.routing import APIRoute
from yarl import URL

from gateway.main import build_app
from gateway.settings import GatewaySettings
from tests.fakes.real_store import real_store
from tests.gateway.running import Gateway, running_gateway
from tests.gateway.tenants import routes_of

APP = build_app(GatewaySettings())
ROUTES = [f"{method} {path}" for method, path in routes_of(APP)]
DECLARED: Final = {
    route.path: [field.alias for field in route.dependant.query_params]
    for route in APP.routes
    if isinstance(route, APIRoute)
}
READ_BY_HAND: Final = {"/v1/memories": ["user_id", "agent_id", "run_id", "app_id", "filters"]}
HEADERS: Final[tuple[str, ...]] = (
    "Accept",
    "Idempotency-Key",
    "If-Match",
    "Last-Event-ID",
    "Mcp-Session-Id",
    "Range",
    "traceparent",
    "X-Client-Request-Id",
    "X-Memory-User-Id",
    "X-Request-Timeout",
    "x-stainless-timeout",
)
ODD: Final = {
    "half a character in UTF-8": "%ED%A0%80",
    "half a character in Python": quote(r"{'user_id': '\ud800'}"),
    "half a character in JSON": quote(r'{"user_id":"\ud800"}'),
    "half a name": quote(r"{'\ud800': 'x'}"),
    "a number for a name": quote("{1: 'x', 'user_id': 'x'}"),
    "broken UTF-8": "%FF%FE",
    "NUL": "a%00b",
    "a broken escape": "%ZZ%",
    "a huge number": "9" * 400,
    "a way out": "%2F..%2F..",
    "deep": quote("[" * 300),
}
_BODY: Final = b'{"query":"q","user_id":"u","messages":[{"role":"user","content":"x"}],"model":"m"}'


async def status(it: Gateway, method: str, path: str, headers: Mapping[str, str]) -> int:
    body = None if method in {"GET", "DELETE"} else _BODY
    sent = {"Content-Type": "application/json", **headers}
    async with it.http.request(method, URL(it.url + path, encoded=True), data=body, headers=sent) as response:
        await response.read()
        return response.status


def paths_with(odd: str) -> Iterator[tuple[str, str]]:
    """Each route with the text in its path, and in each of its query's parameters."""
    for route in ROUTES:
        method, template = route.split()
        if "{" in template:
            yield method, re.sub(r"{[^}]*}", odd, template)
        plain = re.sub(r"{[^}]*}", "x", template)
        names = [*DECLARED.get(template, ()), *READ_BY_HAND.get(template, ())]
        for name in names:
            others = "" if name in {"user_id", "filters"} or "user_id" not in names else "&user_id=u"
            yield method, f"{plain}?{name}={odd}{others}"


@pytest.fixture
async def whole(settings: GatewaySettings, redis_url: str, tmp_path: Path) -> AsyncGenerator[Gateway]:
    async with real_store(redis_url, tmp_path) as store:
        changed = {"store_url": store, "sync_wait_s": 0.01, "storage_url": (tmp_path / "objects").as_uri()}
        async with running_gateway(settings.model_copy(update=changed)) as gateway:
            yield gateway


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
async def test_an_odd_text_in_a_path_or_a_query_is_answered_or_refused(whole: Gateway, odd: str) -> None:
    found = {f"{method} {path}": await status(whole, method, path, {}) for method, path in paths_with(odd)}
    assert {asked: code for asked, code in found.items() if code >= 500 and code != 501} == {}


@pytest.mark.parametrize("value", ["\xff\xfe", "9" * 400, "1e999", "nan", ""], ids=repr)
async def test_an_odd_text_in_a_header_is_answered_or_refused(whole: Gateway, value: str) -> None:
    headers: dict[str, str] = dict.fromkeys(HEADERS, value)
    asked = [(route.split()[0], re.sub(r"{[^}]*}", "x", route.split()[1])) for route in ROUTES]
    found = {f"{method} {path}": await status(whole, method, path, headers) for method, path in asked}
    assert {asked: code for asked, code in found.items() if code >= 500 and code != 501} == {}
