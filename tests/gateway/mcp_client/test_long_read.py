"""The reading tool: it tells how far it is, and it ends with the client that asked."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from tests.gateway.api_rig import BOB_KEY
from tests.gateway.long_reads import DOCUMENT
from tests.gateway.mcp_client.caller import ERAS, Era, caller, think, told
from tests.gateway.rig import eventually
from tests.gateway.whole import Whole, whole

LONG = DOCUMENT * 200


@pytest.mark.parametrize("era", ERAS)
async def test_a_read_reports_progress_and_answers(it: Whole, era: Era) -> None:
    heard: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del total
        heard.append((progress, message))

    async with caller(it.gateway.url, era=era) as client:
        arguments = {"question": "Where?", "text": LONG}
        read = told(await client.client.call_tool("long_read", arguments, progress_callback=note))
        chunks = read["progress"]["chunks_total"]
        last = f"{read['id']}: chunk {chunks} of {chunks}"
        await eventually(lambda: bool(heard) and heard[-1][1] == last)
    assert (read["status"], read["output_text"], read["model"]) == ("completed", "In Rome.", "m")
    assert chunks > 1
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})


async def test_a_read_can_be_kept_as_a_memory(it: Whole) -> None:
    async with caller(it.gateway.url) as client:
        save = {"user_id": "ann"}
        await client.call("long_read", question="Where?", text=DOCUMENT, save_to_memory=save)

        async def kept() -> bool:
            return [item["memory"] for item in (await client.call("memory_list", user_id="ann"))["items"]] != []

        await eventually(kept)


async def test_reads_of_one_tenant_leave_room_for_those_of_another(redis_url: str, tmp_path: Path) -> None:
    shares = {"max_batch_requests": 2, "tenant_share": 0.5}
    async with (
        whole(redis_url, tmp_path, think, hang_at=1, **shares) as it,
        caller(it.gateway.url) as alice,
        caller(it.gateway.url, BOB_KEY) as bob,
    ):
        first = asyncio.create_task(alice.call("long_read", question="Where?", text=DOCUMENT))
        await it.engine.hanging.wait()
        refused = await alice.refused("long_read", question="Where?", text=DOCUMENT)
        read = await bob.call("long_read", question="Where?", text=DOCUMENT)
        it.engine.let_go.set()
        assert (await first)["status"] == "completed"
    assert (refused["code"], read["status"]) == ("tenant_full", "completed")


async def test_a_client_that_cancels_stops_the_engine(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, think, hang_at=2) as it, caller(it.gateway.url) as client:
        call = asyncio.create_task(client.call("long_read", question="Where?", text=LONG))
        await it.engine.hanging.wait()
        call.cancel()
        await eventually(lambda: it.engine.active == 0)
        await asyncio.wait({call})
        assert len(it.engine.calls) == 2
        assert (await client.call("memory_list", user_id="ann"))["items"] == []
        await eventually(lambda: _is_cancelled(it))


async def _is_cancelled(it: Whole) -> bool:
    """Whether the only read is."""
    (read,) = (await it.gateway.get("/v1/long-read", headers={"X-API-Key": "alice-key"})).json["data"]
    return read["status"] == "cancelled"


async def cancelled_with_a_second_request(it: Whole, *, key: str, changed: dict[str, str] | None = None) -> int:
    """How many engine calls a read of an older client makes when a request that cancels it comes during the second."""
    async with caller(it.gateway.url, era="legacy") as client:
        sent: list[dict[str, str]] = []

        async def note(request: httpx2.Request) -> None:
            sent.append(dict(request.headers))

        client.http.event_hooks = {"request": [note]}
        call = asyncio.create_task(client.call("long_read", question="Where?", text=LONG))
        await it.engine.hanging.wait()
        session = sent[0]["mcp-session-id"]
        headers = {"X-API-Key": key, "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session}
        ids = [{"requestId": number} for number in range(5)]
        for params in ids:
            body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            await it.gateway.post("/mcp", body, headers=headers | (changed or {}))
        it.engine.let_go.set()
        await asyncio.wait({call})
    return len(it.engine.calls)


@pytest.mark.parametrize("own", [True, False], ids=["the client's own", "another session's"])
async def test_an_older_client_cancels_with_a_second_request(redis_url: str, tmp_path: Path, own: bool) -> None:
    async with whole(redis_url, tmp_path, think, hang_at=2) as it:
        changed = {} if own else {"Mcp-Session-Id": "guessed"}
        calls = await cancelled_with_a_second_request(it, key="alice-key", changed=changed)
        assert (calls == 2) == own


async def test_another_tenant_cancels_nothing(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, think, hang_at=2) as it:
        assert await cancelled_with_a_second_request(it, key=BOB_KEY) > 2


async def test_the_older_clients_own_cancelling_stops_its_read(redis_url: str, tmp_path: Path) -> None:
    taken = asyncio.Event()

    async def note(response: httpx2.Response) -> None:
        if b"notifications/cancelled" in response.request.content:
            taken.set()

    async with whole(redis_url, tmp_path, think, hang_at=2) as it, caller(it.gateway.url, era="legacy") as client:
        client.http.event_hooks = {"response": [note]}
        call = asyncio.create_task(client.call("long_read", question="Where?", text=LONG))
        await it.engine.hanging.wait()
        call.cancel()
        await taken.wait()
        it.engine.let_go.set()

        await eventually(lambda: _is_cancelled(it))
        assert len(it.engine.calls) == 2


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_goes_stops_the_engine(redis_url: str, tmp_path: Path, era: Era) -> None:
    async with whole(redis_url, tmp_path, think, hang_at=2) as it:

        async def read() -> None:
            async with caller(it.gateway.url, era=era) as client:
                await client.call("long_read", question="Where?", text=LONG)

        call = asyncio.create_task(read())
        await it.engine.hanging.wait()
        call.cancel()
        await eventually(lambda: it.engine.active == 0)
        await asyncio.wait({call})
        assert len(it.engine.calls) == 2


async def test_a_gateway_that_stops_ends_the_reads_that_run(redis_url: str, tmp_path: Path) -> None:
    async with whole(redis_url, tmp_path, think, hang_at=2) as it:

        async def read() -> None:
            async with caller(it.gateway.url) as client:
                await client.call("long_read", question="Where?", text=LONG)

        call = asyncio.create_task(read())
        await it.engine.hanging.wait()
        engine = it.engine
    assert engine.active == 0
    call.cancel()
    await asyncio.wait({call})
    assert [task for task in asyncio.all_tasks() if task.get_name() == "mcp"] == []
