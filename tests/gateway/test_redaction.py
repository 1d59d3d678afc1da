"""Redaction before anything is stored: every way in, the policies that change it, the counts, and the dry run."""

import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from gateway.settings import GatewaySettings
from gateway.worker import working
from tests.fakes.job_engine import Body, Reply, add_memory, engine_server, last_text, tool_call
from tests.fakes.processes import PATIENCE_S
from tests.fakes.real_store import real_store
from tests.fakes.redis_server import RedisServer
from tests.gateway.api_rig import ALICE_KEY, OPERATED, Api, api, configured
from tests.gateway.redis_view import keys
from tests.gateway.rig import rig, settings_for
from tests.gateway.running import Answer, Gateway, running_gateway

KEYS = f"{OPERATED},{configured('a', 'admin-key', 'scopes=admin')}"
ADMIN = {"X-API-Key": "admin-key"}
ALICE = {"X-API-Key": ALICE_KEY}


def secret(name: str) -> str:
    """A made-up key of the form of a cloud provider's, with the name of its way in."""
    return f"AKIA{name.upper():Z<16.16}"


WAYS = (
    "chat", "stream", "reply", "add", "direct", "metadata", "batch", "patch", "buffer", "memzero", "memzeroput",
    "mcpadd", "mcpedit", "imported", "message", "response", "dead", "verdict", "named", "namedchat", "namedraw",
    "namedbatch", "namedzero", "namedsource",
)  # fmt: skip
ALL = tuple(map(secret, WAYS))


def decider(body: Body) -> Reply:
    """Keeps the words of the turns as they are, buffers one, fails at another, else chats and repeats a secret."""
    text = last_text(body)
    if "never decided" in str(body["messages"]):
        return "No tool at all."
    if "tools" not in body:
        return f"Noted: {secret('reply')}."
    if "half a thought" in text:
        return tool_call("buffer_memory", reason=text[-200:])
    return add_memory(f"Kept: {text[-300:]}")


def said(text: str, **fields: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], "user_id": "alice", **fields}


def named(way: str, **fields: object) -> dict[str, object]:
    """A message whose speaker's name is a secret."""
    message = {"role": "user", "name": secret(way), "content": "I adopted a dog."}
    return {"messages": [message], "user_id": "alice", **fields}


async def ok(gateway: Gateway, method: str, path: str, body: object) -> Any:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    headers = {"Content-Type": "application/json"}
    async with gateway.http.request(method, gateway.url + path, data=raw, headers=headers) as answer:
        assert answer.status in (200, 202), await answer.text()
        return await answer.json()


async def every_way_in(gateway: Gateway) -> None:
    """Write a secret on each way into the memory of alice, and wait for the writes."""
    memory = {"user_id": "alice", "sync": True}
    first = await gateway.chat(f"My key is {secret('chat')}.", memory=memory)
    assert first.json["choices"][0]["message"]["content"] == f"Noted: {secret('reply')}."
    await gateway.chat(f"And {secret('stream')}!", memory=memory, stream=True)
    added = await ok(gateway, "POST", "/v1/memory/add", said(f"Key: {secret('add')}", sync=True))
    assert added["redacted"] == {"key": 1}
    assert added["memories"]
    direct = said(f"It is {secret('direct')}.", infer=False, metadata={"from": [secret("metadata")]})
    event = await ok(gateway, "POST", "/v1/memory/add", direct)
    assert event["redacted"] == {"key": 2}
    item = event["memories"][0]["item"]["id"]
    assert event["memories"][0]["item"]["memory"] == "It is [key redacted]."
    await ok(gateway, "POST", "/v1/memory/batch", {"adds": [said(f"Also {secret('batch')}"), named("namedbatch")]})
    await ok(gateway, "POST", "/v1/memory/add", named("named", sync=True))
    await ok(gateway, "POST", "/v1/memory/add", named("namedraw", infer=False))
    asked = {"model": "m", "messages": named("namedchat")["messages"], "memory": memory}
    await ok(gateway, "POST", "/v1/chat/completions", asked)
    await ok(gateway, "PATCH", f"/v1/memory/{item}", {"memory": f"Now {secret('patch')}", "tags": [secret("patch")]})
    await ok(
        gateway, "POST", f"/v1/memory/{item}/feedback", {"feedback": "helpful", "reason": f"Says {secret('verdict')}"}
    )
    queued = await ok(gateway, "POST", "/v1/memory/add", said(f"half a thought {secret('buffer')}", user_id="dora"))
    await gateway.memory.queue.events.wait("local", queued["event_id"], timeout_s=PATIENCE_S)
    await ok(gateway, "POST", "/v3/memories/add/", said(f"mem0 {secret('memzero')}", infer=False))
    await ok(gateway, "POST", "/v3/memories/add/", named("namedzero", infer=False))
    await ok(gateway, "PUT", f"/v1/memories/{item}/", {"text": f"mem0 {secret('memzeroput')}"})
    for name, arguments in (
        ("memory_add", {"text": f"MCP {secret('mcpadd')}", "user_id": "alice", "infer": False}),
        ("memory_update", {"id": item, "memory": f"MCP {secret('mcpedit')}"}),
    ):
        await mcp(gateway, name, arguments)
    lines = (await gateway.post("/v1/memory/export", {"user_id": "alice"})).raw.splitlines()
    line = orjson.loads(lines[0])
    source = {"role": "user", "content": secret("imported"), "name": secret("namedsource")}
    moved = {"id": str(uuid4()), "user_id": "bo", "key": "imported", "hash": ""}
    line["item"] |= moved | {"memory": f"Imported {secret('imported')}", "sources": [source]}
    raw = orjson.dumps(line)
    imported = await ok(gateway, "POST", "/v1/memory/import", raw)
    assert imported["imported"] == 1, imported
    async with AsyncAnthropic(base_url=gateway.url, api_key="k", max_retries=0) as anthropic:
        asked: Any = [{"role": "user", "content": f"Message {secret('message')}"}]
        await anthropic.messages.create(model="m", max_tokens=64, messages=asked, extra_body={"memory": memory})
    async with AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=0) as openai:
        answer = await openai.responses.create(
            model="m", input=f"Response {secret('response')}", extra_body={"memory": memory}
        )
        assert answer.output_text == f"Noted: {secret('reply')}."
        assert (await openai.responses.retrieve(answer.id)).output_text == "Noted: [key redacted]."
    failed = await ok(
        gateway, "POST", "/v1/memory/add", said(f"never decided {secret('dead')}", user_id="carl", sync=True)
    )
    assert failed["status"] == "kept_verbatim"


