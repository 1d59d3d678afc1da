"""Every route, mem0's and MCP's too, with values at the edge of each type: no answer is a failure of ours."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from yarl import URL

from tests.fakes.streaming_engine import MODEL
from tests.gateway.api_rig import ALICE_KEY, OPERATED, OPERATOR_KEY
from tests.gateway.edge_requests import EdgeRequest, operations, requests, tool_calls
from tests.gateway.edge_values import Edges
from tests.gateway.file_uploads import upload
from tests.gateway.long_reads import asked
from tests.gateway.rig import eventually
from tests.gateway.running import Gateway
from tests.gateway.whole_stack import whole_stack

AT_ONCE = 8
ANSWERED_WITHIN_S = 120.0
INTERNAL_ERROR = -32603
"""JSON-RPC's."""


@dataclass
class Report:
    """What was sent, and what should not have come back."""

    sent: Counter[str] = field(default_factory=Counter[str])
    statuses: Counter[int] = field(default_factory=Counter[int])
    failures: list[str] = field(default_factory=list[str])


async def known(gateway: Gateway) -> dict[str, list[str]]:
    """Things that exist, so that not every id is wrong."""

    async def made(path: str, body: object) -> Any:
        answer = await gateway.post(path, body, headers=authorized(path))
        assert answer.status < 300, answer.raw
        return answer.json

    turn = {"messages": [{"role": "user", "content": "Ann drinks tea."}], "user_id": "u1", "infer": False}
    event = await made("/v1/memory/add", turn)
    item = event["memories"][0]["item"]["id"]
    read = await made("/v1/long-read", asked(model=MODEL, background=True))
    key = await made("/v1/admin/keys", {"name": "spare"})
    file = await upload(gateway, b"one two three", key=ALICE_KEY)
    users = {name: ["u1", "u2"] for name in ("user_id", "agent_id", "run_id", "user", "name")}
    ids = {"item_id": item, "memory_id": item, "event_id": event["event_id"], "read_id": read["id"]}
    ids |= {"key_id": key["id"], "file_id": file["id"], "model": MODEL, "model_id": MODEL, "kind": "user"}
    return users | {name: [value] for name, value in ids.items()}


def authorized(path: str) -> dict[str, str]:
    """The operator's key for routes of the operator, else a tenant's."""
    return {"Authorization": f"Bearer {OPERATOR_KEY if path.startswith('/v1/admin') else ALICE_KEY}"}


async def tools(gateway: Gateway) -> Any:
    """The tools that MCP lists."""
    accepted = {"Accept": "application/json, text/event-stream"}
    asking: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = await gateway.post("/mcp", asking, headers=authorized("/mcp") | accepted)
    return _message(answer.raw)["result"]["tools"]


async def plan(gateway: Gateway, *, seed: int) -> Iterator[EdgeRequest]:
    """Requests of all routes in turn, without an end; MCP's tools count as one route each."""
    components = gateway.app.openapi()["components"]["schemas"]
    edges, listed = Edges(seed, components, await known(gateway)), await tools(gateway)
    routes = [requests(operation, edges) for operation in operations(gateway.app)]
    routes += [tool_calls(listed, edges)] * len(listed)
    return (next(route) for route in cycle(routes))


async def send(gateway: Gateway, request: EdgeRequest, report: Report) -> None:
    """Send one and look at its answer."""
    headers = authorized(request.path) | dict(request.headers)
    url, timeout = URL(gateway.url + request.path, encoded=True), aiohttp.ClientTimeout(total=ANSWERED_WITHIN_S)
    report.sent[request.operation] += 1
    try:
        async with gateway.http.request(
            request.method, url, data=request.body, headers=headers, timeout=timeout
        ) as answer:
            raw = await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        report.failures.append(f"{request} got no answer: {error!r}")
        return
    report.statuses[answer.status] += 1
    if is_failure(request, answer.status, raw):
        report.failures.append(f"{request} got {answer.status} {raw[:500]!r}")


def is_failure(request: EdgeRequest, status: int, raw: bytes) -> bool:
    """Whether the gateway failed. What it does not implement, it may say so."""
    if request.operation == "GET /readyz" and status == 503:
        return orjson.loads(raw)["error"]["code"] != "not_ready"  # a busy machine; it must be ready at the end
    if status >= 500:
        return not (status == 501 and orjson.loads(raw)["error"]["code"] == "not_implemented")
    is_mcp = request.operation.startswith("MCP") and status == 200 and raw
    return bool(is_mcp) and _message(raw).get("error", {}).get("code") == INTERNAL_ERROR


def _message(raw: bytes) -> Any:
    """The message of an MCP answer, as JSON or as the last event."""
    data = [line[6:] for line in raw.splitlines() if line.startswith(b"data: ")]
    return orjson.loads(data[-1] if data else raw)


async def sent(gateway: Gateway, number: int, *, seed: int) -> Report:
    """So many requests over all routes."""
    report, waiting = Report(), islice(await plan(gateway, seed=seed), number)

    async def client() -> None:
        for request in waiting:
            await send(gateway, request, report)

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))
    return report


async def _is_ready(gateway: Gateway) -> bool:
    return (await gateway.get("/readyz")).status == 200


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(1_000, marks=pytest.mark.timeout(600)),
        pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
async def test_no_route_fails_on_values_at_the_edges(redis_url: str, tmp_path: Path, number: int) -> None:
    async with whole_stack(redis_url, tmp_path, api_keys=OPERATED) as gateway:
        began = time.monotonic()
        report = await sent(gateway, number, seed=number)
        expected = {operation.name for operation in operations(gateway.app)}
        await eventually(partial(_is_ready, gateway), timeout_s=ANSWERED_WITHIN_S)
    took_s, statuses = time.monotonic() - began, dict(sorted(report.statuses.items()))
    print(f"\n{report.sent.total()} requests to {len(report.sent)} operations in {took_s:.0f} s: {statuses}")
    assert report.sent.total() == number
    assert expected <= set(report.sent)
    assert len([name for name in report.sent if name.startswith("MCP")]) > 5
    assert report.failures == [], "\n".join(report.failures[:20])
