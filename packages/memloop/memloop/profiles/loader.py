"""Loads a profile: a built-in one by name, or a folder or an archive with a manifest and the templates it names.

A template is rendered byte for byte as its file holds it, line ends and a last newline included.

A manifest may say ``extends = "default"``: what it leaves out, templates included, comes from there. A manifest with an
``[origin]`` names the published sources of its texts, and their SHA-256; a text with another hash is refused.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from memloop.ports import ReplyFormat, Sampling, ToolChoice
from memloop.profiles.archive import KINDS, is_archive, read_archive
from memloop.profiles.profile import (
    Budget,
    Origin,
    Parser,
    Profile,
    ProfileError,
    PromptName,
    PromptSpec,
    RecallPlace,
    Relating,
    SubAnswer,
    TurnLines,
)
from memloop.wire.chat import Json

_BUILT_IN = Path(__file__).parent
_MANIFEST = "manifest.toml"
Files = Mapping[str, str]
"""File name to text."""

_TOOLS = TypeAdapter(list[Json])
_REPLY = TypeAdapter(ReplyFormat)
_Parsed = TypeVar("_Parsed")
_KNOWN: dict[PromptName, tuple[set[str], set[Parser]]] = {
    "read": ({"problem", "memory", "section"}, {"text"}),
    "gate": ({"problem", "memory", "section"}, {"gate"}),
    "answer": ({"problem", "memory"}, {"boxed", "words"}),
    "judge": ({"question", "memory", "query_history"}, {"query"}),
    "integrate": ({"question", "memory", "subquestion", "subanswer"}, {"text"}),
    "memory": ({"conversation"}, {"tool_call", "memory_list", "memory_lines"}),
    "extract": ({"conversation"}, {"memory_list"}),
    "operator": ({"rules"}, {"text"}),
    "relate": ({"memories"}, {"text"}),
    "recall": ({"memories"}, {"text"}),
}
"""For each prompt what the loops fill, and how they can read its reply."""
_OPTIONAL: set[PromptName] = {"extract", "gate", "operator", "relate"}


class _BudgetFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    window_tokens: int = Field(gt=0)
    question_tokens: int = Field(gt=0)
    chunk_tokens: int = Field(gt=0)
    memory_tokens: int = Field(gt=0)


class _PromptFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    template: str
    slots: tuple[str, ...]
    system: str | None = None
    tools: str | None = None
    reply: str | None = None
    parser: Parser = "text"
    max_tokens: int = Field(default=1024, gt=0)
    temperature: float = Field(default=0.0, ge=0.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    thinking: bool = False
    tool_choice: ToolChoice = "auto"


class _TurnsFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    timed: str | None = None
    date: str | None = None
    without: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fill(self) -> Self:
        if self.timed is not None:
            when = {"weekday": "Saturday", "time": "2026-01-31 14:05"}
            _check_line(self.timed, needed="text", role="user", text="the text", **when)
        if self.date is not None:
            _check_line(self.date, needed="date", date="2026-01-31", weekday="Saturday")
        return self


class _OriginFile(BaseModel):
    """Hashes are SHA-256 in hex: of the source files by path, of the profile's texts by file name."""

    model_config = ConfigDict(extra="forbid")
    kind: str
    sources: dict[str, str]
    texts: dict[str, str]

    def check(self, files: Files) -> Origin:
        """Return the texts' origin. Raises ProfileError when a text differs from its import."""
        for name, digest in self.texts.items():
            if hashlib.sha256(_file(files, name).encode()).hexdigest() != digest:
                raise ProfileError(f"{name} is not the text that was imported from {', '.join(self.sources)}")
        return Origin(self.kind, self.sources)


class _Manifest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    version: str
    extends: str | None = None
    empty_memory: str
    no_history: str
    no_results: str
    result_line: str
    subanswer: SubAnswer = "whole"
    recall_place: RecallPlace = "user_message"
    relating: Relating = "list"
    turns_per_decision: int | None = Field(default=None, gt=0)
    turns: _TurnsFile = Field(default_factory=_TurnsFile)
    budget: _BudgetFile
    prompts: dict[PromptName, _PromptFile]
    without: set[PromptName] = Field(default_factory=set[PromptName])
    """Inherited prompts that the checkpoint cannot follow."""
    origin: _OriginFile | None = None

    @property
    def followed(self) -> dict[PromptName, _PromptFile]:
        """The prompts that the checkpoint can follow."""
        return {name: spec for name, spec in self.prompts.items() if name not in self.without}

    @field_validator("result_line")
    @classmethod
    def _fills(cls, line: str) -> str:
        return _check_line(
            line, needed="text", rank=1, text="the text", key="the key", date="2026-01-31", id="0a1b2c3d"
        )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = sorted(_KNOWN.keys() - _OPTIONAL - self.followed.keys())
        if missing:
            raise ValueError(f"no prompts {missing}")
        return self


def load_profile(name_or_path: str | Path) -> Profile:
    """Return a built-in profile (``default``, ``tiny``, …) or one from a folder or an archive. Raises ProfileError."""
    return profile_from_files(profile_files(name_or_path))


def profile_files(name_or_path: str | Path) -> dict[str, str]:
    """Return the profile's own files and those that it inherits, by name: what inference serves to its clients."""
    archived = is_archive(Path(name_or_path))
    if archived:
        own = read_archive(Path(name_or_path))
    else:
        folders = (Path(name_or_path), _BUILT_IN / str(name_or_path))
        folder = next((each for each in folders if (each / _MANIFEST).is_file()), None)
        if folder is None:
            raise ProfileError(f"no prompt profile at {name_or_path!s}, and none of that name is built in")
        own = {path.name: path.read_bytes().decode() for path in sorted(folder.iterdir()) if path.suffix in KINDS}
    if _MANIFEST not in own:
        raise ProfileError(f"{name_or_path} holds no {_MANIFEST}")
    return whole_profile(own, of_folder=not archived)


