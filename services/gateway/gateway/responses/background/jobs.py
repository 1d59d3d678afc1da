"""The jobs of background responses: payload, status, events, and their run in the worker.

The response itself is among the stored ones. The engine's answer goes into the job's journal before anything is made of
it, so a run that is repeated after a crash makes the same response and publishes the same events.

The event of sequence number N is entry ``0-(N+1)`` of the job's stream, so a number is written once: a worker that
resumes a job publishes all its events again, and those that are new are kept.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

import orjson

from gateway.access import Charge, tokens_in
from gateway.chat import Chat, begin_turn, engine_body, has_memory, reply_text
from gateway.engine import CHAT_PATH, LoopModel, answer_in, refusal
from gateway.long_read.hosts import is_permanent
from gateway.metrics import Metrics
from gateway.queue import Hold, JobGone, JobResult, LaneQueue, Lease, QueueRules, Submission
from gateway.responses.conversations.records import ConversationRecords
from gateway.responses.file_search import Searched, file_search_of, searched, with_passages
from gateway.responses.items import redacted
from gateway.responses.keeping import Responses
from gateway.responses.making import Draft, Making
from gateway.responses.records import ResponseRecords, StoredResponse, owners_of
from gateway.responses.requests import Asked, read_request
from gateway.responses.to_chat import Question, question_of
from gateway.settings import GatewaySettings
from gateway.vector_stores import VectorStores
from memloop.wire.base import Wire
from memloop.wire.chat import ChatMemory, Json, MemoryOptions
from memloop.wire.errors import DependencyError, Erased, MemloopError, NotFound
from memloop.wire.memory import Namespace, Scope
from memloop_clients.replies import fault_in, offered_in, whole_reply
from memloop_service import of_app
from memloop_service.http import JsonBody, json_text, object_in, parsed_object
from memloop_state.link import State
from memloop_state.room import UNLIMITED, Rates

RESPONSES_QUEUE: Final = "responses"
KEEP_MS: Final = 3600 * 1000
"""How long the events of a response stay after its end. The response is stored for longer."""
_LISTED: Final = "background"
UNDER_WAY: Final = ("queued", "in_progress")


class ResponseJob(Wire):
    """The payload of a background response: the request with all items that it continues, and what its key permits.

    ``named`` is the user of the request, ``namespace`` the same if the response has memory. ``began`` is the newest
    fencing token at its admission. ``charge`` is what its key's window holds for it, corrected when the engine answers.
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
    charge: Charge | None = None

    @property
    def scope(self) -> Scope:
        """Whose policies apply, and whose erasure deletes the response."""
        return self.named or Scope(tenant=self.tenant)


@dataclass(frozen=True, slots=True)
class Background(Responses):
    """Where responses are stored, and the queue of those that a worker makes. Methods raise Unavailable."""

    queue: LaneQueue
    rates: Rates

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
                owners=owners_of(job.scope, job.began),
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
        await self.records.delete(tenant, response_id)


def open_background(settings: GatewaySettings, state: State, rules: QueueRules, metrics: Metrics) -> Background:
    """Build the slice from the settings."""
    queue = LaneQueue(state, RESPONSES_QUEUE, keep_ms=KEEP_MS, rules=rules)
    records, conversations = ResponseRecords(state, settings), ConversationRecords(state, settings)
    return Background(settings, records, conversations, metrics.responses_not_kept, queue, Rates(state, UNLIMITED))


BackgroundDep: TypeAlias = Annotated[Background, of_app("background")]


_USAGE: Final[dict[Literal["input", "output"], str]] = {"input": "prompt_tokens", "output": "completion_tokens"}


_FIRST = 2
"""The number of the first event that a worker publishes: ``response.in_progress``."""


