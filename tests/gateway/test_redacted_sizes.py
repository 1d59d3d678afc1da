"""What is redacted on the event loop is counted whole: texts, sources, keys, tags and metadata."""

from pydantic import JsonValue

from gateway.memory.policed_store import chars_of_add
from gateway.policy import chars_of
from memloop.wire.memory import MemoryDraft, Namespace, Source, StoreAdd

TURN = Source(role="user", content="12345")
METADATA: dict[str, JsonValue] = {"a": ["12", {"b": "345"}], "c": 7, "d": None}


def test_turns_and_metadata_count() -> None:
    assert chars_of((TURN, TURN), METADATA) == 15


def test_all_texts_of_an_add_count() -> None:
    draft = MemoryDraft(key="k", value="123", tags=("12", "3"))
    add = StoreAdd(namespace=Namespace(tenant="t", user_id="u"), drafts=(draft, draft), sources=(TURN,))
    assert chars_of_add(add) == 2 * (1 + 3 + 3) + 5
    assert chars_of_add(add.model_copy(update={"metadata": METADATA})) == 2 * (1 + 3 + 3) + 5 + 5
