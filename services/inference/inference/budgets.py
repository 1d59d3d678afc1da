"""The window that a plan serves, and the sizes of the loops' prompts in it, as the gateway will choose them."""

from pathlib import Path

from inference.engines import EnginePlan
from inference.rope import positions_of, stretched
from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.profiles import Profile, check_fit, fit


def positions_served(plan: EnginePlan) -> int | None:
    """Return the positions of a local checkpoint, stretched as the plan stretches them."""
    positions = positions_of(Path(plan.model)) if plan.local else None
    return stretched(positions, plan.yarn_factor) if positions is not None else None


def fitted_profile(plan: EnginePlan, profile: Profile) -> Profile:
    """Return the profile with the sizes that fit the plan's window, or its own window where that is not known yet.

    A model on a hub is checked again after its download, with its own tokenizer. Raises ProfileError.
    """
    window = plan.max_model_len or positions_served(plan) or profile.budget.window_tokens
    tokenizer = EstimatingSplitter()
    if plan.local:
        tokenizer = TokenizerSplitter((Path(plan.model) / "tokenizer.json").read_bytes())
    check_fit(profile, tokenizer, window_tokens=window)
    return fit(profile, tokenizer, window_tokens=window)
