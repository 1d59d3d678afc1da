"""Traces for training: only for tenants that asked, only redacted, gone with what they are of."""

import json
from typing import Any

import pytest

from gateway.settings import GatewaySettings
from gateway.traces.keeper import RuleRedactor, TraceRecords, redactor_at
from memloop.wire.traces import Trace
from tests.fakes.job_engine import add_memory, tool_call
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, OPERATED, OPERATOR_KEY, Api, api
from tests.gateway.long_reads import PATH, asked, reader
from tests.gateway.redis_view import connected, keys_that_hold
from tests.gateway.rig import rig, script

SETTINGS, TRACES = "/v1/admin/trace-settings", "/v1/admin/traces"
MAIL = "ann@example.org"
OPERATOR = {"X-API-Key": OPERATOR_KEY}


async def switch(it: Api, tenant: str, *, on: bool) -> Any:
    answer = await it.call("PUT", SETTINGS, {"enabled": on, "tenant": tenant}, headers=OPERATOR)
    assert answer.status == 200, answer.raw
    return answer.json


async def exported(it: Api, tenant: str) -> list[Trace]:
    answer = await it.call("GET", f"{TRACES}?tenant={tenant}", headers=OPERATOR)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/jsonl")
    *lines, count = answer.raw.splitlines()
    assert json.loads(count) == {"exported": len(lines)}
    return [Trace.model_validate_json(line) for line in lines]


async def read(it: Api, key: str, **fields: object) -> str:
    answer = await it.call("POST", PATH, asked(**fields), headers={"X-API-Key": key})
    assert answer.status == 200, answer.raw
    return answer.json["id"]


