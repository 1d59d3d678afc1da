"""The demo's first part: facts are told in conversations, and asked for in later ones."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from memloop.scoring.lenient import contains
from memloop.wire.chat import Json
from memloop_cli.commands.chat import Conversation
from memloop_cli.demo.questions import DemoFact
from memloop_clients.gateway import ChatAnswer, GatewayClient

USER: Final = "demo-user"
_PLAIN: Final[Json] = {"chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 64}
_WAIT_S: Final = 60.0
_READ_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class ChatShown:
    """The outcome of the conversations, in numbers. A text that holds the expected words may say more that is wrong."""

    facts: int
    stored: int
    answered: int
    small_talk: int
    small_talk_stored: int

    def __str__(self) -> str:
        of = f"of {self.facts} by the expected word"
        told = f"facts stored {self.stored} {of}, answered later {self.answered} {of}"
        return f"{told}, small talk stored {self.small_talk_stored} of {self.small_talk}" if self.small_talk else told


async def show_chat(client: GatewayClient, console: Console, facts: Sequence[DemoFact], *, model: str) -> ChatShown:
    """Tell every fact, then ask for each in a conversation without history; print every step."""
    console.rule("(a) A chat that remembers", align="left")
    console.print("Told, each in a conversation of its own:", style="bold")
    written: list[str] = []
    for fact in facts:
        answer = await _say(client, console, fact.say, model=model)
        event_id = answer.memory.write_event_id if answer.memory else None
        event = await client.event(event_id) if event_id else None
        written.append("\n".join(kept.item.memory for kept in event.memories) if event else "")
    asked = [fact for fact in facts if fact.ask]
    console.print("\nAsked, each in a new conversation without any history:", style="bold")
    replies = [(await _say(client, console, fact.ask, model=model)).text for fact in asked if fact.ask]
    pairs = list(zip(facts, written, strict=True))
    return ChatShown(
        facts=len(asked),
        stored=sum(_holds(memory, fact) for fact, memory in pairs if fact.ask),
        answered=sum(_holds(reply, fact) for fact, reply in zip(asked, replies, strict=True)),
        small_talk=len(facts) - len(asked),
        small_talk_stored=sum(bool(memory) for fact, memory in pairs if not fact.ask),
    )


async def let_type(client: GatewayClient, console: Console, *, model: str) -> None:
    """Let the person at a terminal tell and ask, until an empty line or a minute without one."""
    if not (sys.stdin.isatty() and console.is_terminal):
        return
    console.print("\nYour turn: tell it about yourself, or ask. An empty line goes on, as does a minute.", style="bold")
    while lines := await _typed(console):
        for line in lines:
            await Conversation(client, console, user_id=USER, model=model, more=_PLAIN).send(line)


async def _typed(console: Console) -> list[str]:
    """Return what is typed, empty for an empty line, the end, or nobody there.

    It is read in the event loop, because a thread that waits for a line cannot be interrupted.
    """
    console.print("[bold]you[/]        ", end="")
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ready.set)
    try:
        await asyncio.wait_for(ready.wait(), _WAIT_S)
    except TimeoutError:
        console.print()
        return []
    finally:
        loop.remove_reader(sys.stdin.fileno())
    typed = os.read(sys.stdin.fileno(), _READ_BYTES).decode("utf-8", "replace")
    return [line.strip() for line in typed.splitlines() if line.strip()]


async def _say(client: GatewayClient, console: Console, text: str, *, model: str) -> ChatAnswer:
    console.print(Text.assemble(("you        ", "bold"), text))
    return await Conversation(client, console, user_id=USER, model=model, more=_PLAIN).send(text)


def _holds(text: str, fact: DemoFact) -> bool:
    return contains(text, [fact.gold or ""]) == 1.0
