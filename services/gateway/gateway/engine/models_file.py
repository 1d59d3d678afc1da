"""Reads the configured models: from the models file (``MEMLOOP_MODELS``), or one model from the other settings."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from gateway.settings import GatewaySettings, secret_of
from memloop.chunking import TokenizerSplitter
from memloop.profiles import Profile, ProfileError, check_fit, load_profile
from memloop_clients import DialectName, balanced_url, plain_url, urls_in

Role: TypeAlias = Literal["writer", "reader", "judge", "chat"]
_Found = TypeVar("_Found")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_NO_CLEAR_TEXT: Final = "keys do not stand in this file; name a variable (api_key_env) or a file (api_key_file)"


class ModelsFileError(ValueError):
    """The models file is invalid; the message names the file, the table, the key and the reason."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model's engines, in the order of use, and the settings of its calls.

    ``replica_urls`` are further replicas of the first engine.

    ``id`` is None for the launcher's model, or without a launcher the first that the engine lists. ``engine_model`` is
    the engine's own name for it. Without a profile or splitter, the launcher's or the default one is used. ``place``
    names the table in error messages.
    """

    id: str | None
    engine_urls: tuple[str, ...]
    replica_urls: tuple[str, ...] = ()
    engine_model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    dialect: DialectName = "auto"
    inference_url: str | None = None
    profile: Profile | None = None
    splitter: TokenizerSplitter | None = None
    window_tokens: int | None = None
    owned_by: str = "memloop"
    created: int = 0
    place: str = ""


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """All models. ``roles`` is empty without a models file: the one model then has every role."""

    specs: tuple[ModelSpec, ...]
    roles: Mapping[Role, str]


def read_models(settings: GatewaySettings) -> ModelsConfig:
    """Return the models of the file, or the one of the other settings.

    Raises ModelsFileError; ProfileError, ValueError and OSError for the other settings.
    """
    if settings.models is not None:
        return _from_file(settings.models)
    spec = ModelSpec(
        id=settings.model,
        engine_urls=settings.engines,
        replica_urls=urls_in(settings.engine_url)[1:],
        api_key=secret_of(settings.engine_api_key),
        dialect=settings.engine_dialect,
        inference_url=settings.inference_url,
        profile=load_profile(settings.profile) if settings.profile is not None else None,
        splitter=TokenizerSplitter(settings.tokenizer.read_bytes()) if settings.tokenizer is not None else None,
        window_tokens=settings.window_tokens,
    )
    return ModelsConfig((spec,), {})


@contextmanager
def refusing_wrong_models() -> Generator[None]:
    """Exit with a message when the block finds the models file to be wrong."""
    try:
        yield
    except ModelsFileError as error:
        raise SystemExit(str(error)) from error


def _one_or_more(given: object) -> tuple[str, ...]:
    urls = cast(list[object], given) if isinstance(given, list) else [given]
    if not urls:
        raise ValueError("the list of replicas is empty")
    return tuple(balanced_url(str(url)) for url in urls)


_Url: TypeAlias = Annotated[str, AfterValidator(balanced_url)]
_Urls: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
"""One URL, or a list of replicas."""
_Id: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/@+-]{1,128}$")]


class _ModelTable(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    engine_url: _Urls
    engine_fallback_urls: tuple[_Url, ...] = ()
    engine_model: str | None = Field(default=None, min_length=1)
    api_key_env: str | None = Field(default=None, min_length=1)
    api_key_file: str | None = Field(default=None, min_length=1)
    dialect: DialectName = "auto"
    inference_url: Annotated[str, AfterValidator(plain_url)] | None = None
    profile: str | None = Field(default=None, min_length=1)
    tokenizer: str | None = Field(default=None, min_length=1)
    window_tokens: int | None = Field(default=None, gt=0, strict=True)
    owned_by: str = "memloop"
    created: int = Field(default=0, ge=0, strict=True)

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.api_key_env is not None and self.api_key_file is not None:
            raise ValueError("give api_key_env or api_key_file, not both")
        return self


_OF_SPECS: Final = {"engine_model", "dialect", "inference_url", "window_tokens", "owned_by", "created"}


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    models: dict[_Id, _ModelTable] = Field(min_length=1)
    roles: dict[Role, str] = Field(default_factory=dict[Role, str])


def _from_file(path: Path) -> ModelsConfig:
    try:
        file = _File.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelsFileError(f"{path}: {error}") from error
    except ValidationError as error:
        raise ModelsFileError(f"{path}: " + "; ".join(map(_fault, error.errors()))) from error
    specs = tuple(_spec(path, id_, table) for id_, table in file.models.items())
    return ModelsConfig(specs, _roles(path, file))


def _roles(path: Path, file: _File) -> dict[Role, str]:
    """Return every role's model. The judge is optional; a lone model has the roles that the file omits."""
    roles, known = dict(file.roles), sorted(file.models)
    for role, model in roles.items():
        if model not in file.models:
            raise ModelsFileError(f"{path}: [roles] {role}: there is no model {model!r}, only {', '.join(known)}")
    needed: tuple[Role, ...] = ("writer", "reader", "chat")
    missing: list[Role] = [role for role in needed if role not in roles]
    if missing and len(known) > 1:
        raise ModelsFileError(f"{path}: [roles] {missing[0]}: name one of the models {', '.join(known)}")
    for role in missing:
        roles[role] = known[0]
    return roles


