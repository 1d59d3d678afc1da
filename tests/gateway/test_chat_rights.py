"""Memory in a chat whose key lacks a memory scope: asked for by name it is refused, named in passing it is left out."""

from collections.abc import AsyncGenerator, Mapping

import pytest

from gateway.settings import GatewaySettings
from tests.fakes.recall_store import FakeStore
from tests.gateway.api_rig import configured
from tests.gateway.running import CHAT, Answer, Gateway, question, running_gateway

KEYS = {
    "neither": "scopes=chat",
    "reads": "scopes=chat+memory:read",
    "writes": "scopes=chat+memory:write",
    "both": "scopes=chat+memory:read+memory:write",
}

ALICE = {"X-Memory-User-Id": "alice"}


@pytest.fixture
async def it(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    entries = ",".join(configured("a", key, options) for key, options in KEYS.items())
    keyed = GatewaySettings.model_validate({**settings.model_dump(), "api_keys": entries})
    async with running_gateway(keyed) as gateway:
        yield gateway


async def chat(it: Gateway, key: str, named: Mapping[str, str] | None = None, /, **fields: object) -> Answer:
    return await it.post(CHAT, question("Hi.", **fields), headers={"X-API-Key": key, **(named or {})})


@pytest.mark.parametrize(
    ("key", "mode", "lacking"),
    [
        ("neither", "readwrite", "memory:read, memory:write"),
        ("reads", "readwrite", "memory:write"),
        ("reads", "write", "memory:write"),
        ("writes", "read", "memory:read"),
    ],
)
async def test_memory_that_is_asked_for_by_name_is_refused(key: str, mode: str, lacking: str, it: Gateway) -> None:
    refused = await chat(it, key, memory={"user_id": "alice", "mode": mode})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (403, "permission_denied", "memory.mode")
    assert refused.error["message"].endswith(f"Missing scopes: {lacking}.")


@pytest.mark.parametrize(("key", "mode"), [("neither", "off"), ("reads", "read"), ("writes", "write")])
async def test_a_mode_that_the_key_allows_is_served(key: str, mode: str, it: Gateway) -> None:
    answer = await chat(it, key, memory={"user_id": "alice", "mode": mode})
    assert answer.status == 200
    assert (answer.json.get("memory") or {"error": None})["error"] is None


async def test_reading_an_oversized_chat_needs_its_own_scope(it: Gateway) -> None:
    refused = await chat(it, "both", memory={"user_id": "alice", "long_context": "auto"})
    assert (refused.status, refused.error["param"]) == (403, "memory.long_context")


@pytest.mark.parametrize(
    ("key", "searches", "writes", "said"),
    [
        ("neither", 0, 0, "neither read nor write"),
        ("reads", 1, 0, "may not write"),
        ("writes", 0, 1, "may not read"),
        ("both", 1, 1, None),
    ],
)
async def test_a_user_named_by_header_gets_the_memory_that_the_key_allows_and_a_report(
    key: str, searches: int, writes: int, said: str | None, it: Gateway, store: FakeStore
) -> None:
    answer = await chat(it, key, ALICE)
    memory = answer.json["memory"]
    assert answer.status == 200
    assert (len(store.searches), len(await it.queued_turns())) == (searches, writes)
    assert memory["error"] is None if said is None else said in memory["error"]


async def test_a_stream_reports_omissions_too(it: Gateway, store: FakeStore) -> None:
    answer = await chat(it, "neither", ALICE, stream=True)
    told = [chunk["memory"]["error"] for chunk in answer.chunks if chunk.get("memory")]
    assert told == ["This key may neither read nor write memories; memory is off."]
    assert not store.searches


async def test_a_chat_without_a_user_gets_no_memory_report(it: Gateway) -> None:
    assert "memory" not in (await chat(it, "neither")).json
