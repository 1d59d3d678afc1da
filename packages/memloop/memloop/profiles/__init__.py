"""Prompt profiles: the templates, tool schemas, budgets and decoding values that a checkpoint was made for."""

from memloop.profiles.fit import check_fit, fit, sizes
from memloop.profiles.loader import load_profile, profile_files, profile_from_files, whole_profile
from memloop.profiles.profile import (
    PLAIN_TURNS,
    Budget,
    Markup,
    Origin,
    Parser,
    Profile,
    ProfileError,
    PromptName,
    RecallPlace,
    TurnLines,
    neutralise,
    well_formed,
)

__all__ = [
    "PLAIN_TURNS",
    "Budget",
    "Markup",
    "Origin",
    "Parser",
    "Profile",
    "ProfileError",
    "PromptName",
    "RecallPlace",
    "TurnLines",
    "check_fit",
    "fit",
    "load_profile",
    "neutralise",
    "profile_files",
    "profile_from_files",
    "sizes",
    "well_formed",
    "whole_profile",
]