def _spec(path: Path, id_: str, table: _ModelTable) -> ModelSpec:
    place, folder = f"{path}: {_table('models', id_)}", path.parent
    spec = ModelSpec(
        id=id_,
        engine_urls=(table.engine_url[0], *table.engine_fallback_urls),
        replica_urls=table.engine_url[1:],
        api_key=_key(place, folder, table),
        profile=_loaded(
            f"{place} profile",
            table.profile,  # beside the models file, or a built-in one if no such path exists
            lambda name: load_profile(folder / name if (folder / name).exists() or "/" in name else name),
        ),
        splitter=_loaded(
            f"{place} tokenizer", table.tokenizer, lambda name: TokenizerSplitter((folder / name).read_bytes())
        ),
        place=place,
        **table.model_dump(include=_OF_SPECS),
    )
    if spec.profile is not None and spec.splitter is not None:
        try:
            check_fit(spec.profile, spec.splitter, window_tokens=spec.window_tokens)
        except ProfileError as error:
            raise ModelsFileError(f"{place} profile: {error}") from error
    return spec


def _key(place: str, folder: Path, table: _ModelTable) -> str | None:
    if (name := table.api_key_env) is not None:
        return _given(f"{place} api_key_env", f"the variable {name}", os.environ.get(name, ""))
    place = f"{place} api_key_file"
    key = _loaded(place, table.api_key_file, lambda name: (folder / name).read_text("utf-8"))
    return None if key is None else _given(place, f"the file {table.api_key_file}", key.strip())


def _given(place: str, source: str, key: str) -> str:
    if not key:
        raise ModelsFileError(f"{place}: {source} holds no key")
    return key


def _loaded(place: str, name: str | None, load: Callable[[str], _Found]) -> _Found | None:
    """Load a file that the table names; any error message begins with the place."""
    if name is None:
        return None
    try:
        return load(name)
    except Exception as error:  # tokenizers raises bare exceptions
        raise ModelsFileError(f"{place}: {error}") from error


def _fault(fault: ErrorDetails) -> str:
    """Name the table, the key and the reason of one of pydantic's errors."""
    names = [str(part) for part in fault["loc"] if part != "[key]"]
    depth = 2 if names[0] == "models" else 1
    tables, key = names[:depth], ".".join(names[depth:])
    if fault["type"] == "extra_forbidden" or (fault["type"] == "literal_error" and fault["loc"][-1] == "[key]"):
        reason = _NO_CLEAR_TEXT if key == "api_key" else "unknown key"
    elif fault["type"] == "missing":
        reason = "is missing"
    else:
        reason = fault["msg"].removeprefix("Value error, ")
    return f"{_table(*tables)} {key}".strip() + f": {reason}"


def _table(*names: str) -> str:
    """Format a table's name as TOML does: parts other than bare words are quoted."""
    parts = [name if _BARE.fullmatch(name) else json.dumps(name) for name in names]
    return f"[{'.'.join(parts)}]"
