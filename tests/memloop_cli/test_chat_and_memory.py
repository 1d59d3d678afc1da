"""``memloop chat`` and ``memloop memory``."""

import pytest

from memloop.wire.memory import MemoryItem
from memloop.wire.memory_events import DecisionRecord
from memloop.wire.memory_requests import FoundMemories
from memloop.wire.quality import QualityAudit
from tests.fakes.gateway_server import AUDIT, EVENT, FakeGateway
from tests.memloop_cli.conftest import Memloop, lines


def test_a_turn_shows_the_reply_what_was_recalled_and_what_was_decided(memloop: Memloop) -> None:
    result = memloop("chat", "--user", "u1", typed="What is my locker code?\n")
    assert result.exit_code == 0
    shown = lines(result)
    assert shown[1].endswith("assistant  Your locker code is 482.")
    assert shown[2] == "recalled The locker code of the user is 482."
    assert shown[3] == "search   “locker code”"
    assert shown[4] == "because: It may have changed."
    assert shown[5] == "add      Stored the locker code."
    assert shown[6] == "because: It is new."
    assert shown[7] == "stored   The locker code of the user is 482.  (UserMemory, inserted)"


def test_the_user_and_the_history_travel_with_every_turn(memloop: Memloop, gateway: FakeGateway) -> None:
    memloop("chat", "--user", "u1", typed="One.\nTwo.\n")
    _, second = gateway.bodies("/v1/chat/completions")
    assert second["memory"] == {"user_id": "u1"}
    assert second["messages"] == [
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "Your locker code is 482."},
        {"role": "user", "content": "Two."},
    ]


def test_new_starts_a_conversation_without_history(memloop: Memloop, gateway: FakeGateway) -> None:
    memloop("chat", typed="One.\n/new\nTwo.\n/quit\nThree.\n")
    _, second = gateway.bodies("/v1/chat/completions")
    assert second["messages"] == [{"role": "user", "content": "Two."}]


@pytest.mark.parametrize(
    ("options", "sent"),
    [((), None), (("--thinking",), {"enable_thinking": True}), (("--no-thinking",), {"enable_thinking": False})],
)
def test_thinking_is_the_models_own_choice_unless_it_is_set(
    memloop: Memloop, gateway: FakeGateway, options: tuple[str, ...], sent: object
) -> None:
    memloop("chat", *options, typed="One.\n")
    assert gateway.bodies("/v1/chat/completions")[0].get("chat_template_kwargs") == sent


def test_a_failed_turn_is_printed_and_the_chat_goes_on(memloop: Memloop, gateway: FakeGateway) -> None:
    gateway.refusal = (503, "The engine is gone.")
    result = memloop("chat", "--model", "m", typed="One.\nTwo.\n")
    assert result.exit_code == 0
    assert result.output.count("The engine is gone.") == 2


