"""Whether a profile and a served model fit: its tokenizer, and its window."""

from collections.abc import Collection, Iterator
from typing import Final, Protocol

from memloop.profiles.profile import Profile, ProfileError, PromptName, PromptSpec

CHAT_TEMPLATE_TOKENS: Final = 16
"""Assumed for what a chat template puts around one message and before the reply."""


class OwnTokenizer(Protocol):
    """A served model's tokenizer."""

    @property
    def special_tokens(self) -> Collection[str]:
        """The texts that it turns into control tokens, such as ``<|im_end|>``."""
        ...

    def count_own(self, text: str) -> int:
        """Tokens of a prompt's own text, taken as it stands."""
        ...


def check_fit(profile: Profile, tokenizer: OwnTokenizer, *, window_tokens: int | None) -> None:
    """Raise ProfileError with every reason why the model cannot be asked with this profile.

    A control token inside a template would end a turn in the middle of it; a prompt whose slots are full must leave
    room for its reply in ``window_tokens``, the engine's, where that is known. Slots that grow with their task (the
    conversation, the queries so far) are counted empty: the loops fill them by what room there is. Tools are not
    counted: how a chat template shows them is its own.
    """
    misfits = list(_control_tokens(profile, tokenizer))
    if window_tokens is not None:
        misfits += _over_the_window(profile, tokenizer, window_tokens)
    if misfits:
        raise ProfileError(f"the profile {profile.ref} does not fit the model: {'; '.join(misfits)}")


def _control_tokens(profile: Profile, tokenizer: OwnTokenizer) -> Iterator[str]:
    for name, spec in profile.prompts.items():
        text = spec.template + (spec.system or "")
        found = sorted(special for special in tokenizer.special_tokens if special in text)
        if found:
            yield f"the prompt {name} holds the model's control tokens {', '.join(found)}"


def _over_the_window(profile: Profile, tokenizer: OwnTokenizer, window: int) -> Iterator[str]:
    for name, spec in profile.prompts.items():
        parts = {slot: tokens for slot in spec.slots if (tokens := slot_tokens(profile, slot))}
        parts["template"] = _own_tokens(spec, tokenizer) + CHAT_TEMPLATE_TOKENS
        parts["reply"] = spec.sampling.max_tokens if name != _SYSTEM_ONLY else 0
        if sum(parts.values()) > window:
            parts_text = " + ".join(f"{part} {tokens}" for part, tokens in parts.items())
            yield f"the prompt {name} needs {parts_text} = {sum(parts.values())} tokens, and the window has {window}"


_SYSTEM_ONLY: Final[PromptName] = "recall"
"""It stands before a chat of the user's, whose reply is the user's to limit."""


def slot_tokens(profile: Profile, slot: str) -> int:
    """Return the most that a loop puts into a slot; 0 where it takes what room there is."""
    budget, prompts = profile.budget, profile.prompts
    most = {
        "problem": budget.question_tokens,
        "question": budget.question_tokens,
        "memory": budget.memory_tokens,
        "section": budget.chunk_tokens,
        "subquestion": prompts["judge"].sampling.max_tokens,
        "subanswer": prompts["answer"].sampling.max_tokens,
    }
    return most.get(slot, 0)


def _own_tokens(spec: PromptSpec, tokenizer: OwnTokenizer) -> int:
    return tokenizer.count_own(spec.system or "") + tokenizer.count_own(spec.template)