async def mcp(gateway: Gateway, tool: str, arguments: Mapping[str, object]) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    answer = await gateway.post("/mcp", body, headers=headers)
    assert b'"isError":true' not in answer.raw.replace(b" ", b""), answer.raw
    assert answer.status == 200, answer.raw


def places(**folders: Path) -> set[tuple[str, str]]:
    """The secrets whose bytes stand in a file, with the folder."""
    texts = {name: b"".join(map(bytes_of, folder.rglob("*"))) for name, folder in folders.items()}
    return {(name, way) for name, text in texts.items() for way in ALL if way.encode() in text}


def bytes_of(path: Path) -> bytes:
    """The file's bytes; none of a folder, or of a file that is replaced meanwhile."""
    with suppress(FileNotFoundError):
        return path.read_bytes() if path.is_file() else b""
    return b""


async def test_no_byte_of_a_secret_is_stored_logged_or_sent_to_the_writer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    redis = RedisServer.start(appendonly=True)
    try:
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(engine_server(decider))
            store = await stack.enter_async_context(real_store(redis.url, tmp_path))
            settings = settings_for(redis.url, engine_url=engine.url, store_url=store)
            gateway = await stack.enter_async_context(running_gateway(settings))
            async with working(gateway.work, settings):
                await gateway.memory.traces.records.switch("local", on=True)
                await every_way_in(gateway)
                events = (await gateway.get("/v1/memory/events?user_id=alice")).raw.decode()
                metrics = (await gateway.get("/metrics")).raw.decode()
            asked_of_the_writer = str([call for call in engine.calls if "tools" in call])
        assert places(store=tmp_path, redis=redis.folder) == set()
        assert [way for way in ALL if way in events or way in caplog.text or way in asked_of_the_writer] == []
        assert "[key redacted]" in asked_of_the_writer
        assert 'memory_redacted_total{kind="key"}' in metrics
    finally:
        redis.stop()


async def test_personal_data_is_kept_until_a_policy_asks_for_less(redis_url: str) -> None:
    async with api(redis_url, decider, api_keys=KEYS) as it:
        assert await stored(it, "Write to ann@example.com.") == "Write to ann@example.com."
        await policy(it, "", {"redaction": {"kinds": ["secrets", "personal"]}})
        assert await stored(it, "Write to ann@example.com.") == "Write to [email redacted]."


async def test_the_users_policy_wins_over_the_agents_and_that_over_the_tenants(redis_url: str) -> None:
    async with api(redis_url, decider, api_keys=KEYS) as it:
        await policy(it, "", {"redaction": {"kinds": ["email"]}})
        await policy(it, "?agent_id=helpdesk", {"redaction": {"enabled": False}})
        await policy(it, "?user_id=bo", {"redaction": {"enabled": True}})
        text = "ann@example.com"
        assert await stored(it, text) == "[email redacted]"
        assert await stored(it, text, agent_id="helpdesk") == text
        assert await stored(it, text, agent_id="helpdesk", user_id="bo") == "[email redacted]"


