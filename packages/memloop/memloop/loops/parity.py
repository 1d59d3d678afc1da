"""The published numbers of MemAgent and MemReread, for reads that are to be compared with the papers.

Sources: arXiv 2507.02259 (window, chunk, memory, decoding), arXiv 2605.10268 (the loop around it). What else differs
from our default, and what we keep although it was published otherwise: docs/decisions, "Parity with the papers".
"""

from dataclasses import replace
from typing import Final

from memloop.ports import Sampling
from memloop.profiles import Budget, Profile

PUBLISHED: Final = Budget(window_tokens=8192, question_tokens=1024, chunk_tokens=5000, memory_tokens=1024)
DECODING: Final = Sampling(max_tokens=1024, temperature=0.7, top_p=0.95)
JUDGE_TOKENS: Final = 8192
_BESIDE_THE_VERDICT: Final = 3 * 1024
"""Tokens of a judge's window for the question, the memory, and template and history."""
_READING: Final = ("read", "answer", "integrate")


def as_published(profile: Profile) -> Profile:
    """Return the profile's prompts with the published budget, decoding, and words for an empty memory and history.

    The judge may write ``JUDGE_TOKENS``, or what the profile's window leaves it, and is held to no JSON. A profile with
    an origin keeps its own words: they are the published ones.
    """
    verdict = min(JUDGE_TOKENS, profile.budget.window_tokens - _BESIDE_THE_VERDICT)
    judging = replace(DECODING, max_tokens=max(DECODING.max_tokens, verdict))
    prompts = {name: replace(profile.prompts[name], sampling=DECODING) for name in _READING}
    prompts["judge"] = replace(profile.prompts["judge"], sampling=judging, reply=None)
    published = replace(profile, budget=PUBLISHED, prompts={**profile.prompts, **prompts}, subanswer="whole")
    if profile.origin is not None:
        return published
    return replace(published, empty_memory="No previous memory", no_history="NO HISTORY")
