"""A ChatModel for any agent: records its calls, and makes rows for training of them.

A call is a prompt and its reply. Where a prompt continues an earlier conversation token by token, both become one row:
the tokens between the replies (a tool's result, the environment's words) are part of it and not trained. Where it does
not, because the template renders earlier replies in other words or the agent shortened its history, it is a row of its
own, whose prompt is not trained. Either way exactly the tokens that the policy sampled are trained, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memloop.ports import Completion, Prompt
from trainer.rollout.recording import Template, TokenEngine, Turn, ask, completion_of


class TooManyCalls(RuntimeError):
    """The agent asked the model more often than the recipe allows."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A row. ``mask`` is 1 for the response's tokens that the policy sampled; ``log_probs`` are 0 for the others.

    ``limit`` sums the limits of its replies; ``versions`` are the policy's first and last step in it.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    mask: tuple[int, ...]
    log_probs: tuple[float, ...]
    limit: int
    truncated: bool
    versions: tuple[int, int]

    @classmethod
    def of(cls, turn: Turn) -> Conversation:
        """Return the row of a single call."""
        reply = turn.reply
        return cls(
            prompt_ids=turn.prompt_ids,
            response_ids=reply.token_ids,
            mask=(1,) * len(reply.token_ids),
            log_probs=_log_probs(turn),
            limit=turn.prompt.sampling.max_tokens,
            truncated=reply.truncated,
            versions=(reply.version, reply.version),
        )

    def is_continued_by(self, turn: Turn, *, max_response_tokens: int) -> bool:
        """Return whether the call's prompt begins with this conversation, and the row still has room for it."""
        so_far = self.prompt_ids + self.response_ids
        whole = len(turn.prompt_ids) + len(turn.reply.token_ids)
        return turn.prompt_ids[: len(so_far)] == so_far and whole - len(self.prompt_ids) <= max_response_tokens

    def continued(self, turn: Turn) -> Conversation:
        """Return the row with a call that continues it."""
        between = turn.prompt_ids[len(self.prompt_ids) + len(self.response_ids) :]
        reply = turn.reply
        return Conversation(
            prompt_ids=self.prompt_ids,
            response_ids=(*self.response_ids, *between, *reply.token_ids),
            mask=(*self.mask, *(0 for _ in between), *(1 for _ in reply.token_ids)),
            log_probs=(*self.log_probs, *(0.0 for _ in between), *_log_probs(turn)),
            limit=self.limit + turn.prompt.sampling.max_tokens,
            truncated=self.truncated or reply.truncated,
            versions=(min(self.versions[0], reply.version), max(self.versions[1], reply.version)),
        )


def joined(turns: Iterable[Turn], *, max_response_tokens: int) -> list[Conversation]:
    """Return the calls as rows, in the order in which the rows began; each call continues the longest row it can."""
    rows: list[Conversation] = []
    for turn in turns:
        earlier = [
            at for at, row in enumerate(rows) if row.is_continued_by(turn, max_response_tokens=max_response_tokens)
        ]
        if earlier:
            at = max(earlier, key=lambda each: len(rows[each].prompt_ids) + len(rows[each].response_ids))
            rows[at] = rows[at].continued(turn)
        else:
            rows.append(Conversation.of(turn))
    return rows


class AgentModel:
    """A ChatModel for one run of an agent, which may make calls side by side."""

    def __init__(self, engine: TokenEngine, template: Template, *, max_prompt_tokens: int, max_calls: int) -> None:
        self._engine = engine
        self._template = template
        self._max_prompt_tokens = max_prompt_tokens
        self._max_calls = max_calls
        self._calls: list[Turn | None] = []

    @property
    def turns(self) -> list[Turn]:
        """Return the answered calls, in the order in which they were made."""
        return [turn for turn in self._calls if turn is not None]

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply. Raises TooManyCalls, and as :func:`trainer.rollout.recording.ask`."""
        if len(self._calls) >= self._max_calls:
            raise TooManyCalls(f"an agent asked the model more than memloop.max_calls={self._max_calls} times")
        place = len(self._calls)
        self._calls.append(None)
        turn = await ask(prompt, self._engine, self._template, max_prompt_tokens=self._max_prompt_tokens)
        self._calls[place] = turn
        return completion_of(turn, self._template)


def _log_probs(turn: Turn) -> tuple[float, ...]:
    """Return one log-probability per token; zeros where the engine was not asked for them."""
    return turn.reply.log_probs or (0.0,) * len(turn.reply.token_ids)
