"""Runs the demo on a temporary stack and prints what this run got right."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console

from memloop_cli.commands.chat import first_model
from memloop_cli.demo.chatting import let_type, show_chat
from memloop_cli.demo.questions import DemoReading, load_reading
from memloop_cli.demo.reading import show_reading
from memloop_cli.errors import gateway_errors
from memloop_cli.home import Home, StackNote
from memloop_cli.stack.component import console_address
from memloop_cli.stack.local import free_ports, local_stages
from memloop_cli.stack.running import running_stack
from memloop_cli.stack.small_model import with_small_model
from memloop_cli.stack.up import printer, stop_on_sigterm
from memloop_clients.gateway import GatewayClient

_FIRST_PORT: Final = 7820
_TINY: Final = "memloop-tiny"
_EXAMPLES: Final = Path("examples/first-minute")
_EXAMPLES_OF_TINY: Final = Path("examples/long-read")
_ABOUT: Final = {
    _TINY: """\
The model here is memloop-tiny: about a million parameters, trained from scratch by this repository's trainer on an \
invented world of people, places and three-digit codes in short sentences. It was trained on nothing else and is no \
assistant. The rest is real: vLLM serves it, and the memory writer, the reader, the rereader and the stack are \
the ones that serve a large model; only the model changes.""",
    "memloop-small": """\
The model here is memloop-small: SmolLM2-135M-Instruct, which the trainer of this repository taught to keep, recall \
and read. It is small, and it errs: everything below is what it says in this run. Its measured figures stand in \
services/inference/models/memloop-small/README.md. A larger model takes its place with MEMLOOP_MODEL.""",
}


async def run_demo(
    home: Home, examples: Path | None, environment: Mapping[str, str], console: Console, *, full: bool = False
) -> None:
    """Start a fresh stack, run both parts, stop it, and print the score.

    Without ``examples`` they are those of the served model. Raises CliError when something does not run at all.
    """
    shown = load_reading(examples or _EXAMPLES)
    shown_to_tiny = load_reading(examples or _EXAMPLES_OF_TINY)
    stop_on_sigterm()
    ports = free_ports(_FIRST_PORT)
    url = f"http://127.0.0.1:{ports.gateway}"
    began = time.monotonic()
    with home.held(StackNote(pid=os.getpid(), status="starting", url=url, ports=ports.by_name)):
        for data in ("redis", "edge", "logs"):
            shutil.rmtree(home.folder / data, ignore_errors=True)
        console.rule("Starting the stack", align="left")
        console.print("About half a minute on two idle cores: the engine imports PyTorch and vLLM.", style="dim")
        stages = local_stages(home.folder, ports, await with_small_model(environment, console))
        async with (
            running_stack(stages, logs=home.logs, report=printer(console)) as stack,
            GatewayClient(url, api_key=environment.get("MEMLOOP_API_KEY")) as client,
        ):
            page = await console_address(url)
            if page is not None:
                console.print(f"[bold]Watch it while it runs:[/] {page}")
            with gateway_errors(client.url):
                model = await first_model(client)
            reading, text = shown_to_tiny if model == _TINY else shown
            score = await stack.unless_one_dies(_show(client, reading, text, console, model=model, full=full))
    console.print(f"The demo took {time.monotonic() - began:.0f} s; its stack is stopped.")
    console.print("[bold]In this run, and no more than it:[/]")
    for line in score:
        console.print(f"  {line}", highlight=False)


async def _show(
    client: GatewayClient, reading: DemoReading, text: str, console: Console, *, model: str, full: bool
) -> list[str]:
    """Run both parts; return what each got right."""
    if model in _ABOUT:
        console.print(_ABOUT[model], style="italic")
    with gateway_errors(client.url):
        chat = await show_chat(client, console, reading.facts, model=model)
        await let_type(client, console, model=model)
        read = await show_reading(client, console, reading, text, model=model, full=full)
    return [f"chat: {chat}", *(f"reading: {group}" for group in read)]
