"""Trains any agent that is one async function: ``memloop.agent: package.module:function``.

    async def solve(row: Mapping[str, Any], model: ChatModel) -> float | Sequence[float]

``row`` has the columns of the data set, ``model`` is the policy. The function returns the reward of the run, or one
reward for each call in the order of the calls. With one reward R the calls are joined to conversations; with rewards
r_c for n calls the run's reward is their mean, and each call adds its own part to the advantage A of the run:

    R = 1/n · Σ_c r_c          A_c = A + (r_c − R)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from typing import Any, TypeAlias, cast

from memloop.ports import ChatModel
from trainer.rollout.conversations import AgentModel, Conversation, joined

Rewards: TypeAlias = float | Sequence[float]
AgentFunction: TypeAlias = Callable[[Mapping[str, Any], ChatModel], Awaitable[Rewards]]


class AgentError(ValueError):
    """The name leads to no agent, or the agent broke its contract; the message holds the reason."""


@dataclass(frozen=True, slots=True)
class FunctionSession:
    """A run's rows, the reward of the run, and what each row adds to its advantage."""

    conversations: tuple[Conversation, ...]
    reward: float
    credits: tuple[float, ...]


def load_function(name: str) -> AgentFunction:
    """Import ``package.module:function``. Raises AgentError unless it is an async function of a row and a model."""
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise AgentError(f"memloop.agent={name} reads package.module:function")
    try:
        found: object = getattr(import_module(module), attribute)
    except ImportError as error:
        raise AgentError(f"memloop.agent={name}: {error} (is its folder on the PYTHONPATH?)") from error
    except AttributeError as error:
        raise AgentError(f"memloop.agent={name}: {module} has no {attribute}") from error
    if not inspect.iscoroutinefunction(found):
        raise AgentError(f"memloop.agent={name} is not an async function")
    try:
        inspect.signature(found).bind({}, None)
    except TypeError as error:
        raise AgentError(f"memloop.agent={name} does not take a row and a model: {error}") from error
    return cast(AgentFunction, found)


async def run_function(
    agent: AgentFunction, row: Mapping[str, Any], model: AgentModel, *, max_response_tokens: int
) -> FunctionSession:
    """Run the agent. Raises AgentError for a reward that is none, and the agent's and the model's own errors."""
    rewards = await agent(row, model)
    turns = model.turns
    if not turns:
        raise AgentError("the agent returned without a call of the model: there is nothing to train")
    if not isinstance(rewards, Sequence):
        rows = joined(turns, max_response_tokens=max_response_tokens)
        return FunctionSession(tuple(rows), _finite(rewards), (0.0,) * len(rows))
    each = [_finite(reward) for reward in rewards]
    if len(each) != len(turns):
        raise AgentError(f"the agent returned {len(each)} rewards for {len(turns)} calls of the model")
    mean = sum(each) / len(each)
    return FunctionSession(tuple(map(Conversation.of, turns)), mean, tuple(reward - mean for reward in each))


def _finite(reward: object) -> float:
    if not isinstance(reward, (int, float)) or not isfinite(reward):
        raise AgentError(f"the agent returned the reward {reward!r}, which is not a finite number")
    return float(reward)
