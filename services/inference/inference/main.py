"""The launcher: chooses, starts and watches one inference engine.

Run: ``memloop-inference`` (``python -m inference.main``) serves; ``memloop-inference plan`` prints what would start.

Exits with 0 after SIGTERM or SIGINT, once running requests have ended or their time is up; with 1 when the engine died,
got stuck or never became ready (its last log lines are printed); with 2 when the settings are refused.
"""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from inference import fetch, plan_command
from inference.conformance import command as conformance
from inference.engines import BUILDERS, Command
from inference.lifecycle import Lifecycle, NotReady
from inference.machine import Machine
from inference.metrics import LauncherMetrics
from inference.plan import card_of, plan_engine
from inference.process import ChildProcess
from inference.profile_import import importing
from inference.prompts import fetch_prompts, form_warnings, prompt_warnings
from inference.registry import MODELS_FILE, RegistryError, read_registry
from inference.routes import model_routes
from inference.settings import LauncherSettings, SettingsRefused, read_settings
from inference.stuck import EngineStuck
from memloop.wire.errors import DependencyError
from memloop_clients import EngineClient
from memloop_service import configure_logging, connects_by, create_app, metrics_served, new_registry, serving
from memloop_service.serving import listener

_LAST_LINES = 30
_SIGKILLED = 128 + signal.SIGKILL
_KILLED = " (killed by SIGKILL, probably out of memory)"
log = logging.getLogger(__name__)
engine_log = logging.getLogger("engine")


@dataclass(frozen=True, slots=True)
class Launch:
    """The settings, lifecycle and command of one run."""

    settings: LauncherSettings
    lifecycle: Lifecycle
    command: Command
    app: FastAPI
    server: uvicorn.Server
    client: EngineClient


def main() -> int:
    parser = argparse.ArgumentParser(prog="memloop-inference", description="Start and watch an inference engine.")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("serve", help="start the engine and watch it (the default)")
    for name, command, words in (
        ("plan", plan_command, "print command, memory and warnings; start nothing"),
        ("fetch", fetch, "load a published checkpoint into the model cache"),
        ("profile", importing, "import a published checkpoint's own prompts"),
        ("conformance", conformance, "check what an engine supports; print a table"),
    ):
        own = commands.add_parser(name, help=words)
        own.set_defaults(run=command.run)
        command.add_arguments(own)
    arguments = parser.parse_args()
    try:
        if "run" in arguments:
            return arguments.run(arguments)
        launch = compose()
    except (SettingsRefused, RegistryError) as refusal:
        return _refuse(str(refusal))
    return asyncio.run(serve(launch))


def compose() -> Launch:
    """Read the settings and build everything from them. Raises SettingsRefused or RegistryError."""
    settings = read_settings(os.environ)
    configure_logging("inference", settings.log_level)
    cards = read_registry(settings.models_file or MODELS_FILE)
    card = card_of(settings, cards)
    fetch_prompts(settings, card)
    plan = plan_engine(settings, cards, Machine.look())
    registry = new_registry()
    tls = connects_by(settings, any_name=True)  # the engine is reached over loopback
    client = EngineClient(f"{plan.url}/v1", model=plan.served_name, api_key=plan.api_key, tls=tls)
    lifecycle = Lifecycle(plan, client, LauncherMetrics(registry), tls=tls)
    for warning in (*prompt_warnings(card, lifecycle.profile), *form_warnings(plan, lifecycle.profile)):
        log.warning("%s", warning)
    app = create_app(
        "inference",
        settings=settings,
        routers=(model_routes(lifecycle),),
        readiness={"engine": lifecycle.check},
        registry=registry,
    )
    config = serving(app, settings, refusals=app.state.refusals)
    return Launch(settings, lifecycle, BUILDERS[plan.engine](plan), app, _Server(config), client)


class _Server(uvicorn.Server):
    """Leaves signals to the launcher, which ends the engine first."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(launch: Launch) -> int:
    """Start the engine and answer HTTP until a signal, or until the engine fails."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    taken = _taken_port(launch)
    if taken is not None:
        return _refuse(f"port {taken} is taken")
    engine = await ChildProcess.start(
        launch.command.argv,
        on_line=engine_log.info,
        environment=launch.command.environment_within(os.environ),
        grace_s=launch.settings.serve_stop_timeout_s,
    )
    http = asyncio.create_task(_serve(launch))
    life = asyncio.create_task(
        launch.lifecycle.run(
            engine,
            start_timeout_s=launch.settings.serve_start_timeout_s,
            stuck_after_s=launch.settings.serve_stuck_after_s,
        )
    )
    died = asyncio.create_task(engine.wait())
    stop = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({http, life, died, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not stop.done():
            failure = life.exception() if life.done() and not life.cancelled() else None
            if engine.exit_code is not None:
                reason = (
                    f"the engine died with status {engine.exit_code}{_KILLED if engine.exit_code == _SIGKILLED else ''}"
                )
            elif isinstance(failure, NotReady | DependencyError | EngineStuck):
                reason = str(failure)
            else:
                reason = f"the launcher failed: {failure!r}"
            words = (reason, engine.out_of_memory and f"about memory: {engine.out_of_memory}", "its last lines:")
            print("; ".join(filter(None, words)), engine.last_words(_LAST_LINES), sep="\n", file=sys.stderr, flush=True)
            return 1
        stopping.clear()  # a second signal does not wait for running requests
        settings = launch.settings
        draining = launch.lifecycle.drain(drain_s=settings.drain_s, timeout_s=settings.serve_stop_timeout_s)
        ending = asyncio.create_task(draining), asyncio.create_task(stopping.wait())
        await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
        for task in ending:
            task.cancel()
        return 0
    finally:
        life.cancel()
        launch.server.should_exit = True
        await engine.stop()
        await asyncio.gather(http, life, return_exceptions=True)
        stop.cancel()
        await launch.client.close()


async def _serve(launch: Launch) -> None:
    async with metrics_served(launch.app, launch.settings):
        await launch.server.serve(sockets=[listener(launch.settings, launch.settings.port)])


def _refuse(reason: str) -> int:
    print(f"the launcher refuses to start: {reason}", file=sys.stderr)
    return 2


def _taken_port(launch: Launch) -> int | None:
    """Return the first port of launcher and engine that is already in use."""
    settings = launch.settings
    own = [(settings.host, port) for port in (settings.port, settings.metrics_port) if port is not None]
    for host, port in (*own, (settings.engine_host, settings.engine_port)):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return port
    return None


if __name__ == "__main__":
    sys.exit(main())