def whole_profile(own: Files, *, of_folder: bool = False) -> dict[str, str]:
    """Return a profile's own files and those that it inherits; only one of a folder may extend another folder.

    What extends a published checkpoint's profile is not published: it inherits the texts and not their origin.
    """
    manifest = _toml(own[_MANIFEST])
    parent = manifest.get("extends")
    if parent is None:
        return dict(own)
    if not (of_folder or (str(parent) in {folder.parent.name for folder in _BUILT_IN.glob(f"*/{_MANIFEST}")})):
        raise ProfileError(f"{_MANIFEST}: an archive extends a built-in profile, not {parent!r}")
    inherited = profile_files(str(parent))
    below = {key: value for key, value in _toml(inherited[_MANIFEST]).items() if key != "origin"}
    merged = _merge(below, manifest)
    prompts = manifest.get("prompts")
    # Whether a manifest brings words of its own for the memory writer
    memory = prompts.get("memory") if isinstance(prompts, dict) else None
    own_writer = isinstance(memory, dict) and "template" in memory
    if "turns" in manifest or own_writer:
        merged["turns"] = manifest.get("turns", {})
    if own_writer and "extract" not in cast(Json, prompts):  # its words fix the form of the writer
        cast(Json, merged["prompts"]).pop("extract", None)
    merged.pop("extends")
    return {**inherited, **own, _MANIFEST: json.dumps(merged)}


def profile_from_files(files: Files) -> Profile:
    """Return a profile from its files; the manifest is TOML or, when it was merged or came over HTTP, JSON."""
    try:
        manifest = _Manifest.model_validate(_toml(files[_MANIFEST]))
    except (KeyError, ValidationError) as error:
        raise ProfileError(f"{_MANIFEST}: {error}") from error
    return Profile(
        name=manifest.name,
        version=manifest.version,
        budget=Budget(**manifest.budget.model_dump()),
        prompts={name: _prompt(name, spec, files) for name, spec in manifest.followed.items()},
        empty_memory=manifest.empty_memory,
        no_history=manifest.no_history,
        no_results=manifest.no_results,
        result_line=manifest.result_line,
        subanswer=manifest.subanswer,
        recall_place=manifest.recall_place,
        relating=manifest.relating,
        turns=TurnLines(**manifest.turns.model_dump()),
        turns_per_decision=manifest.turns_per_decision,
        content_hash=hashlib.sha256("".join(f"{name}\0{files[name]}\0" for name in sorted(files)).encode()).hexdigest(),
        origin=manifest.origin.check(files) if manifest.origin else None,
    )


def _check_line(line: str, *, needed: str, **slots: str | int) -> str:
    """Return the line, when it has only these slots and the needed one. Raises ValueError."""
    try:
        shown = line.format(**slots)
    except (LookupError, ValueError, AttributeError) as error:
        raise ValueError(f"slots are {', '.join(f'{{{slot}}}' for slot in slots)}: {error}") from error
    if str(slots[needed]) not in shown or "\n" in shown:
        raise ValueError(f"it has no slot {{{needed}}}, or a line break")
    return line


def _toml(text: str) -> Json:
    try:
        return cast(Json, json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text))
    except ValueError as error:
        raise ProfileError(f"{_MANIFEST}: {error}") from error


def _merge(base: Json, over: Json) -> Json:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict) and "template" in value:
            below = {name: kept for name, kept in below.items() if name != "reply"}  # it belongs to the words
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def _prompt(name: PromptName, spec: _PromptFile, files: Files) -> PromptSpec:
    slots, parsers = _KNOWN[name]
    if set(spec.slots) != slots:
        raise ProfileError(f"{_MANIFEST}: the slots of {name} are {sorted(slots)}, not {sorted(spec.slots)}")
    if spec.parser not in parsers:
        raise ProfileError(f"{_MANIFEST}: the parser of {name} is one of {sorted(parsers)}, not {spec.parser!r}")
    template = _file(files, spec.template)
    missing = [slot for slot in spec.slots if f"{{{slot}}}" not in template]
    if missing:
        raise ProfileError(f"{spec.template}: the template of {name} has no slot {missing}")
    return PromptSpec(
        template=template,
        slots=spec.slots,
        system=_file(files, spec.system) if spec.system else None,
        tools=tuple(_parsed(_TOOLS, files, spec.tools)) if spec.tools and spec.parser == "tool_call" else (),
        sampling=Sampling(max_tokens=spec.max_tokens, temperature=spec.temperature, top_p=spec.top_p),
        thinking=spec.thinking,
        tool_choice=spec.tool_choice if spec.parser == "tool_call" else "auto",
        parser=spec.parser,
        reply=_parsed(_REPLY, files, spec.reply) if spec.reply and spec.parser != "tool_call" else None,
    )


def _parsed(kind: TypeAdapter[_Parsed], files: Files, name: str) -> _Parsed:
    try:
        return kind.validate_json(_file(files, name))
    except ValidationError as error:
        raise ProfileError(f"{name}: {error}") from error


def _file(files: Files, name: str) -> str:
    if name not in files:
        raise ProfileError(f"the manifest names {name}, which is not there")
    return files[name]
