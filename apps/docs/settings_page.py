"""Fills in the page of settings from the classes that read them: ``python -m apps.docs.settings_page``.

Names, types, limits, defaults and units come from the code. What a setting means is written by hand on the page, which
orders the settings by process and task.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import typer
from annotated_types import Ge, Gt, Le, Lt
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from gateway.settings import GatewaySettings, WorkerSettings
from inference.settings import LauncherSettings
from memloop_cli.main import app
from memloop_service import ServiceSettings
from memory_store.settings import Settings as StoreSettings

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/operations/settings.md"
PROCESSES: Final[Mapping[str, type[BaseSettings]]] = {
    "All processes": ServiceSettings,
    "Gateway and worker": GatewaySettings,
    "Worker": WorkerSettings,
    "Memory store": StoreSettings,
    "Launcher": LauncherSettings,
}
"""The settings of each process by the title of its section in the page of operations."""
UNITS: Final[Mapping[str, str]] = {
    "_bytes_per_s": "bytes per second",
    "_per_minute": "per minute",
    "_bytes": "bytes",
    "_tokens": "tokens",
    "_chars": "characters",
    "_turns": "turns",
    "_days": "days",
    "_share": "share, 0 to 1",
    "_fraction": "share, 0 to 1",
    "_s": "seconds",
}
"""The unit of a setting by the end of its name."""
_HEADER: Final = "| Setting | Type | Default | Unit | Meaning |\n|---|---|---|---|---|\n"
_TABLE: Final = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_COMMANDS: Final = "Command line"


def page(text: str) -> str:
    """Return the page with its tables refreshed. Meanings stay; a setting that it lacks gets a row without one."""
    titles = "|".join((*PROCESSES, _COMMANDS))
    return re.sub(rf"^## ({titles})\n(?:.+\n|\n(?!## ))*", _section, text, flags=re.MULTILINE)


def _section(section: re.Match[str]) -> str:
    rows = _options() if section[1] == _COMMANDS else _settings(section[1], section[0])
    return _TABLE.sub(lambda _: _HEADER + "".join(rows), section[0])


def variable(name: str, field: FieldInfo) -> str:
    """The environment variable of a field."""
    alias: Any = field.validation_alias
    return alias.choices[0] if alias is not None else f"MEMLOOP_{name.upper()}"


def _settings(process: str, section: str) -> Iterator[str]:
    """The rows of a process: first those of the section in their order, for a row may refer to the one above."""
    kind = PROCESSES[process]
    above: tuple[Any, ...] = kind.__mro__[1:]
    held = {name for base in above if base in PROCESSES.values() for name in base.model_fields}
    fields = {variable(name, field): (name, field) for name, field in kind.model_fields.items() if name not in held}
    rows = (re.split(r" *\| *", row) for row in section.splitlines() if row.startswith("| `"))
    meanings = {cells[1].strip("`"): cells[-2] for cells in rows}
    for listed in sorted(fields, key=[*meanings, *fields].index):
        name, field = fields[listed]
        yield _row(listed, _type(field), _default(name, field), _unit(name), meanings.get(listed, ""))


def _options() -> Iterator[str]:
    """The variables that stand for options of the command line."""
    options = {(str(one.envvar), one.help.rstrip(".")) for one in _parameters(typer.main.get_command(app))}
    return (_row(name, "text", "", "", meaning) for name, meaning in sorted(options))


def _parameters(command: Any) -> Iterator[Any]:
    yield from (parameter for parameter in command.params if getattr(parameter, "envvar", None))
    for inside in getattr(command, "commands", {}).values():
        yield from _parameters(inside)


def _row(name: str, *cells: str) -> str:
    return f"| {' | '.join((f'`{name}`', *cells))} |\n"


def _type(field: FieldInfo) -> str:
    limits = [limit for one in field.metadata if (limit := _limit(one))]
    return ", ".join([_name_of(field.annotation), *limits])


def _limit(constraint: object) -> str:
    match constraint:
        case Ge(ge=bound):
            return f"at least {bound}"
        case Gt(gt=bound):
            return f"more than {bound}"
        case Le(le=bound):
            return f"at most {bound}"
        case Lt(lt=bound):
            return f"less than {bound}"
        case _:
            return ""


def _name_of(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _name_of(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return ", ".join(_name_of(one) for one in get_args(kind) if one is not NoneType)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    names = {SecretStr: "secret", str: "text", int: "integer", float: "number", bool: "`true`, `false`", Path: "path"}
    return names.get(kind) or str(getattr(kind, "__name__", kind)).lower()


def _default(name: str, field: FieldInfo) -> str:
    default = field.default
    if name == "serve_python":  # the interpreter of the process
        return ""
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    return "" if default in (None, "") else f"`{default}`"


def _unit(name: str) -> str:
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("it takes no arguments")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
