"""Runs one short generation per shape of request, so that no user waits for the first of its kind."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace

from memloop.ports import ChatModel, Prompt, Sampling
from memloop.profiles import Profile
from memloop.profiles.profile import PromptName
from memloop.wire.chat import ChatMessage

_TOKENS = 4
_FILLING = "Warm-up."
LOOP_PROMPTS: tuple[PromptName, ...] = ("read", "answer", "judge", "integrate", "memory")


def warmup_prompts(profile: Profile, *, tools: bool = True) -> dict[str, Prompt]:
    """Return the requests by name: every loop prompt of the profile with filled slots, and a plain chat.

    Without ``tools`` no request has any, and the memory writer is asked for JSON if the profile can do so.
    """
    prompts: dict[str, Prompt] = {
        "chat": Prompt((ChatMessage(role="user", content=_FILLING),), Sampling(max_tokens=_TOKENS)),
    }
    for name in LOOP_PROMPTS if tools else (*LOOP_PROMPTS, "extract"):
        if name in profile.prompts:
            slots = profile.prompts[name].slots
            prompt = profile.prompt(name, **dict.fromkeys(slots, _FILLING))
            if prompt.tools and not tools:
                continue
            prompts[name] = replace(prompt, sampling=replace(prompt.sampling, max_tokens=_TOKENS))
    return prompts


async def warm_up(model: ChatModel, profile: Profile, *, tools: bool) -> AsyncIterator[tuple[str, float]]:
    """Run the requests in turn; return each one's seconds by name. Raises DependencyError when the engine fails."""
    for name, prompt in warmup_prompts(profile, tools=tools).items():
        began = time.perf_counter()
        await model.complete(prompt)
        yield name, time.perf_counter() - began
