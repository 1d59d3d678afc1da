"""Chooses a model's prompt profile: the setting's, the row's, or the published one from the user's own snapshot."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from huggingface_hub import (
    hf_hub_download,  # pyright: ignore[reportUnknownVariableType] - a progress bar's type
    try_to_load_from_cache,
)
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

from inference.engines import EnginePlan
from inference.profile_import.imported import Kind
from inference.profile_import.importing import import_prompts, source_names
from inference.profile_import.sources import ImportRefused
from inference.registry import ModelCard
from inference.settings import LauncherSettings, SettingsRefused
from memloop.loops.forms import TOOL_FORMS, ladder_of
from memloop.profiles import Profile, profile_files, profile_from_files, whole_profile

OWN_PROMPTS: Final = "default"
_WITH_THE_WEIGHTS: Final[frozenset[Kind]] = frozenset({"memreader-card"})
"""Prompts whose sources are part of the checkpoint on the hub."""
_PARSER: Final = "--tool-call-parser"
_SETS_PARSER: Final = "MEMLOOP_SERVE_TOOL_CALL_PARSER (hermes for Qwen)"
log = logging.getLogger(__name__)


class PromptsMissing(SettingsRefused):
    """A published model's own prompts are not at hand; the message names the ways out."""


@dataclass(frozen=True, slots=True)
class ChosenPrompts:
    """A profile's name or place, and its own files where they were imported from the snapshot at the start."""

    profile: str
    files: Mapping[str, str] | None = None


def fetch_prompts(settings: LauncherSettings, card: ModelCard) -> None:
    """Download a hub model's card before the start, as the engine will download its weights."""
    if settings.profile or settings.model_path or card.source is None or Path(card.source).is_dir():
        return
    if card.prompts not in _WITH_THE_WEIGHTS:
        return
    for name in source_names(card.prompts):
        try:
            hf_hub_download(card.source, name, revision=settings.serve_revision)
        except (HfHubHTTPError, OSError, ValueError, EntryNotFoundError) as error:
            log.info("%s of %s was not fetched: %s", name, card.source, error)


def choose_prompts(settings: LauncherSettings, card: ModelCard, *, model: str, local: bool) -> ChosenPrompts:
    """Choose the profile: the setting's first. Raises PromptsMissing for a published model."""
    if settings.profile or card.prompts is None:
        return ChosenPrompts(settings.profile or card.profile)
    try:
        imported = import_prompts(card.prompts, _snapshot(settings, card.prompts, model, local=local))
    except ImportRefused as refusal:
        raise PromptsMissing(
            f"{settings.model} was trained on prompts of its own, and they are not part of Memloop ({refusal}). Import "
            f"them: memloop-inference profile import {card.prompts} --from SNAPSHOT_OR_CHECKOUT --to FOLDER; set "
            f"MEMLOOP_PROFILE=FOLDER; or serve the model with Memloop's prompts: MEMLOOP_PROFILE={OWN_PROMPTS}"
        ) from refusal
    return ChosenPrompts(f"{card.prompts} of {model}", imported.files())


def files_of(plan: EnginePlan) -> dict[str, str]:
    """Return all files of the plan's profile by name. Raises ProfileError."""
    return profile_files(plan.profile) if plan.prompts is None else whole_profile(plan.prompts)


def profile_of(plan: EnginePlan) -> Profile:
    """Return the plan's profile. Raises ProfileError."""
    return profile_from_files(files_of(plan))


def prompt_warnings(card: ModelCard, profile: Profile) -> list[str]:
    """Returns a warning for a published model that gets prompts other than its own."""
    if card.prompts is None or (profile.origin is not None and profile.origin.kind == card.prompts):
        return []
    return [f"the model was trained on prompts of its own, and the profile {profile.ref} holds others"]


def refuses_tools(plan: EnginePlan) -> bool:
    """Return whether the engine refuses calls with tools: vLLM does without a parser for the model's tool calls."""
    return plan.engine != "sglang" and not (
        plan.tool_call_parser or any(word.startswith(_PARSER) for word in plan.extra_args)
    )


def form_warnings(plan: EnginePlan, profile: Profile) -> list[str]:
    """Return the form in which memories are written where the engine refuses the profile's tools.

    Raises SettingsRefused for a profile that has no other form.
    """
    ladder = ladder_of(profile)
    if ladder[0] not in TOOL_FORMS or not refuses_tools(plan):
        return []
    left = [form for form in ladder if form not in TOOL_FORMS]
    if not left:
        raise SettingsRefused(
            f"the profile {profile.ref} requires tool calls, which vLLM refuses without a parser: set "
            f"{_SETS_PARSER}, or MEMLOOP_PROFILE=extractor for a writer without tools"
        )
    sentence = (
        f"vLLM refuses tool calls without a parser: memories are written in the form {left[0]}; for the tools of the "
        f"profile {profile.ref} set {_SETS_PARSER}"
    )
    return [sentence]


def _snapshot(settings: LauncherSettings, kind: Kind, model: str, *, local: bool) -> Path:
    """Return the folder with the sources: the checkpoint's own, or the hub cache's snapshot of it."""
    if local:
        return Path(model)
    name = source_names(kind)[0]
    found = try_to_load_from_cache(model, name, revision=settings.serve_revision)
    if not isinstance(found, str):
        raise ImportRefused(f"{model}: expected {name} in the hub and its cache; found none")
    return Path(found.removesuffix(name))
