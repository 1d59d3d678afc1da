"""Which options of a read go together, and with the served model's profile."""

from memloop.loops.parity import PUBLISHED
from memloop.profiles import Profile
from memloop.wire.errors import Unprocessable
from memloop.wire.long_read import LongReadRequest

_LEAST_HEAD_TOKENS = 16


def check_options(request: LongReadRequest, profile: Profile) -> None:
    """Raises Unprocessable for an option that would do nothing, or that the model cannot follow."""
    options = request.options
    if options.parity:
        _check_parity(request, profile)
    if options.retrieved is not None and request.strategy != "memreread":
        raise _refused("retrieved", "Only rereads are retrieved: ask with strategy memreread.")
    if options.gated is not None and options.gated.skip and "gate" not in profile.prompts:
        message = f"The prompt profile {profile.name} has no gate prompt: this model cannot say that it skips a chunk."
        raise _refused("gated.skip", message)
    memory_tokens = request.memory_tokens or profile.budget.memory_tokens
    if options.mhm_lru is not None and memory_tokens // options.mhm_lru.heads < _LEAST_HEAD_TOKENS:
        message = f"A memory of {memory_tokens} tokens has no room for so many heads of {_LEAST_HEAD_TOKENS} tokens."
        raise _refused("mhm_lru.heads", message)


def _check_parity(request: LongReadRequest, profile: Profile) -> None:
    options = request.options
    if options.parallel or options.gated or options.retrieved or options.mhm_lru:
        raise _refused("parity", "Parity reads as published: it goes with no other option.")
    for name, published in (("chunk_tokens", PUBLISHED.chunk_tokens), ("memory_tokens", PUBLISHED.memory_tokens)):
        if getattr(request, name) not in (None, published):
            raise _refused("parity", f"Parity reads as published, with {name} of {published}.")
    if profile.budget.window_tokens < PUBLISHED.window_tokens:
        message = f"Parity needs a window of {PUBLISHED.window_tokens} tokens; this model's has "
        raise _refused("parity", f"{message}{profile.budget.window_tokens}.")


def _refused(option: str, message: str) -> Unprocessable:
    return Unprocessable(message, param=f"options.{option}", code="option_not_applicable")
