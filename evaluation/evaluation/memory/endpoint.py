"""Calls an OpenAI-compatible endpoint and retries failed calls."""

import time
from dataclasses import dataclass

from evaluation.memory.records import Tokens
from memloop.ports import Prompt, Sampling
from memloop.wire.chat import ChatMessage
from memloop_clients.endpoints import DialectName
from memloop_clients.engine import EngineClient
from memloop_clients.transport import Timeouts
from trainer.data.retry_policy import RetryPolicy


@dataclass(frozen=True, slots=True)
class Address:
    """A model's URL, name and key, and the dialect of its endpoint."""

    url: str
    model: str
    api_key: str | None = None
    timeout_s: float = 600.0
    dialect: DialectName = "auto"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply without its thinking, and the duration of the successful call in seconds."""

    text: str
    tokens: Tokens
    seconds: float


class Endpoint:
    """A client of one model."""

    def __init__(self, address: Address, *, retries: RetryPolicy) -> None:
        self._address = address
        self._retries = retries
        self._client = EngineClient(
            address.url,
            model=address.model,
            api_key=address.api_key,
            timeouts=Timeouts(read_s=address.timeout_s, total_s=address.timeout_s),
            dialect=address.dialect,
        )

    async def ask(self, system: str, user: str | None, *, seed: int, max_tokens: int) -> Reply:
        """Return the model's reply, to the system message alone without a user's.

        Raises MemloopError when every attempt fails.
        """
        asked = () if user is None else (ChatMessage(role="user", content=user),)
        prompt = Prompt((ChatMessage(role="system", content=system), *asked), Sampling(max_tokens=max_tokens))

        async def once() -> Reply:
            began = time.perf_counter()
            completion = await self._client.ask(prompt, model=self._address.model, seed=seed)
            usage = Tokens(completion.usage.input_tokens, completion.usage.output_tokens)
            text = completion.content.rpartition("</think>")[2].strip()
            return Reply(text, usage, time.perf_counter() - began)

        return await self._retries.get(once)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()
