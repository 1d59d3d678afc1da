"""Writes the reference of settings from the classes that read them: ``python -m apps.docs.settings_page``.

Names, defaults, types and limits come from the code; what a setting means comes from ``docs/operations/settings.md``,
which groups the settings by process and task.
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
PAGE: Final = ROOT / "docs/reference/settings.md"
PROSE: Final = ROOT / "docs/operations/settings.md"
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
_HEAD: Final = """# Every setting

`make docs-reference` writes this page from the code. [Settings](../operations/settings.md) also names the variables of
other programs. Every setting is an environment variable; a blank default means unset.
"""
_TABLE: Final = """
## {title}

| Setting | Type | Default | Unit | Meaning |
|---|---|---|---|---|
{rows}
"""
_ROW: Final = re.compile(r"^\| `(\w+)` \| .*? ?\| (.*) \|$", re.MULTILINE)


def page() -> str:
    """The page's whole text."""
    tables = [(process, _settings(process, kind)) for process, kind in PROCESSES.items()]
    tables.append(("Command line", sorted(set(_options()))))
    return _HEAD + "".join(_TABLE.format(title=title, rows="\n".join(rows)) for title, rows in tables)


def variable(name: str, field: FieldInfo) -> str:
    """The environment variable of a field."""
    alias: Any = field.validation_alias
    return alias.choices[0] if alias is not None else f"MEMLOOP_{name.upper()}"


def _settings(process: str, kind: type[BaseSettings]) -> list[str]:
    """The rows of a process, in the order of the page of operations: a row may refer to the one above."""
    fields = {variable(name, field): (name, field) for name, field in kind.model_fields.items()}
    described = ((*fields[listed], meaning) for listed, meaning in _meanings(process).items() if listed in fields)
    return [
        _row(variable(name, field), _type(field), _default(name, field), _unit(name), meaning)
        for name, field, meaning in described
    ]


def _options() -> Iterator[str]:
    """The variables that stand for options of the command line."""
    for parameter in _parameters(typer.main.get_command(app)):
        yield _row(str(parameter.envvar), "text", "", "", parameter.help.rstrip("."))


def _parameters(command: Any) -> Iterator[Any]:
    yield from (parameter for parameter in command.params if getattr(parameter, "envvar", None))
    for inside in getattr(command, "commands", {}).values():
        yield from _parameters(inside)


def _row(name: str, *cells: str) -> str:
    return f"| {' | '.join((f'`{name}`', *cells))} |"


def _meanings(process: str) -> dict[str, str]:
    """The description of each setting on the operations page, with links adjusted to this page."""
    sections = re.split(r"^## ", PROSE.read_text("utf-8"), flags=re.MULTILINE)
    (section,) = (text for text in sections if text.startswith(f"{process}\n"))
    return {name: _linked_from_here(meaning) for name, meaning in _ROW.findall(section)}


def _linked_from_here(text: str) -> str:
    """Links of ``docs/operations`` as links of ``docs/reference``."""
    return re.sub(r"\]\((?!\.\./|[a-z]+:)", "](../operations/", text)


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
    PAGE.write_text(page(), "utf-8")
