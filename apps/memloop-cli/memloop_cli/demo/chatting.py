"""The demo's first part: a later conversation recalls a fact from an earlier one."""

from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from memloop.wire.chat import Json
from memloop.wire.memory_events import MemoryEvent
from memloop_cli.commands.chat import Conversation
from memloop_cli.commands.writing import settled
from memloop_clients.chat_stream import ChatAnswer
from memloop_clients.gateway import GatewayClient

USER = "demo-user"
STATED = "My locker code is 482."
ASKED = "What is my locker code?"
GOLD = "482"
_PLAIN: Json = {"chat_template_kwargs": {"enable_thinking": False}}


@dataclass(frozen=True, slots=True)
class ChatShown:
    """The outcome of the two conversations."""

    stored: bool
    recalled: bool
    answered: bool

    @property
    def faults(self) -> tuple[str, ...]:
        """Return the claims that did not hold."""
        claims = (
            (self.stored, "the memory writer did not store what the user said"),
            (self.recalled, "the second conversation recalled no memory"),
            (self.answered, f"the second conversation did not answer {GOLD}"),
        )
        return tuple(fault for held, fault in claims if not held)


async def show_chat(client: GatewayClient, console: Console, *, model: str) -> ChatShown:
    """Run both conversations and print every step."""
    console.rule("(a) A chat that remembers", align="left")
    console.print("First conversation:", style="bold")
    event = await _state(client, console, model=model)
    stored = any(GOLD in written.item.memory for written in event.memories) if event else False
    console.print("Second conversation, without any history:", style="bold")
    answer = await _conversation(client, console, model).send_printed(ASKED)
    recalled = answer.memory is not None and bool(answer.memory.retrieved)
    return ChatShown(stored=stored, recalled=recalled, answered=GOLD in answer.text)


async def _state(client: GatewayClient, console: Console, *, model: str) -> MemoryEvent | None:
    """Run the first conversation; return the event of its write."""
    answer = await _conversation(client, console, model).send_printed(STATED)
    event_id = answer.memory.write_event_id if answer.memory else None
    return await settled(client, event_id) if event_id else None


class _Aloud:
    """A conversation that prints the user's messages too."""

    def __init__(self, conversation: Conversation, console: Console) -> None:
        self._conversation = conversation
        self._console = console

    async def send_printed(self, text: str) -> ChatAnswer:
        self._console.print(Text.assemble(("you        ", "bold"), text))
        return await self._conversation.send(text)


def _conversation(client: GatewayClient, console: Console, model: str) -> _Aloud:
    return _Aloud(Conversation(client, console, user_id=USER, model=model, more=_PLAIN), console)
