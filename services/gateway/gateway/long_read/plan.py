"""Checks a long-read request against the served model's window, and plans who judges.

A read may have two models: one reads and answers, another judges whether the memory suffices.
"""

from dataclasses import dataclass, replace

from memloop.loops.journal import Journaled, max_calls
from memloop.loops.parity import PUBLISHED, as_published
from memloop.ports import ChatModel, Checkpoints, Chunks, Completion, Prompt, Splitter
from memloop.profiles import Budget, Profile
from memloop.wire.errors import TooLarge, Unprocessable
from memloop.wire.long_read import Estimate, LongReadRequest

_CHAT_TEMPLATE_TOKENS = 32
"""What a chat template puts around one user message, generously."""
_LEAST_CHUNK_TOKENS = 16
_LEAST_HEAD_TOKENS = 16


@dataclass(frozen=True, slots=True)
class ReadingPlan:
    """A valid request: the profile with the request's token limits, and the size of the question."""

    profile: Profile
    question_tokens: int

    @property
    def budget(self) -> Budget:
        """Return the token limits of chunk and memory."""
        return self.profile.budget


def plan_read(request: LongReadRequest, *, profile: Profile, splitter: Splitter, max_chars: int) -> ReadingPlan:
    """Plan the read. Raises TooLarge, and Unprocessable for a request that cannot be run.

    A file's text is known not to be empty. A chunk size in the request must fit the window; without one, the profile's
    is reduced as far as necessary.
    """
    text = request.document.text
    if text is not None and len(text) > max_chars:
        raise TooLarge(
            f"The document has {len(text)} characters; a body takes {max_chars}. Upload it with POST /v1/files.",
            param="document.text",
            code="document_too_large",
        )
    if text is not None and not text.strip():
        raise Unprocessable("The document is empty.", param="document.text", code="empty_document")
    if not all(question.strip() for question in request.asked):
        raise Unprocessable("The question is empty.", param="question", code="empty_question")
    check_options(request, profile)
    profile = as_published(profile) if request.options.parity else profile
    question_tokens = max(map(splitter.count, request.asked))
    if question_tokens > profile.budget.question_tokens:
        raise Unprocessable(
            f"The question has {question_tokens} tokens; this model takes at most {profile.budget.question_tokens}.",
            param="question" if request.questions is None else "questions",
            code="question_too_long",
        )
    tuned = profile.with_memory_tokens(request.memory_tokens or profile.budget.memory_tokens)
    # The tokens that template, question, memory and reply leave for a chunk
    specs = [tuned.prompts[name] for name in ("read", "gate") if name in tuned.prompts]
    fixed = max(splitter.count(f"{spec.system or ''}{spec.template}") for spec in specs) + _CHAT_TEMPLATE_TOKENS
    reply = max(spec.sampling.max_tokens for spec in specs)
    room = tuned.budget.most_tokens - fixed - question_tokens - tuned.budget.memory_tokens - reply
    asked = request.chunk_tokens
    chunk_tokens = asked if asked is not None else min(tuned.budget.chunk_tokens, room)
    if chunk_tokens > room or chunk_tokens < _LEAST_CHUNK_TOKENS:
        window = tuned.budget.most_tokens
        raise Unprocessable(
            f"The model's window of {window} tokens leaves {max(room, 0)} for a chunk beside the question, a memory of "
            f"{tuned.budget.memory_tokens} tokens and the reply. Ask with smaller chunk_tokens or memory_tokens.",
            param="chunk_tokens" if asked is not None else "memory_tokens",
            code="window_exceeded",
        )
    return ReadingPlan(replace(tuned, budget=replace(tuned.budget, chunk_tokens=chunk_tokens)), question_tokens)


def estimate(request: LongReadRequest, plan: ReadingPlan, chunks: Chunks, splitter: Splitter) -> Estimate:
    """Return the maximum cost of the read: every reread used, every memory and reply at its limit."""
    rereads = request.max_rereads if request.strategy == "memreread" else 0
    document_tokens = sum(chunks.span(index).tokens for index in range(len(chunks)))
    calls = max_calls(request, len(chunks), memories_in_a_chunk=plan.budget.memories_in_a_chunk)
    readings = len(request.asked) * (1 + rereads) * len(chunks)
    prompts = plan.profile.prompts
    longest = max(spec.sampling.max_tokens for spec in prompts.values())
    around = max(map(splitter.count, (spec.template for spec in prompts.values()))) + _CHAT_TEMPLATE_TOKENS
    question_tokens = max(plan.question_tokens, prompts["judge"].sampling.max_tokens if rereads else 0)
    asked = calls * (around + plan.question_tokens + question_tokens + 2 * plan.budget.memory_tokens)
    written = readings * prompts["read"].sampling.max_tokens + (calls - readings) * longest
    return Estimate(
        profile=plan.profile.ref,
        chunks=len(chunks),
        document_tokens=document_tokens,
        max_llm_calls=calls,
        max_input_tokens=asked + len(request.asked) * (1 + rereads) * document_tokens,
        max_output_tokens=written,
    )


def check_options(request: LongReadRequest, profile: Profile) -> None:
    """Raise Unprocessable for an option without an effect, or one that the model does not support."""
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


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model and its id; the journal's replies belong to that id."""

    id: str
    model: ChatModel

    def journaled(self, checkpoints: Checkpoints | None) -> ChatModel:
        """Return the model, called only for replies that these checkpoints lack."""
        return self.model if checkpoints is None else Journaled(self.model, _OfModel(checkpoints, self.id))


@dataclass(frozen=True, slots=True)
class JudgedApart:
    """A ChatModel whose judge prompts go to another model."""

    reader: ChatModel
    judge: ChatModel

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply of the model that the prompt is for."""
        return await (self.judge if prompt.name == "judge" else self.reader).complete(prompt)


def judged_by(profile: Profile, judge: Profile) -> Profile:
    """Return the reader's profile with the judge's own prompt."""
    prompts = {**profile.prompts, "judge": judge.prompts["judge"]}
    return replace(profile, prompts=prompts, no_history=judge.no_history)


@dataclass(frozen=True, slots=True)
class _OfModel:
    """The checkpoints of one model: another model's replies to the same prompts are not used."""

    checkpoints: Checkpoints
    model_id: str

    async def load(self, key: str) -> Completion | None:
        return await self.checkpoints.load(f"{self.model_id}:{key}")

    async def save(self, key: str, completion: Completion) -> None:
        await self.checkpoints.save(f"{self.model_id}:{key}", completion)
