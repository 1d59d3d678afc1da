"""Converts our memories, versions and events to the shapes that the mem0 client reads; errors too.

An error has ``detail``, which mem0's client displays, beside our own ``error``.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, TypeAlias

from fastapi import Request
from pydantic import JsonValue
from starlette.datastructures import URL

from memloop.wire.errors import DependencyError
from memloop.wire.memory import MemoryItem, Outcome, Written
from memloop.wire.memory_events import EventStatus, MemoryEvent
from memloop_service.errors import OPENAI, ApiStyle

MEM0: Final = ApiStyle(
    lambda error: {**OPENAI.error_body(error), "detail": error.message}, OPENAI.error_status, OPENAI.id_headers
)


def url_of(request: Request) -> URL:
    """Return the address by which the client came, with the trailing slash of mem0's paths.

    Only the path is known behind a proxy that ends TLS and whose headers the process does not trust: a link without TLS
    would take the client's key past it in the clear.
    """
    root: str = request.scope.get("root_path", "")
    url = request.url.replace(path=f"{root}{request.url.path.rstrip('/')}/")
    scheme = request.headers.get("x-forwarded-proto", url.scheme)
    return url if scheme == url.scheme else url.replace(scheme="", netloc="")


Answer: TypeAlias = dict[str, JsonValue]

_STATUS: Final[dict[EventStatus, str]] = {
    "queued": "PENDING",
    "in_progress": "RUNNING",
    "completed": "SUCCEEDED",
    "kept_verbatim": "SUCCEEDED",
    "failed": "FAILED",
}
_SHOWN_OF_A_TURN: Final = {"role", "content", "name"}
_CHANGE: Final[dict[Outcome, str]] = {"inserted": "ADD", "superseded": "UPDATE", "touched": "NONE"}


def memory(item: MemoryItem) -> Answer:
    """Convert a memory; ``categories`` are our tags, ``created_at`` the time that it is from (mem0's ``timestamp``)."""
    return {
        "id": item.id,
        "memory": item.memory,
        "user_id": item.user_id,
        "agent_id": item.agent_id,
        "app_id": None,
        "run_id": item.run_id,
        "hash": item.hash,
        "metadata": item.metadata,
        "categories": [*item.tags],
        "created_at": item.valid_from.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        # the day that ends then, or that contains it
        "expiration_date": (item.expires_at - timedelta(microseconds=1)).date().isoformat()
        if item.expires_at
        else None,
    }


def only(fields: Sequence[str] | None, answers: Iterable[Answer]) -> list[JsonValue]:
    """Reduce the answers to the requested fields and the id."""
    if fields is None:
        return [*answers]
    kept = {"id", *fields}
    return [{name: value for name, value in answer.items() if name in kept} for answer in answers]


def history(item_id: str, versions: Sequence[MemoryItem]) -> list[Answer]:
    """Convert each version to a change from the previous one, oldest first; a deleted memory ends with a deletion."""
    before = (None, *versions[:-1])
    steps = [_step(item_id, old, new) for old, new in zip(before, versions, strict=True)]
    if versions and versions[-1].status == "deleted":
        last = versions[-1]
        text = {"old_memory": last.memory, "new_memory": None, "event": "DELETE", "id": f"{last.id}:deleted"}
        steps.append(_step(item_id, None, last) | text)
    return steps


def page(results: Sequence[JsonValue], *, total: int, url: URL, number: int, size: int) -> Answer:
    """Build one page with links to its neighbours, by the page's own address."""

    def place(other: int) -> str:
        return str(url.include_query_params(page_size=size, page=other))

    return {
        "count": total,
        "next": place(number + 1) if number * size < total else None,
        "previous": place(number - 1) if number > 1 else None,
        "results": [*results],
    }


def dry_run(memories: int, **counts: int) -> Answer:
    """Build the answer to a deletion that was only counted."""
    return {"message": "Dry run: nothing was deleted.", "dry_run": True, "memories": memories, **counts}


def added(done: MemoryEvent, *, shown: bool) -> Answer:
    """Convert an add that ended or timed out, with its memories if they may be ``shown``.

    Raises DependencyError when it failed.
    """
    if done.status == "failed":
        raise DependencyError(f"The write failed: {done.error}", code="write_failed")
    results: list[JsonValue] = [_written(written) for written in done.memories if shown]
    return {"results": results, "event_id": done.event_id, **_ended(done)}


def event(known: MemoryEvent) -> Answer:
    """Convert a write's event."""
    took = known.completed_at - known.created_at if known.completed_at else None
    return {
        "id": known.event_id,
        "event_type": "ADD",
        **_ended(known),
        "results": [_written(written) for written in known.memories],
        "error": known.error,
        "created_at": known.created_at.isoformat(),
        "completed_at": known.completed_at.isoformat() if known.completed_at else None,
        "latency": took.total_seconds() * 1000 if took else None,
    }


def _ended(known: MemoryEvent) -> Answer:
    """Return the status; ``kept_verbatim`` is ours, because mem0 drops what its writer could not decide on."""
    kept: Answer = {"kept_verbatim": True} if known.status == "kept_verbatim" else {}
    return {"status": _STATUS[known.status], **kept}


def _written(written: Written) -> Answer:
    item = written.item
    return {"id": item.id, "memory": item.memory, "event": _CHANGE[written.outcome], "metadata": item.metadata}


def _step(item_id: str, old: MemoryItem | None, new: MemoryItem) -> Answer:
    turns: list[JsonValue] = [source.model_dump(mode="json", include=_SHOWN_OF_A_TURN) for source in new.sources]
    return {
        "id": new.id,
        "memory_id": item_id,
        "input": turns,
        "old_memory": old.memory if old else None,
        "new_memory": new.memory,
        "event": "UPDATE" if old else "ADD",
        "user_id": new.user_id,
        "metadata": new.metadata,
        "created_at": new.valid_from.isoformat(),
        "updated_at": new.updated_at.isoformat(),
    }