def test_an_api_key_is_sent(memloop: Memloop, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_API_KEY", "secret")
    memloop("memory", "list")
    assert gateway.keys == ["Bearer secret"]


def test_add_lets_the_writer_decide_and_shows_how(memloop: Memloop, gateway: FakeGateway) -> None:
    result = memloop("memory", "add", "My locker code is 482.", "--user", "u1")
    assert result.exit_code == 0
    assert "stored   The locker code of the user is 482." in result.output
    (body,) = gateway.bodies("/v1/memory/add")
    assert (body["user_id"], body["infer"]) == ("u1", True)
    assert body["messages"] == [{"role": "user", "content": "My locker code is 482."}]


def test_add_as_it_is_stores_without_the_writer(memloop: Memloop, gateway: FakeGateway) -> None:
    memloop("memory", "add", "A fact.", "--as-it-is")
    assert gateway.bodies("/v1/memory/add")[0]["infer"] is False


def test_a_failed_write_fails_the_command(memloop: Memloop, gateway: FakeGateway) -> None:
    gateway.event = EVENT.model_copy(update={"status": "failed", "error": "no valid decision", "memories": ()})
    result = memloop("memory", "add", "A fact.")
    assert result.exit_code == 1
    assert "the write failed: no valid decision" in result.output


UNUSABLE = DecisionRecord(action="invalid", reason="no call", parse_path="failed", reply="What a\nlovely day!")
KEPT = EVENT.model_copy(update={"status": "kept_verbatim", "error": "no valid decision", "decisions": (UNUSABLE,)})


def test_what_was_kept_word_for_word_is_shown_with_the_reply_and_the_way_on(
    memloop: Memloop, gateway: FakeGateway
) -> None:
    gateway.event = KEPT
    result = memloop("memory", "add", "A fact.")
    assert result.exit_code == 0
    assert "kept word for word: no valid decision; decide again: memory redecide evt_1" in result.output
    assert "replied: What a lovely day!" in result.output


@pytest.mark.parametrize(
    ("arguments", "body"), [(("evt_1",), None), (("--user", "u1"), {"user_id": "u1"}), (("--all",), {})]
)
def test_kept_writes_are_decided_again(
    memloop: Memloop, gateway: FakeGateway, arguments: tuple[str, ...], body: object
) -> None:
    gateway.event = KEPT
    result = memloop("memory", "redecide", *arguments)
    assert "completed  evt_1" in result.output
    assert gateway.bodies("/v1/memory/redecide") == ([] if body is None else [body])
    assert ("there are more" in result.output) == (body is not None)
    if body is not None:
        assert "no write was kept word for word" in memloop("memory", "redecide", *arguments).output


@pytest.mark.parametrize("arguments", [(), ("evt_1", "--all"), ("--user", "u1", "--all")])
def test_to_decide_again_takes_one_choice(memloop: Memloop, arguments: tuple[str, ...]) -> None:
    result = memloop("memory", "redecide", *arguments)
    assert result.exit_code == 2
    assert "--all" in result.output


def test_a_decision_that_was_not_parsed_natively_is_marked(memloop: Memloop, gateway: FakeGateway) -> None:
    odd = DecisionRecord(action="ignore", reason="Nothing.", parse_path="fallback")
    gateway.event = EVENT.model_copy(update={"decisions": (odd,), "memories": ()})
    assert "ignore   Nothing.  (parsed: fallback)" in lines(memloop("memory", "add", "Hello."))


@pytest.mark.parametrize("arguments", [("add", " "), ("search", "")])
def test_an_empty_text_is_refused(memloop: Memloop, arguments: tuple[str, str]) -> None:
    result = memloop("memory", *arguments)
    assert result.exit_code == 2
    assert "empty" in result.output


def test_search_lists_hits_with_score_and_date(memloop: Memloop, gateway: FakeGateway) -> None:
    result = memloop("memory", "search", "locker", "--user", "u1", "--top-k", "3")
    assert lines(result) == ["2026-03-14  0.500  The locker code of the user is 482.  [m1, version 1]"]
    (body,) = gateway.bodies("/v1/memory/search")
    assert (body["query"], body["user_id"], body["top_k"]) == ("locker", "u1", 3)


def test_list_shows_every_memory(memloop: Memloop) -> None:
    result = memloop("memory", "list", "--user", "u1")
    assert lines(result) == ["2026-03-14  The locker code of the user is 482.  [m1, version 1]"]


def test_a_user_without_memories_gets_a_message(memloop: Memloop, gateway: FakeGateway) -> None:
    gateway.items = ()
    assert lines(memloop("memory", "list", "--user", "new")) == ["new has no memories"]


def test_events_show_when_and_why(memloop: Memloop) -> None:
    shown = lines(memloop("memory", "events", "--user", "u1"))
    assert shown[0] == "2026-03-14 09:26:00  completed  evt_1"
    assert "because: It is new." in shown


@pytest.mark.parametrize(("word", "sent"), [("wrong", "wrong"), ("helpful", "helpful"), ("withdraw", None)])
def test_feedback_sends_the_verdict_and_its_reason(
    memloop: Memloop, gateway: FakeGateway, word: str, sent: str | None
) -> None:
    result = memloop("memory", "feedback", "m1", word, "--reason", "moved")
    assert lines(result) == [f"{sent or 'no verdict'}  The locker code of the user is 482."]
    assert gateway.bodies("/v1/memory/m1/feedback") == [{"feedback": sent, "reason": "moved"}]


def test_another_word_is_no_verdict(memloop: Memloop, gateway: FakeGateway) -> None:
    result = memloop("memory", "feedback", "m1", "bad")
    assert (result.exit_code, gateway.asked) == (2, [])
    assert "helpful, wrong, outdated, withdraw" in result.output


def test_an_audit_shows_each_suspicion_with_its_memories(memloop: Memloop, gateway: FakeGateway) -> None:
    result = memloop("memory", "audit", "--user", "u1", "--stale-after-days", "90")
    assert lines(result) == [
        "4 memories of u1; 9 raw turns",
        "feedback: 1 helpful",
        "duplicate           1   25.0%",
        "same text: they say the same",
        "m1  The locker code is 482.",
        "m2  The locker code is 482.",
        "junk                0    0.0%",
    ]
    assert gateway.bodies("/v1/memory/audit") == [{"user_id": "u1", "stale_after_days": "90"}]


def test_memories_as_json_are_for_programs(memloop: Memloop) -> None:
    found = FoundMemories.model_validate_json(memloop("memory", "search", "locker", "--user", "u1", "--json").output)
    assert [memory.memory for memory in found.data] == ["The locker code of the user is 482."]
    listed = [
        MemoryItem.model_validate_json(line) for line in lines(memloop("memory", "list", "--user", "u1", "--json"))
    ]
    assert [item.id for item in listed] == [memory.id for memory in found.data]


def test_an_audit_as_json_is_the_whole_report(memloop: Memloop) -> None:
    result = memloop("memory", "audit", "--user", "u1", "--json")
    assert QualityAudit.model_validate_json(result.output) == AUDIT
