"""Resume by replay: a loop that died is run again, and its journal answers the calls that were already paid for.

The loops are deterministic in their replies, so the same calls come in the same order, up to where the last run ended.
Calls that run side by side carry the name of their branch, so it does not matter which of them comes first.
"""

import hashlib
import json
from collections import Counter
from typing import cast

from pydantic import TypeAdapter

from memloop.ports import ChatModel, Checkpoints, Completion, Prompt

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
