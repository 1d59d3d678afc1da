"""The model of a stack for which nobody names one: memloop-small, made once for each user where no set-up made it."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console

from inference.process import ChildProcess
from inference.registry import read_registry
from memloop_cli.errors import CliError
from memloop_cli.stack.given_engine import MODEL
from memloop_cli.stack.local import GIVEN_ENGINES, MODEL_PATH

_SMALL: Final = "memloop-small"
_LAST_LINES: Final = 5


async def with_small_model(environment: Mapping[str, str], console: Console) -> Mapping[str, str]:
    """Return the environment with the folder of memloop-small, where it asks for no other model.

    The first call makes the folder, for ten seconds, in a process of its own: a cancelled call leaves nothing behind.
    Raises CliError when it cannot be made, or when it would be served and is not installed.
    """
    folder = folder_to_serve(environment)
    if folder is None:
        return environment
    if not folder.is_dir():
        console.print(f"Making {_SMALL} in {folder}, once:", highlight=False)
        command = (sys.executable, "-m", "memloop_small", "cache", str(folder))
        making = await ChildProcess.start(command, on_line=lambda line: console.print(f"  {line}", highlight=False))
        try:
            if await making.wait():
                raise CliError(f"{_SMALL} was not made; its last lines:", detail=making.last_words(_LAST_LINES))
        finally:
            await making.stop()
    return {**environment, MODEL_PATH: str(folder)}


def folder_to_serve(environment: Mapping[str, str]) -> Path | None:
    """Return the user's folder of memloop-small; None where another model serves, or set-up has made this one.

    Raises CliError when memloop-small would be served and is not installed.
    """
    named = any(environment.get(name) for name in (*GIVEN_ENGINES, MODEL_PATH, "MEMLOOP_MODELS_FILE"))
    if named or (environment.get(MODEL) or _SMALL) != _SMALL:
        return None
    if Path(str(read_registry()[_SMALL].source), "config.json").is_file():
        return None
    if importlib.util.find_spec("memloop_small") is None:
        raise CliError(f"no model is here: pip install 'memloop-cli[small]', or name one by {MODEL}=ID")
    from memloop_small.record import cache_folder

    return cache_folder()
