"""The jobs of background responses: payload, status, events. The response itself is among the stored ones.

The event of sequence number N is entry ``0-(N+1)`` of the job's stream, so a number is written once: a worker that
resumes a job publishes all its events again, and those that are new are kept.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

import orjson

from gateway.metrics import Metrics
from gateway.queue import JobGone, LaneQueue, QueueRules, Submission
from gateway.responses.conversations.records import ConversationRecords
from gateway.responses.keeping import Responses
from gateway.responses.records import ResponseRecords
from gateway.settings import GatewaySettings
from memloop.wire.base import Wire
from memloop.wire.chat import Json, MemoryOptions
from memloop.wire.errors import Erased
from memloop.wire.memory import Namespace
from memloop_service import of_app
from memloop_state.link import State
from memloop_state.owners import Owner

RESPONSES_QUEUE: Final = "responses"
KEEP_MS: Final = 3600 * 1000
"""How long the events of a response stay after its end. The response is stored for longer."""
_LISTED: Final = "background"
UNDER_WAY: Final = ("queued", "in_progress")


class ResponseJob(Wire):
    """The payload of a background response: the request with all items that it continues, and what its key permits.

    ``named`` is the user of the request, ``namespace`` the same if the response has memory. ``began`` is the newest
    fencing token at its admission.
    """

    response_id: str
    tenant: str
    fields: Json
    named: Namespace | None
    namespace: Namespace | None
    memory: MemoryOptions | None
    left_out: str | None
    event_id: str
    began: int
    conversation: str | None


@dataclass(frozen=True, slots=True)
class Background:
    """The queue of background responses, and where the responses are stored. Methods raise Unavailable."""

    queue: LaneQueue
    responses: Responses

    async def enqueue(self, job: ResponseJob, response: Json) -> None:
        """Queue the job of a response, with its first two events. Raises Erased, and as ``LaneQueue.admit``."""
        here, id_ = self.queue.keys.of_id(job.response_id), job.response_id
        created: Json = {"type": "response.created", "response": response}
        queued: Json = {"type": "response.queued", "response": response}
        fields = {"tenant": job.tenant, "status": "queued", "record": "{}", "payload": job.model_dump_json()}
        await self.queue.admit(
            Submission(
                job_id=id_,
                lane=id_,
                created_ms=int(time.time() * 1000),
                index=here.key(_LISTED, job.tenant),
                fields=fields,
                first_event=orjson.dumps({**created, "sequence_number": 0}).decode(),
                owners=() if job.named is None else (Owner(job.named, job.began),),
            )
        )
        try:
            await self.publish(id_, [queued], first=1)
        except JobGone:
            raise Erased from None

    async def publish(self, response_id: str, events: Sequence[Json], *, first: int, last: bool = False) -> None:
        """Append events, of which the first has that number. Raises JobGone."""
        numbered = [
            orjson.dumps({**event, "sequence_number": number}).decode() for number, event in enumerate(events, first)
        ]
        await self.queue.jobs.publish(response_id, numbered, first=first, keep_ms=KEEP_MS if last else 0)

    async def status(self, response_id: str) -> str | None:
        """Return the job's status, or None when it is gone."""
        return (await self.queue.jobs.get(response_id, "status"))[0] or None

    async def cancel(self, response_id: str) -> bool:
        """Stop the job; return True if it had not begun. The worker of one that has stops within seconds."""
        outcome = await self.queue.cancel(response_id, response_id, record="{}", keep_ms=KEEP_MS)
        if outcome == "cancelled":
            await self.publish(response_id, (), first=0, last=True)
        return outcome == "cancelled"

    async def forget_job(self, response_id: str) -> None:
        """Delete the job with its payload, journal and events; a running worker loses its lease."""
        await self.queue.forget(response_id, response_id)

    async def forget(self, tenant: str, response_id: str) -> None:
        """Delete a response and its job, which goes first: a crash in between leaves a response that can be found.

        Raises NotFound.
        """
        await self.forget_job(response_id)
        await self.responses.records.delete(tenant, response_id)


def open_background(settings: GatewaySettings, state: State, rules: QueueRules, metrics: Metrics) -> Background:
    """Build the slice from the settings."""
    queue = LaneQueue(state, RESPONSES_QUEUE, keep_ms=KEEP_MS, rules=rules)
    records, conversations = ResponseRecords(state, settings), ConversationRecords(state, settings)
    return Background(queue, Responses(settings, records, conversations, metrics.responses_not_kept))


BackgroundDep: TypeAlias = Annotated[Background, of_app("background")]
