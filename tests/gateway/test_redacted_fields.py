"""Every field of a memory that may hold text is redacted, and counted. A new field must be filled in here."""

from collections import Counter
from datetime import UTC, date, datetime
from typing import Final

import orjson
from pydantic import BaseModel, JsonValue

from gateway.memory.policed_store import chars_of_add, redacted_add, redacted_buffer, redacted_line
from gateway.policy import chars_of
from gateway.policy.redaction.finding import Redaction, find_by_rules
from memloop.wire.feedback import Feedback
from memloop.wire.memory import Buffer, MemoryDraft, MemoryItem, NamedTime, Namespace, Source, StoreAdd
from memloop.wire.policy import SECRETS
from memloop.wire.store_requests import MemoryLine, NumberedLine

KEY: Final = "AKIAIOSFODNN7EXAMPLE"
AT: Final = datetime(2026, 11, 30, tzinfo=UTC)
TURN: Final = Source(role="user", content=f"My key is {KEY}.", message_id="m1", timestamp=AT, name=KEY)
DRAFT: Final = MemoryDraft(key=KEY, value=TURN.said(), memory_type="UserMemory", tags=(KEY,), source=TURN)
ADD: Final = StoreAdd(
    namespace=Namespace(tenant="t", user_id="ann"),
    drafts=(DRAFT, DRAFT.model_copy(update={"source": None})),
    sources=(TURN,),
    metadata={"about": {"deep": [KEY]}},
    timestamp=AT,
    expires_at=AT,
    ends=(AT, AT),
    event_id="evt_1",
    fencing_token=1,
)
ITEM: Final = MemoryItem(
    id="i1",
    memory=f"The user's key is {KEY}.",
    key=KEY,
    memory_type="UserMemory",
    tags=(KEY,),
    user_id="ann",
    agent_id="a",
    run_id="r",
    metadata={"about": {"deep": [KEY]}},
    version=2,
    status="activated",
    supersedes="i0",
    valid_from=AT,
    valid_to=AT,
    created_at=AT,
    updated_at=AT,
    expires_at=AT,
    sources=(TURN,),
    hash="h",
    times=(NamedTime(text=f"the day of {KEY}", start=date(2026, 11, 30), end=date(2026, 11, 30)),),
    feedback=Feedback(verdict="wrong", reason=f"It is {KEY}.", at=AT),
)
BUFFER: Final = Buffer(
    namespace=Namespace(tenant="t", user_id="ann"),
    turns=(TURN,),
    reason=f"What is {KEY} for?",
    event_id="evt_1",
    metadata={"about": {"deep": [KEY]}},
    expires_at=AT,
    updated_at=AT,
)


def redaction() -> Redaction:
    return Redaction(SECRETS, find_by_rules, Counter())


def test_the_examples_fill_in_every_field() -> None:
    filled: list[BaseModel] = [TURN, DRAFT, ADD, ITEM, BUFFER, *ITEM.times, *filter(None, [ITEM.feedback])]
    empty = {type(one).__name__: {*type(one).model_fields} - one.model_fields_set for one in filled}
    assert {name: left for name, left in empty.items() if left} == {}


def test_an_add_is_redacted_in_every_field() -> None:
    assert KEY not in redacted_add(ADD, redaction()).model_dump_json()


def test_a_buffer_is_redacted_in_every_field() -> None:
    assert KEY not in redacted_buffer(BUFFER, redaction()).model_dump_json()


def test_an_imported_memory_is_redacted_in_every_field() -> None:
    line = MemoryLine(item=ITEM, confirmed_at=AT)
    text = redacted_line(NumberedLine(number=1, text=line.model_dump_json()), line, redaction()).text
    assert KEY not in text
    assert orjson.loads(text)["item"]["user_id"] == "ann"


SAID = Source(role="user", content="12345")
METADATA: dict[str, JsonValue] = {"a": ["12", {"b": "345"}], "c": 7, "d": None}


def test_turns_and_metadata_count() -> None:
    assert chars_of((SAID, SAID), METADATA) == 15


def test_all_texts_of_an_add_count() -> None:
    draft = MemoryDraft(key="k", value="123", tags=("12", "3"))
    add = StoreAdd(namespace=Namespace(tenant="t", user_id="u"), drafts=(draft, draft), sources=(SAID,))
    assert chars_of_add(add) == 2 * (1 + 3 + 3) + 5
    assert chars_of_add(add.model_copy(update={"metadata": METADATA})) == 2 * (1 + 3 + 3) + 5 + 5
