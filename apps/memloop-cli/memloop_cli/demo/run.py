"""Runs the demo on a temporary stack and prints which of its claims held."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from memloop_cli.commands.models import first_model
from memloop_cli.demo.chatting import show_chat
from memloop_cli.demo.questions import DemoReading, load_reading
from memloop_cli.demo.reading import show_reading
from memloop_cli.errors import CliError, gateway_errors
from memloop_cli.home import Home, StackNote
from memloop_cli.stack.local import free_ports, local_stages
from memloop_cli.stack.page import console_address
from memloop_cli.stack.running import running_stack
from memloop_cli.stack.up import printer, stop_on_sigterm
from memloop_clients.gateway import GatewayClient

_FIRST_PORT = 7820
_TINY = "memloop-tiny"
_ABOUT_TINY = """\
The model here is memloop-tiny: about a million parameters, trained from scratch by this repository's trainer on an \
invented world of people, places and three-digit codes in short sentences. It was trained on nothing else and is no \
assistant. The rest is real: vLLM serves it, and the memory writer, the reader, the rereader and the stack are \
the ones that serve a large model; only the model changes."""


async def run_demo(
    home: Home, examples: Path, environment: Mapping[str, str], console: Console, *, full: bool = False
) -> None:
    """Start a fresh stack, run both parts, stop it. Raises CliError when a claim does not hold."""
    reading, text = load_reading(examples)
    stop_on_sigterm()
    ports = free_ports(_FIRST_PORT)
    url = f"http://127.0.0.1:{ports.gateway}"
    began = time.monotonic()
    with home.held(StackNote(pid=os.getpid(), status="starting", url=url, ports=ports.by_name)):
        for data in ("redis", "edge", "logs"):
            shutil.rmtree(home.folder / data, ignore_errors=True)
        console.rule("Starting the stack", align="left")
        console.print("About half a minute on two idle cores: the engine imports PyTorch and vLLM.", style="dim")
        stages = local_stages(home.folder, ports, environment)
        async with (
            running_stack(stages, logs=home.logs, report=printer(console)) as stack,
            GatewayClient(url, api_key=environment.get("MEMLOOP_API_KEY")) as client,
        ):
            page = await console_address(url)
            if page is not None:
                console.print(f"[bold]Watch it while it runs:[/] {page}")
            faults = await stack.unless_one_dies(_show(client, reading, text, console, full=full))
    console.print(f"The demo took {time.monotonic() - began:.0f} s; its stack is stopped.")
    if faults:
        raise CliError("the demo's claims did not all hold: " + "; ".join(faults))
    console.print("[bold green]All claims held:[/] the chat remembered, and the long reads found what was planted.")


async def _show(
    client: GatewayClient, reading: DemoReading, text: str, console: Console, *, full: bool
) -> tuple[str, ...]:
    """Run both parts; return the claims that did not hold."""
    with gateway_errors(client.url):
        model = await first_model(client)
        if model == _TINY:
            console.print(_ABOUT_TINY, style="italic")
        chat = await show_chat(client, console, model=model)
        read = await show_reading(client, console, reading, text, model=model, full=full)
    return (*chat.faults, *read.faults)
