"""Imports the prompts of published checkpoints from a user's own copy. None of their text is part of Memloop."""

from inference.profile_import.imported import Kind
from inference.profile_import.importing import import_prompts, source_names, write_profile
from inference.profile_import.sources import ImportRefused

__all__ = ["ImportRefused", "Kind", "import_prompts", "source_names", "write_profile"]