@dataclass(frozen=True, slots=True)
class ResponseHandler:
    """Runs the queued background responses."""

    background: Background
    chat: Chat
    vector_stores: VectorStores

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Make the response. A request that can never succeed fails without a retry."""
        del hold
        job = await self.background.queue.jobs.leased(lease, ResponseJob)
        stored = await self._stored(job)
        try:
            return await self._made(job, stored)
        except MemloopError as error:
            if not is_permanent(error):
                raise
            return await self._failed(job, stored, error)

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """End the response as failed."""
        del attempts
        job = await self.background.queue.jobs.leased(lease, ResponseJob)
        return await self._failed(job, await self._stored(job), error)

    async def cancelled(self, lease: Lease) -> JobResult:
        """End the response as cancelled."""
        job = await self.background.queue.jobs.leased(lease, ResponseJob)
        stored = await self._stored(job)
        await self._end(job, {**stored.response, "status": "cancelled"}, anyway=True)
        await self.background.publish(job.response_id, (), first=0, last=True)
        return JobResult("cancelled", "{}")

    async def _made(self, job: ResponseJob, stored: StoredResponse) -> JobResult:
        asked = read_request(job.fields)
        question = question_of(asked, (), self.chat)
        draft = Draft(stored.response)
        events: list[Json] = [
            {"type": "response.queued", "response": draft.waiting("queued")},
            {"type": "response.in_progress", "response": draft.waiting("in_progress")},
        ]
        await self.background.publish(job.response_id, events, first=_FIRST - 1)
        search = None
        if file_search_of(asked) is not None:  # made once, whenever the job is repeated
            journal = self.background.queue.journal(job.response_id)
            known = await journal.read("search")
            if known is None:
                found = await searched(asked, question, self.vector_stores, job.tenant, self.chat)
                known = await journal.keep("search", "null" if found is None else found.model_dump_json())
            search = None if known == "null" else Searched.model_validate_json(known)
        answer, memory = await self._answered(job, asked, with_passages(question, search))
        making = Making(asked, draft, tools=question.tools, search=search)
        events, output = making.fed(answer), making.assembly.output
        response = draft.answered(making.assembly, object_in(answer.get("usage")))
        if memory is not None:
            response["memory"] = memory.model_dump(mode="json")
        if job.conversation is not None:
            items = [*stored.input, *output]
            added = await self.background.conversations.append(job.conversation, job.scope, job.began, items)
            if added != "duplicate":  # an earlier run may have added them
                self.background.count_lost(added)
        if not await self._end(job, response):
            return await self._failed(job, stored, self.background.records.over_quota())
        events.append({"type": f"response.{response['status']}", "response": response})
        await self.background.publish(job.response_id, events, first=_FIRST + 1, last=True)
        return JobResult(str(response["status"]), "{}")

    async def _answered(self, job: ResponseJob, asked: Asked, question: Question) -> tuple[Json, ChatMemory | None]:
        """Return the engine's answer, redacted, and the response's memory field; the turn's write is queued."""
        chat, key = self.chat, job.namespace.lane() if job.namespace is not None else job.response_id
        model = chat.backend.models.serving(asked.request.model, key=key)
        read = question.read.model_copy(update={"memory": job.memory})
        turn = None
        if has_memory(read, job.namespace, job.left_out):
            turn = await begin_turn(
                chat, model, read, job.namespace, event_id=job.event_id, left_out=job.left_out, began=job.began
            )
        journal = self.background.queue.journal(job.response_id)
        known = await journal.read("answer")
        if known is None:
            body = JsonBody(json_text(question.body), question.body)
            answer = await self._asked(engine_body(body, model, turn), model)
            [answer] = await redacted([answer], chat.memory.keeper, job.scope)
            known = await journal.keep("answer", json_text(answer).decode())
        answer = whole_reply(parsed_object(known.encode()), offered_in(question.body))
        usage = object_in(answer.get("usage"))
        if (used := tokens_in(usage)) is not None:
            await self._charge(job, used)
        for kind, field in _USAGE.items():
            if isinstance(tokens := usage.get(field), int):
                chat.memory.metrics.count_tokens(kind, "responses", model.label, tokens)
        if turn is None:
            return answer, None
        return answer, await turn.answered(chat, reply_text(answer), usage=usage, waits=False)

    async def _asked(self, body: bytes, model: LoopModel) -> Json:
        began = time.perf_counter()
        upstream = await model.engines.send(body, path=CHAT_PATH)
        try:
            if not upstream.succeeded:
                raise await refusal(upstream)
            answer = answer_in(await upstream.read())
            if (fault := fault_in(answer)) is not None:
                raise fault
            self.chat.backend.metrics.count_call(model.label, time.perf_counter() - began)
            return answer
        finally:
            upstream.close()

    async def _charge(self, job: ResponseJob, tokens: int) -> None:
        """Put the tokens used in the place of the estimate; the first run that comes here does. Raises JobGone."""
        if (charge := job.charge) is None:
            return
        mark = secrets.token_hex(8)
        if await self.background.queue.journal(job.response_id).keep("charged", mark) != mark:
            return
        try:
            more = tokens - charge.tokens
            await self.background.rates.settle(charge.bucket, second=charge.second, more=more)
        except DependencyError:
            self.chat.memory.metrics.rate_limit_skipped.inc()

    async def _failed(self, job: ResponseJob, stored: StoredResponse, error: MemloopError) -> JobResult:
        await self._charge(job, 0)  # unless the engine had answered
        code = "rate_limit_exceeded" if error.http_status == 429 else "server_error"
        response: Json = {**stored.response, "status": "failed", "error": {"code": code, "message": error.message}}
        await self._end(job, response, anyway=True)
        event: Json = {"type": "response.failed", "response": response}
        await self.background.publish(job.response_id, [event], first=_FIRST + 1, last=True)
        return JobResult("failed", "{}")

    async def _end(self, job: ResponseJob, response: Json, *, anyway: bool = False) -> bool:
        """Store the end; return whether there was room for it. Raises JobGone."""
        outcome = await self.background.records.end(job.tenant, response, anyway=anyway)
        if outcome == "gone":
            raise await self._dropped(job)
        return outcome == "changed"

    async def _stored(self, job: ResponseJob) -> StoredResponse:
        """Return the response as it was queued. Raises JobGone when it was deleted or its user was erased."""
        try:
            return await self.background.records.get(job.tenant, job.response_id)
        except NotFound:
            raise await self._dropped(job) from None

    async def _dropped(self, job: ResponseJob) -> JobGone:
        await self.background.forget_job(job.response_id)
        return JobGone(job.response_id)
