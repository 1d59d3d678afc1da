"""Imports the prompts of published checkpoints from a user's own copy. None of their text is part of Memloop."""
