"""Fits a profile to the window of a served model: its tokenizer, and the sizes of chunk, memory, question and replies.

One function for the launcher and the gateway, so that the one never starts what the other refuses.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, Protocol

from memloop.profiles.profile import WRITING, Budget, Profile, ProfileError, PromptName, PromptSpec

CHAT_TEMPLATE_TOKENS: Final = 16
"""Assumed for what a chat template puts around one message and before the reply."""
_READING: Final[tuple[PromptName, ...]] = ("read", "gate", "answer", "judge", "integrate")
_SECTION: Final = "section"
_FLEXIBLE_SHARE: Final = 16
"""A question of up to this part of the window always fits beside whole sections; a longer one shortens its sections."""
_CONVERSATION_SHARE: Final = 4
"""The memory writer's prompt leaves at least this part of the window to the conversation."""
_LONG_QUESTION_SHARE: Final = 8
"""A question may have this part of a window that is larger than the profile's."""
_LEAST_TOKENS: Final = 48
"""No size and no reply is useful below this, unless the profile itself is so small."""


class OwnTokenizer(Protocol):
    """A served model's tokenizer, or an estimate."""

    @property
    def special_tokens(self) -> Collection[str]:
        """The texts that it turns into control tokens, such as ``<|im_end|>``."""
        ...

    def count_own(self, text: str) -> int:
        """Tokens of a prompt's own text, taken as it stands."""
        ...


def check_fit(profile: Profile, tokenizer: OwnTokenizer, *, window_tokens: int | None) -> None:
    """Raise ProfileError with every reason why the model cannot be asked with this profile.

    A control token inside a template would end a turn in the middle of it; a window may be too small for the prompts,
    however little they hold.
    """
    misfits = [
        f"the prompt {name} holds the model's control tokens {', '.join(found)}"
        for name, spec in profile.prompts.items()
        if (found := sorted(one for one in tokenizer.special_tokens if one in spec.template + (spec.system or "")))
    ]
    if window_tokens is not None:
        misfits += _too_large(_fitted(profile, tokenizer, window_tokens), profile, tokenizer, window_tokens)
    if misfits:
        raise ProfileError(f"the profile {profile.ref} does not fit the model: {'; '.join(misfits)}")


def fit(profile: Profile, tokenizer: OwnTokenizer, *, window_tokens: int) -> Profile:
    """Return the profile with the sizes that fit the model's window. Raises ProfileError if none do.

    In a window that holds them, the profile's own sizes stay; only a question may be longer where there is more room. A
    smaller window takes the same part of each: of the question, the section, the memory and the replies. A prompt whose
    slots are full then leaves room for its reply. Slots that grow with their task (the conversation, the queries so
    far) are counted empty: the loops fill them by what room there is.
    """
    fitted = _fitted(profile, tokenizer, window_tokens)
    if misfits := list(_too_large(fitted, profile, tokenizer, window_tokens)):
        raise ProfileError(f"the profile {profile.ref} does not fit the model: {'; '.join(misfits)}")
    return fitted


def sizes(fitted: Profile, own: Profile) -> str:
    """Return the sizes in one line, each with the profile's own in brackets where it differs."""
    now, was = _sizes(fitted), _sizes(own)
    return ", ".join(
        f"{name} {size}" + (f" (not {was[name]})" if was[name] != size else "") for name, size in now.items()
    )


def _sizes(profile: Profile) -> Mapping[str, int]:
    budget, prompts = profile.budget, profile.prompts
    replies = {f"{name} reply": prompts[name].sampling.max_tokens for name in ("read", "answer", "memory")}
    return {"chunk": budget.chunk_tokens, "memory": budget.memory_tokens, "question": budget.question_tokens, **replies}


def slot_tokens(profile: Profile, slot: str) -> int:
    """Return the most that a loop puts into a slot; 0 where it takes what room there is."""
    budget, prompts = profile.budget, profile.prompts
    most = {
        "problem": budget.question_tokens,
        "question": budget.question_tokens,
        "memory": budget.memory_tokens,
        _SECTION: budget.chunk_tokens,
        "subquestion": prompts["judge"].sampling.max_tokens,
        "subanswer": prompts["answer"].sampling.max_tokens,
    }
    return most.get(slot, 0)


