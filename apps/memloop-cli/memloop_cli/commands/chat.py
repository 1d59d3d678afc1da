"""``memloop chat``: a conversation that prints recalled and stored memories."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import cast

from rich.console import Console
from rich.text import Text

from memloop.wire.chat import ChatMessage, Json
from memloop_cli.commands.writing import settled, show_event
from memloop_cli.errors import CliError, gateway_errors
from memloop_clients.gateway import ChatAnswer, ChatDelta, GatewayClient

_HELP = "Type a message; /new starts a conversation without history, /quit or Ctrl-D ends."


async def first_model(client: GatewayClient) -> str:
    """The id of the first served model, for a user who names none. Raises CliError when the gateway lists none."""
    models = await client.models()
    if not models:
        raise CliError("the gateway lists no model")
    return models[0]


class Conversation:
    """The turns so far, with one user's memory behind them."""

    def __init__(self, client: GatewayClient, console: Console, *, user_id: str, model: str, more: Json) -> None:
        self._client = client
        self._console = console
        self._user_id = user_id
        self._model = model
        self._more = more
        self._messages: list[ChatMessage] = []

    def forget_history(self) -> None:
        """Start a conversation without history: later answers can use memory alone."""
        self._messages.clear()

    async def send(self, text: str) -> ChatAnswer:
        """Run one turn: print the reply as it streams, its recalled memories and the write. Raises CliError."""
        with gateway_errors(self._client.url):
            return await self._send(text)

    async def _send(self, text: str) -> ChatAnswer:
        asked = [*self._messages, ChatMessage(role="user", content=text)]
        answer = await self._stream(asked)
        self._messages = [*asked, ChatMessage(role="assistant", content=answer.text)]
        if answer.memory is not None:
            await self._show_recalled(answer.memory.retrieved)
            if answer.memory.error:
                self._console.print(Text(f"  memory: {answer.memory.error}", style="yellow"))
            if answer.memory.write_event_id:
                show_event(await settled(self._client, answer.memory.write_event_id), self._console)
        return answer

    async def _stream(self, messages: Sequence[ChatMessage]) -> ChatAnswer:
        self._console.print(Text("assistant  ", style="bold magenta"), end="")
        started = False
        body: Json = {
            "model": self._model,
            "messages": [cast(Json, message.model_dump(exclude_none=True)) for message in messages],
            "memory": {"user_id": self._user_id},
            **self._more,
        }
        async with aclosing(self._client.chat(body)) as pieces:
            async for piece in pieces:
                if isinstance(piece, ChatAnswer):
                    self._console.print()
                    return piece
                started = self._show(piece, started=started)
        raise CliError("the reply ended early")

    def _show(self, piece: ChatDelta, *, started: bool) -> bool:
        """Print a piece without leading blank lines; return whether any text has been printed."""
        text = piece.text if started else piece.text.lstrip()
        if text:
            self._console.print(Text(text), end="")
        return started or bool(text)

    async def _show_recalled(self, ids: Sequence[str]) -> None:
        for item in await asyncio.gather(*(self._client.memory(item_id) for item_id in ids)):
            self._console.print(Text.assemble(("  recalled ", "blue"), item.memory))


def converse(conversation: Conversation, runner: asyncio.Runner, console: Console) -> None:
    """Read lines from the terminal until the user leaves. A failed turn prints its error and the chat continues.

    The lines are read outside the event loop, because a thread that waits for one cannot be interrupted.
    """
    console.print(_HELP, style="dim")
    while True:
        try:
            line = console.input("[bold]you[/]        ").strip()
        except EOFError:
            console.print()
            return
        if line == "/quit":
            return
        if line == "/new":
            conversation.forget_history()
            console.print("(a new conversation: only memory is left)", style="dim")
        elif line:
            runner.run(_turn(conversation, line, console))


async def _turn(conversation: Conversation, line: str, console: Console) -> None:
    try:
        await conversation.send(line)
    except CliError as error:
        console.print(Text(f"\n  {error.message}", style="red"))