async def test_without_its_policy_a_level_inherits_again(redis_url: str) -> None:
    async with api(redis_url, decider, api_keys=KEYS) as it:
        await policy(it, "?user_id=alice", {"redaction": {"enabled": False}})
        assert await stored(it, secret("add")) == secret("add")
        state = (await it.call("DELETE", "/v1/admin/memory-policy?user_id=alice", headers=ADMIN)).json
        assert (state["policy"], state["effective"]["redaction"]["enabled"]) == (None, True)
        assert await stored(it, secret("add")) == "[key redacted]"


async def test_the_dry_run_shows_what_a_write_would_lose_and_stores_nothing(redis_url: str) -> None:
    text = f"Ann, ann@example.com, {secret('check')}"
    async with api(redis_url, decider, api_keys=KEYS) as it:
        before = await keys(it.gateway.redis)
        asked = {"texts": [text, "Tea."], "user_id": "alice"}
        shown = (await it.call("POST", "/v1/memory/redaction/check", asked, headers=ALICE)).json
        more = asked | {"kinds": ["personal"]}
        others = (await it.call("POST", "/v1/memory/redaction/check", more, headers=ALICE)).json
        assert [key for key in await keys(it.gateway.redis) if key not in before and "rate" not in key] == []
    assert [each["text"] for each in shown["texts"]] == ["Ann, ann@example.com, [key redacted]", "Tea."]
    assert shown["texts"][0]["found"] == [{"kind": "key", "start": 22, "end": 42}]
    assert (shown["counts"], shown["kinds"]) == ({"key": 1}, ["card", "key", "password", "private_key", "token"])
    assert (others["texts"][0]["text"], others["counts"]) == (f"Ann, [email redacted], {secret('check')}", {"email": 1})


async def test_a_policy_that_cannot_be_is_refused(redis_url: str) -> None:
    wrong: list[tuple[str, object, int]] = [
        ("", {"redaction": {"kinds": ["shoe size"]}}, 422),
        ("", {"redaction": {"enabled": "yes"}}, 422),
        ("", {"colour": "red"}, 400),
        ("?user_id=a&agent_id=b", {}, 422),
    ]
    async with api(redis_url, decider, api_keys=KEYS) as it:
        for query, body, status in wrong:
            answer = await it.call("PUT", f"/v1/admin/memory-policy{query}", body, headers=ADMIN)
            assert answer.status == status, (query, body, answer.raw)


async def test_a_change_of_policy_is_in_the_audit_log(redis_url: str) -> None:
    async with api(redis_url, decider, api_keys=KEYS) as it:
        await policy(it, "?user_id=alice", {"redaction": {"enabled": False}})
        entries = (await it.call("GET", "/v1/admin/audit", headers=ADMIN)).json["data"]
    assert [(entry["action"], entry["target"]) for entry in entries] == [("memory_policy.changed", "user")]


async def test_a_text_that_marks_make_too_long_for_a_turn_becomes_several(redis_url: str) -> None:
    text = "PIN 123 " * 4096
    async with rig(redis_url, decider) as it:
        event_id = await it.write(text)
        event = await it.writes.events.get("local", event_id)
    assert event.redacted == {"password": 4096}


@pytest.mark.parametrize("value", ["everything", "secrets,shoes", ","])
def test_a_setting_that_names_no_kind_stops_the_process_at_its_start(value: str) -> None:
    with pytest.raises(ValueError, match="MEMLOOP_REDACT"):
        GatewaySettings(redact=value)


def test_redaction_can_be_switched_off_for_the_whole_service() -> None:
    assert GatewaySettings(redact="off").redacted_kinds == frozenset()


def test_a_detector_that_is_none_stops_the_process_at_its_start() -> None:
    with pytest.raises(ValueError, match="MEMLOOP_MEMORY_DETECTOR"):
        GatewaySettings(memory_detector="json:nothing")


async def stored(it: Api, text: str, **fields: object) -> str:
    """The memory that a verbatim add stores."""
    answer = await it.call("POST", "/v1/memory/add", said(text, infer=False) | fields, headers=ALICE)
    assert answer.status == 200, answer.raw
    return answer.json["memories"][0]["item"]["memory"]


async def policy(it: Api, query: str, body: object) -> Answer:
    answer = await it.call("PUT", f"/v1/admin/memory-policy{query}", body, headers=ADMIN)
    assert answer.status == 200, answer.raw
    return answer


async def test_the_words_of_a_writer_that_repeats_a_secret_are_redacted_in_its_record(redis_url: str) -> None:
    async with api(redis_url, lambda _: f"Noted: {secret('reply')}.") as it, it.rig.working():
        event = (await it.post("/v1/memory/add", said("I have a cat.", sync=True))).json
        found = (await it.call("GET", f"/v1/memory/events/{event['event_id']}")).raw.decode()
    assert "Noted: [key redacted]" in found
    assert secret("reply") not in found
