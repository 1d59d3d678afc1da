"""Opens the background responses, for the API and its workers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request
from redis.asyncio import Redis

from gateway.metrics import Metrics
from gateway.queue import LaneQueue, QueueRules
from gateway.responses.background.jobs import KEEP_MS, BackgroundJobs
from gateway.responses.conversations import open_conversations
from gateway.responses.responses import Responses, open_records, open_responses
from gateway.settings import GatewaySettings
from memloop.wire.memory import Namespace

RESPONSES_QUEUE = "responses"


@dataclass(frozen=True, slots=True)
class Background:
    """The queue of background responses, and where the responses are stored."""

    queue: LaneQueue
    jobs: BackgroundJobs
    responses: Responses


def open_background(settings: GatewaySettings, redis: Redis, rules: QueueRules, metrics: Metrics) -> Background:
    """Build the slice from the settings."""
    queue = LaneQueue(redis, RESPONSES_QUEUE, keep_ms=KEEP_MS, rules=rules)
    return Background(queue, BackgroundJobs(redis, queue), open_responses(settings, redis, metrics))


def open_erasure(settings: GatewaySettings, redis: Redis) -> Callable[[Namespace], Awaitable[object]]:
    """Return what deletes a user's responses, with their jobs, and conversations."""
    jobs = BackgroundJobs(redis, LaneQueue(redis, RESPONSES_QUEUE, keep_ms=KEEP_MS))
    records, conversations = open_records(settings, redis), open_conversations(settings, redis)

    async def forget(namespace: Namespace) -> None:
        await records.forget(namespace, first=jobs.forget)
        await conversations.forget(namespace)

    return forget


async def background_of(request: Request) -> Background:
    """Return the slice from the application's state."""
    return cast(Background, request.app.state.background)


BackgroundDep: TypeAlias = Annotated[Background, Depends(background_of)]
