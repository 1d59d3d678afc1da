"""Finds misspelt settings in the environment of a stack, before its processes ignore them."""

from collections.abc import Iterable
from typing import Final

from gateway.settings import WorkerSettings
from inference.settings import LauncherSettings
from memory_store.settings import Settings

_PARTS: Final = (WorkerSettings, LauncherSettings, Settings)


def misspelt(names: Iterable[str]) -> list[str]:
    """Return a sentence for each variable that no process has, but almost."""
    names = tuple(names)
    known = {f"MEMLOOP_{field.upper()}" for part in _PARTS for field in part.model_fields}
    found = {name: meant for part in _PARTS for name, meant in part.misspelt(names) if name.upper() not in known}
    return [f"{name} is not a setting; did you mean {meant}?" for name, meant in sorted(found.items())]
