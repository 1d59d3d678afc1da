"""What the calls of a loop cost: those that were paid for are replayed, and a budget ends a run.

Resume is by replay: a loop that died is run again, and its journal answers the calls that it made before.

The loops are deterministic in their replies, so the same calls come in the same order, up to where the last run ended.
Calls that run side by side carry the name of their branch, so it does not matter which of them comes first.
"""

import asyncio
import hashlib
import json
from collections import Counter
from math import ceil
from typing import Literal, cast

from pydantic import TypeAdapter

from memloop.ports import ChatModel, Checkpoints, Completion, Prompt
from memloop.wire.long_read import LongReadRequest
from memloop.wire.memory import Usage
from memloop.wire.reading import ReadingOptions

_COMPLETION = TypeAdapter(Completion)


class Journaled:
    """A ChatModel that asks the checkpoints first. One instance per run of a loop; ``replayed`` counts the hits.

    Put a retrying model inside, not outside: a call that failed is a call of its own here.
    """

    def __init__(self, model: ChatModel, checkpoints: Checkpoints) -> None:
        self._model = model
        self._checkpoints = checkpoints
        self._seen: Counter[str] = Counter()
        self.replayed = 0

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply of an earlier run, or a new one that is kept before it is returned."""
        digest = prompt_digest(prompt)
        self._seen[digest] += 1
        key = f"{digest}:{self._seen[digest]}"
        earlier = await self._checkpoints.load(key)
        if earlier is not None:
            self.replayed += 1
            return earlier
        completion = await self._model.complete(prompt)
        await self._checkpoints.save(key, completion)
        return completion


def prompt_digest(prompt: Prompt) -> str:
    """SHA-256 (hex) of all that shapes the reply: messages, decoding, tools, thinking; and the branch."""
    sampling = prompt.sampling
    content = {
        "messages": [message.model_dump(exclude_none=True) for message in prompt.messages],
        "sampling": [sampling.max_tokens, sampling.temperature, sampling.top_p],
        "tools": prompt.tools,
        "tool_choice": prompt.tool_choice,
        "thinking": prompt.thinking,
        **({"reply": [prompt.reply.name, prompt.reply.schema]} if prompt.reply else {}),
        **({"branch": prompt.branch} if prompt.branch else {}),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def dump_completion(completion: Completion) -> bytes:
    """Return a reply as ASCII JSON, for a checkpoint store; any text survives, lone surrogates included."""
    return json.dumps(_COMPLETION.dump_python(completion)).encode("ascii")


def load_completion(raw: bytes | str) -> Completion:
    """Return the reply that ``dump_completion`` wrote. Raises ValueError on anything else."""
    fields = cast(object, json.loads(raw))
    return _COMPLETION.validate_python(fields)


class BudgetSpent(Exception):
    """The loop must end here, with what it has. ``reason`` is the ``incomplete_details.reason`` of a long read."""

    def __init__(self, reason: Literal["max_llm_calls", "deadline"]) -> None:
        super().__init__(reason)
        self.reason: Literal["max_llm_calls", "deadline"] = reason


class Budgeted:
    """A ChatModel with a limit of calls and a deadline in seconds from now; None is no limit.

    Raises BudgetSpent in place of the first call over a limit, and when the deadline passes during a call (which is
    cancelled). Around a ``Journaled``, replayed calls count too, so the limit is one per read and not one per attempt.
    ``usage`` is what was spent so far.
    """

    def __init__(self, model: ChatModel, *, max_llm_calls: int | None = None, deadline_s: float | None = None) -> None:
        self._model = model
        self._calls_left = max_llm_calls
        self._deadline = None if deadline_s is None else asyncio.get_running_loop().time() + deadline_s
        self.usage = Usage()

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the inner model's reply. Raises BudgetSpent at a limit."""
        if self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline:
            raise BudgetSpent("deadline")
        if self._calls_left == 0:
            raise BudgetSpent("max_llm_calls")
        if self._calls_left is not None:
            self._calls_left -= 1
        timeout = asyncio.timeout_at(self._deadline)
        try:
            async with timeout:
                completion = await self._model.complete(prompt)
        except TimeoutError:
            if timeout.expired():
                raise BudgetSpent("deadline") from None
            raise
        finally:
            del timeout  # it holds the task, which holds an error whose traceback holds this frame
        self.usage += completion.usage
        return completion


def memreread_calls(chunks: int, *, rereads: int, max_rereads: int) -> int:
    """Calls of a read that used ``rereads`` of at most ``max_rereads``: (1+k)·N + (k + [k<R]) + 2k + 1."""
    judged = rereads + int(rereads < max_rereads)
    return (1 + rereads) * chunks + judged + 2 * rereads + 1


def pass_calls(chunks: int, *, options: ReadingOptions, memories_in_a_chunk: int) -> int:
    """Return the most calls of one pass: a judge after each chunk that it may end at, and the merges of segments."""
    judged = options.gated is not None and options.gated.exit and not options.gated.skip
    segments = min(options.parallel.segments, chunks) if options.parallel else 1
    return chunks * (2 if judged else 1) + ceil((segments - 1) / memories_in_a_chunk)


def max_calls(request: LongReadRequest, chunks: int, *, memories_in_a_chunk: int) -> int:
    """Return the most that a read can cost. A reread counts all chunks: it visits them when retrieval finds nothing."""
    calls = pass_calls(chunks, options=request.options, memories_in_a_chunk=memories_in_a_chunk)
    if request.strategy == "memagent":
        return len(request.asked) * (calls + 1)  # and the answer
    rereads = request.max_rereads
    return len(request.asked) * memreread_calls(calls, rereads=rereads, max_rereads=rereads)