def _fitted(profile: Profile, tokenizer: OwnTokenizer, window: int) -> Profile:
    own = profile.budget
    if window > own.window_tokens:
        question = max(own.question_tokens, window // _LONG_QUESTION_SHARE)
        return replace(profile, budget=replace(own, question_tokens=question, served_tokens=window))
    share = min(_share(profile, name, tokenizer, window) for name in _READING if name in profile.prompts)
    replies = {name: share for name in _READING if name in profile.prompts}
    if window < own.window_tokens:
        chunk = int(own.chunk_tokens * share)
        replies |= {name: _reply_share(profile, name, tokenizer, window, chunk) for name in (*WRITING, "relate")}
    prompts = {
        name: spec.limited(max(1, int(spec.sampling.max_tokens * replies.get(name, 1.0))))
        for name, spec in profile.prompts.items()
    }
    budget = Budget(
        window_tokens=window,
        question_tokens=int(own.question_tokens * share),
        chunk_tokens=int(own.chunk_tokens * share),
        memory_tokens=int(own.memory_tokens * share),
    )
    return replace(profile, budget=budget, prompts=prompts)


def _share(profile: Profile, name: PromptName, tokenizer: OwnTokenizer, window: int) -> float:
    """Return the part of its sizes, at most 1, with which a full prompt and its reply fit the window."""
    spec = profile.prompts[name]
    fixed, parts = _own_tokens(spec, tokenizer), _parts(profile, name)
    needed = sum(parts.values())
    question = profile.budget.question_tokens
    if _SECTION in parts and fixed + needed - question + min(question, window // _FLEXIBLE_SHARE) <= window:
        return 1.0
    return min(1.0, max(0, window - fixed) / needed)


def _reply_share(profile: Profile, name: PromptName, tokenizer: OwnTokenizer, window: int, chunk: int) -> float:
    """Return the part of its reply that a prompt of the memory writer leaves room for."""
    if name not in profile.prompts:
        return 1.0
    spec = profile.prompts[name]
    shown = chunk if name == "relate" else window // _CONVERSATION_SHARE
    room = window - _own_tokens(spec, tokenizer) - shown
    return min(1.0, max(0, room) / spec.sampling.max_tokens)


def _too_large(fitted: Profile, own: Profile, tokenizer: OwnTokenizer, window: int) -> Iterator[str]:
    """Yield the prompts that the window does not hold, however little they hold themselves."""
    least = min(_LEAST_TOKENS, own.budget.memory_tokens, own.budget.chunk_tokens)
    for name, spec in own.prompts.items():
        if name in ("recall", "operator"):  # before a chat of the user's, whose reply is the user's to limit
            continue
        reply = fitted.prompts[name].sampling.max_tokens
        small = name in _READING and fitted.budget.memory_tokens < least
        if small or reply < min(least, spec.sampling.max_tokens):
            fixed, parts = _own_tokens(spec, tokenizer), _parts(own, name)
            parts_text = " + ".join(f"{part} {tokens}" for part, tokens in ({"template": fixed} | parts).items())
            total = fixed + sum(parts.values())
            yield f"the prompt {name} needs {parts_text} = {total} tokens, and the window has {window}"


def _parts(profile: Profile, name: str) -> dict[str, int]:
    spec = profile.prompts[name]
    parts = {slot: tokens for slot in spec.slots if (tokens := slot_tokens(profile, slot))}
    return parts | {"reply": spec.sampling.max_tokens}


def _own_tokens(spec: PromptSpec, tokenizer: OwnTokenizer) -> int:
    tools = "".join(json.dumps(tool, ensure_ascii=False) for tool in spec.tools)
    texts = (spec.system or "", spec.template, tools, spec.reply.words if spec.reply else "")
    return sum(tokenizer.count_own(text) for text in texts) + CHAT_TEMPLATE_TOKENS
