"""Prints a memory write: the writer's decisions, their reasons and the stored items."""

from rich.console import Console
from rich.text import Text

from memloop.wire.errors import Timeout
from memloop.wire.memory import MemoryItem
from memloop.wire.memory_events import DecisionRecord, MemoryEvent
from memloop_clients.gateway import GatewayClient

_WAIT_S = 60.0
_SHOWN_CHARS = 200
_COLOURS = {"add": "green", "search": "cyan", "buffer": "yellow", "ignore": "dim", "invalid": "red"}


async def settled(client: GatewayClient, event_id: str) -> MemoryEvent:
    """A write's event once it is decided, or as it stands after a minute."""
    try:
        return await client.event_ended(event_id, wait_s=_WAIT_S)
    except Timeout:
        return await client.event(event_id)


def show_event(event: MemoryEvent, console: Console) -> None:
    """Print a write's decisions, then its memories."""
    for record in event.decisions:
        console.print(_decision(record))
    for written in event.memories:
        kind = written.item.memory_type
        line = Text.assemble(("  stored   ", "green"), written.item.memory, (f"  ({kind}, {written.outcome})", "dim"))
        console.print(line)
    if event.status == "kept_verbatim":
        why = event.error or "no reason given"
        console.print(
            Text(f"  kept word for word: {why}; decide again: memory redecide {event.event_id}", style="yellow")
        )
    elif event.status == "failed":
        console.print(Text(f"  the write failed: {event.error or 'no reason given'}", style="red"))
    elif event.status != "completed":
        console.print(Text(f"  the write is still {event.status}: memory events {event.event_id}", style="yellow"))


def memory_line(item: MemoryItem, *, score: float | None = None) -> Text:
    """Format one memory for a list."""
    rank = f"{score:.3f}  " if score is not None else ""
    return Text.assemble(
        (f"{item.valid_from:%Y-%m-%d}  ", "dim"),
        (rank, "cyan"),
        item.memory,
        (f"  [{item.id}, version {item.version}]", "dim"),
    )


def _decision(record: DecisionRecord) -> Text:
    line = Text.assemble((f"  {record.action:<9}", _COLOURS.get(record.action, "")))
    if record.query:
        line.append(f"“{record.query}”  ")
    line.append(record.reason)
    if record.reasoning.strip():
        line.append(f"\n           because: {' '.join(record.reasoning.split())}", "dim italic")
    if record.reply:
        line.append(f"\n           replied: {' '.join(record.reply.split())[:_SHOWN_CHARS]}", "dim italic")
    if record.parse_path != "native":
        line.append(f"  (parsed: {record.parse_path})", "dim")
    return line