async def test_without_a_tenants_word_nothing_is_kept_and_nothing_given_out(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it:
        await read(it, ALICE_KEY)
        answer = await it.call("GET", f"{TRACES}?tenant=a", headers=OPERATOR)
        assert (answer.status, answer.error["code"]) == (409, "traces_off")
        async with connected(redis_url) as redis:
            assert not [key for key in await keys_that_hold(redis, b"Where?") if "traces" in key]


async def test_a_read_is_kept_call_by_call_with_its_document_and_answer(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it:
        assert (await switch(it, "a", on=True))["kept"] == 0
        read_id = await read(it, ALICE_KEY)
        (trace,) = await exported(it, "a")
    assert (trace.id, trace.kind, trace.strategy, trace.model) == (read_id, "long_read", "memagent", "m")
    assert [call.content for call in trace.calls] == ["a memory", "a memory", r"\boxed{In Rome.}"]
    assert "<section>" in trace.calls[0].messages[-1].text()
    assert trace.document == asked()["document"]["text"]
    assert [(each.question, each.answer, each.boxed) for each in trace.answers] == [("Where?", "In Rome.", True)]


async def test_a_write_is_kept_with_its_turns_finds_and_decision(redis_url: str) -> None:
    search, add = tool_call("search_memory", query="tea"), add_memory(f"Ann's mail is {MAIL}.")
    async with rig(redis_url, script(add_memory("Ann drinks tea."), search, add)) as it, it.working():
        await it.event(await it.write("I drink tea."))
        await it.work.memory.traces.records.switch("local", on=True)
        event_id = await it.write(f"My mail is {MAIL}.")
        await it.event(event_id)
        (raw,) = [each async for each in it.work.memory.traces.records.all("local")]
    trace = Trace.model_validate_json(raw)
    assert (trace.id, trace.kind, trace.action) == (f"{event_id}.0", "memory_write", "add")
    assert [record.action for record in trace.decisions] == ["search", "add"]
    assert trace.memories == ("Ann's mail is [email 1].",)
    assert [turn.content for turn in trace.turns] == ["My mail is [email 1]."]
    assert trace.tools[0]["type"] == "function"
    assert json.loads(trace.calls[1].tool_calls[0].function.arguments)["memory_list"][0]["value"] == trace.memories[0]
    assert MAIL not in raw


async def test_an_unusable_decision_is_no_example(redis_url: str) -> None:
    async with rig(redis_url, script("nonsense"), job_attempts=1) as it, it.working():
        await it.work.memory.traces.records.switch("local", on=True)
        assert (await it.event(await it.write("I drink tea."))).status == "kept_verbatim"
        assert [each async for each in it.work.memory.traces.records.all("local")] == []


async def test_one_tenants_choice_does_not_bind_another(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it:
        await switch(it, "a", on=True)
        await switch(it, "b", on=True)
        of_a, of_b = await read(it, ALICE_KEY), await read(it, BOB_KEY)
        await switch(it, "b", on=False)
        assert [trace.id for trace in await exported(it, "a")] == [of_a]
        answer = await it.call("GET", f"{TRACES}?tenant=b", headers=OPERATOR)
        assert answer.status == 409
        assert of_b.encode() not in answer.raw


async def test_switching_off_deletes_what_was_kept(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it:
        await switch(it, "a", on=True)
        await read(it, ALICE_KEY, question="Where is the canary?")
        assert (await switch(it, "a", on=False)) == {
            "object": "trace_settings",
            "tenant": "a",
            "enabled": False,
            "kept": 0,
            "keep_s": 30 * 24 * 3600,
        }
        async with connected(redis_url) as redis:
            assert not [key for key in await keys_that_hold(redis, b"canary") if "traces" in key]


async def test_a_deleted_read_takes_its_trace_with_it(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it:
        await switch(it, "a", on=True)
        read_id = await read(it, ALICE_KEY)
        assert (await it.call("DELETE", f"{PATH}/{read_id}", headers={"X-API-Key": ALICE_KEY})).status == 200
        assert await exported(it, "a") == []


async def test_every_switch_and_export_is_in_the_audit_log(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED) as it:
        await switch(it, "a", on=True)
        await exported(it, "a")
        await switch(it, "a", on=False)
        entries = (await it.call("GET", "/v1/admin/audit?tenant=a", headers=OPERATOR)).json["data"]
    assert [(entry["action"], entry["actor_tenant"]) for entry in entries] == [
        ("traces.disabled", "ops"),
        ("traces.exported", "ops"),
        ("traces.enabled", "ops"),
    ]


async def test_a_run_that_is_too_long_is_counted_and_not_kept(redis_url: str) -> None:
    async with api(redis_url, reader, api_keys=OPERATED, max_trace_chars=200) as it:
        await switch(it, "a", on=True)
        await read(it, ALICE_KEY)
        assert await exported(it, "a") == []
        metrics = (await it.get("/metrics")).raw.decode()
    assert 'loop_traces_total{outcome="too_long"} 1.0' in metrics


async def test_the_oldest_traces_make_room(redis_url: str) -> None:
    async with connected(redis_url) as redis:
        records = TraceRecords(redis, keep_s=60.0, most=2)
        await records.switch("a", on=True)
        for number in range(4):
            assert await records.keep(f"t{number}", f'"{number}"', tenant="a", owners=()) == "kept"
        assert [each async for each in records.all("a")] == ['"2"', '"3"']
        assert await records.forget_one("a", "t3") == 1
        assert (await records.settings("a")).kept == 1


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        pytest.param("Write to Ann.B+x@mail.example.co.uk!", "Write to [email 1]!", id="email"),
        pytest.param("Call +49 (0)30 123-456 78.", "Call [phone 1].", id="international-phone"),
        pytest.param("Call 030 1234 5678.", "Call [phone 1].", id="national-phone"),
        pytest.param("Call (212) 555-0187.", "Call [phone 1].", id="american-phone"),
        pytest.param("Pay with 4111 1111 1111 1111.", "Pay with [card 1].", id="card"),
        pytest.param("Order 4111 1111 1111 1112.", "Order 4111 1111 1111 1112.", id="no-card-without-its-check-digit"),
        pytest.param("IBAN DE89 3704 0044 0532 0130 00", "IBAN [iban 1]", id="iban"),
        pytest.param("key sk-proj-abcdefghijklmnop1234", "key [key 1]", id="api-key"),
        pytest.param("AKIAIOSFODNN7EXAMPLE", "[key 1]", id="cloud-key"),
        pytest.param("redis://ann:s3cret@host/0", "redis://[password 1]@host/0", id="password-in-a-url"),
        pytest.param("from 192.168.10.4 today", "from [address 1] today", id="ip-address"),
        pytest.param("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "[token 1]", id="jwt"),
        pytest.param("In 1995, 17 of 2048 (v 1.2.3.4.5).", "In 1995, 17 of 2048 (v 1.2.3.4.5).", id="numbers"),
        pytest.param("On 2026-11-21 at 19:37:05.", "On 2026-11-21 at 19:37:05.", id="a-date-is-no-phone"),
    ],
)
def test_what_names_a_person_or_opens_a_door_is_marked(text: str, clean: str) -> None:
    assert RuleRedactor()(text) == clean


def test_a_private_key_is_taken_out_whole() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert RuleRedactor()(f"x {begin}\nMII\n{end} y") == "x [private key 1] y"


def test_a_value_has_one_mark_in_all_texts_of_a_trace() -> None:
    redact = RuleRedactor()
    assert redact("a@b.org, c@d.org") == "[email 1], [email 2]"
    assert redact("C@D.org") == "[email 2]"


def shout() -> Any:
    return str.upper


def test_another_redactor_is_plugged_in_by_name() -> None:
    assert redactor_at(f"{__name__}:shout")()("quiet") == "QUIET"


@pytest.mark.parametrize("name", ["nowhere:redact", "json:nothing", "json", "json:__doc__"])
def test_a_redactor_that_is_none_stops_the_process_at_its_start(name: str) -> None:
    with pytest.raises(ValueError, match="MEMLOOP_TRACE_REDACTOR"):
        GatewaySettings(trace_redactor=name)
