"""LangGraph's stores: dumped items (``namespace``, ``key``, ``value``), or rows of its ``store`` table (``prefix``)."""

import json
from collections.abc import Iterator
from typing import Final

from memloop.wire.chat import Json
from memloop_cli.importing.entries import Fact, Unreadable, Whose, fields_of, moment_of, stable_id, text_of

MEMBERS = ("",)
INSIDE = ("items",)
_TEXTS: Final = ("memory", "text", "content", "fact", "data", "value")


def entries(value: object) -> Iterator[Fact]:
    """Yield the item; its text is the value's text, else the value as JSON. Raises Unreadable."""
    found = fields_of(value)
    namespace, key = _namespace(found), text_of(found, "key")
    if not namespace or not key:
        raise Unreadable("an item without namespace and key")
    content = found.get("value")
    text = _text(json.loads(content) if isinstance(content, str) and content[:1] == "{" else content)
    yield Fact(
        id=stable_id(*namespace, key),
        text=text,
        whose=Whose(),
        at=moment_of(found.get("updated_at")) or moment_of(found.get("created_at")),
        metadata={"namespace": [*namespace], "key": key},
    )


def user_at(fact: Fact, place: int) -> Fact:
    """Return the fact with the part of its namespace at ``place`` (from 0) as its user. Raises Unreadable."""
    namespace = fact.metadata["namespace"]
    if not isinstance(namespace, list) or not -len(namespace) <= place < len(namespace):
        raise Unreadable(f"the namespace has no part {place}")
    return Fact(fact.id, fact.text, Whose(user_id=str(namespace[place])), fact.at, fact.tags, fact.metadata)


def _namespace(found: Json) -> tuple[str, ...]:
    parts = found.get("namespace", found.get("prefix"))
    if isinstance(parts, str):
        return tuple(part for part in parts.split(".") if part)
    return tuple(part for part in parts if isinstance(part, str)) if isinstance(parts, list) else ()


def _text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    found = fields_of(value)
    named = text_of(found, *_TEXTS)
    if named:
        return named
    inner = next((found[name] for name in _TEXTS if isinstance(found.get(name), dict)), None)
    if inner is not None:
        return _text(inner)
    if not found:
        raise Unreadable("an item without a value")
    return json.dumps(found, ensure_ascii=False)
