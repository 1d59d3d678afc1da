"""Runs background responses in the worker.

The engine's answer goes into the job's journal before anything is made of it, so a run that is repeated after a crash
makes the same response and publishes the same events.
"""

import time
from typing import Final, Literal

from gateway.chat import Chat, begin_turn, engine_body, has_memory, reply_text
from gateway.engine import CHAT_PATH, LoopModel, answer_in, refusal
from gateway.long_read.hosts import is_permanent
from gateway.queue import Hold, JobGone, JobResult, Lease
from gateway.responses.background.jobs import Background, ResponseJob
from gateway.responses.file_search import Searched, file_search_of, searched, with_passages
from gateway.responses.items import redacted
from gateway.responses.making import Draft, begun, feed_whole
from gateway.responses.records import Owner, StoredResponse
from gateway.responses.requests import Asked, read_request
from gateway.responses.to_chat import Question, question_of
from gateway.vector_stores import VectorStores
from memloop.wire.chat import ChatMemory, Json
from memloop.wire.errors import MemloopError, NotFound
from memloop_clients.replies import fault_in, offered_in, whole_reply
from memloop_service.http import JsonBody, json_text, object_in, parsed_object

_USAGE: Final[dict[Literal["input", "output"], str]] = {"input": "prompt_tokens", "output": "completion_tokens"}


_FIRST = 2
"""The number of the first event that a worker publishes: ``response.in_progress``."""


class ResponseHandler:
    """Runs the queued background responses."""

    def __init__(self, background: Background, chat: Chat, vector_stores: VectorStores) -> None:
        self._background = background
        self._chat = chat
        self._vector_stores = vector_stores

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Make the response. A request that can never succeed fails without a retry."""
        del hold
        job = await self._background.queue.jobs.leased(lease, ResponseJob)
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
        job = await self._background.queue.jobs.leased(lease, ResponseJob)
        return await self._failed(job, await self._stored(job), error)

    async def cancelled(self, lease: Lease) -> JobResult:
        """End the response as cancelled."""
        job = await self._background.queue.jobs.leased(lease, ResponseJob)
        stored = await self._stored(job)
        await self._end(job, {**stored.response, "status": "cancelled"}, anyway=True)
        await self._background.publish(job.response_id, (), first=0, last=True)
        return JobResult("cancelled", "{}")

    async def _made(self, job: ResponseJob, stored: StoredResponse) -> JobResult:
        asked = read_request(job.fields)
        question = question_of(asked, (), limit_field=self._chat.limit_field(asked.request.model))
        draft = Draft(job.response_id, stored.response)
        statuses: tuple[Literal["queued", "in_progress"], ...] = ("queued", "in_progress")
        events: list[Json] = [{"type": f"response.{name}", "response": draft.waiting(name)} for name in statuses]
        await self._background.publish(job.response_id, events, first=_FIRST - 1)
        search = None
        if file_search_of(asked) is not None:  # made once, whenever the job is repeated
            journal = self._background.queue.journal(job.response_id)
            known = await journal.read("search")
            if known is None:
                window = self._chat.backend.models.named(asked.request.model).window.tokens
                found = await searched(asked, question, self._vector_stores, job.tenant, window_tokens=window)
                known = await journal.keep("search", "null" if found is None else found.model_dump_json())
            search = None if known == "null" else Searched.model_validate_json(known)
        answer, memory = await self._answered(job, asked, with_passages(question, search))
        assembly, found = begun(asked, draft, question.tools, search)
        events = [*found, *feed_whole(assembly, answer)]
        response = draft.answered(assembly, object_in(answer.get("usage")), memory, stored=True)
        if job.conversation is not None:
            owner, items = Owner(job.tenant, job.named), [*stored.input, *assembly.output]
            added = await self._background.responses.conversations.append(job.conversation, owner, job.began, items)
            if added not in ("added", "duplicate"):  # an earlier run may have added them
                self._background.responses.lost.labels(added).inc()
        if not await self._end(job, response):
            return await self._failed(job, stored, self._background.responses.records.over_quota())
        events.append({"type": f"response.{response['status']}", "response": response})
        await self._background.publish(job.response_id, events, first=_FIRST + 1, last=True)
        return JobResult(str(response["status"]), "{}")

    async def _answered(self, job: ResponseJob, asked: Asked, question: Question) -> tuple[Json, ChatMemory | None]:
        """Return the engine's answer, redacted, and the response's memory field; the turn's write is queued."""
        chat, key = self._chat, job.namespace.lane() if job.namespace is not None else job.response_id
        model = chat.backend.models.serving(asked.request.model, key=key)
        read = question.read.model_copy(update={"memory": job.memory})
        turn = None
        if has_memory(read, job.namespace, job.left_out):
            turn = await begin_turn(
                chat, model, read, job.namespace, event_id=job.event_id, left_out=job.left_out, began=job.began
            )
        journal = self._background.queue.journal(job.response_id)
        known = await journal.read("answer")
        if known is None:
            body = JsonBody(json_text(question.body), question.body)
            answer = await self._asked(engine_body(body, model, turn), model)
            [answer] = await redacted([answer], chat.memory.keeper, Owner(job.tenant, job.named).scope)
            known = await journal.keep("answer", json_text(answer).decode())
        answer = whole_reply(parsed_object(known.encode()), offered_in(question.body))
        usage = object_in(answer.get("usage"))
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
            self._chat.backend.metrics.count_call(model.label, time.perf_counter() - began)
            return answer
        finally:
            upstream.close()

    async def _failed(self, job: ResponseJob, stored: StoredResponse, error: MemloopError) -> JobResult:
        code = "rate_limit_exceeded" if error.http_status == 429 else "server_error"
        response: Json = {**stored.response, "status": "failed", "error": {"code": code, "message": error.message}}
        await self._end(job, response, anyway=True)
        event: Json = {"type": "response.failed", "response": response}
        await self._background.publish(job.response_id, [event], first=_FIRST + 1, last=True)
        return JobResult("failed", "{}")

    async def _end(self, job: ResponseJob, response: Json, *, anyway: bool = False) -> bool:
        """Store the end; return whether there was room for it. Raises JobGone."""
        outcome = await self._background.responses.records.end(job.tenant, response, anyway=anyway)
        if outcome == "gone":
            raise await self._dropped(job)
        return outcome == "ended"

    async def _stored(self, job: ResponseJob) -> StoredResponse:
        """Return the response as it was queued. Raises JobGone when it was deleted or its user was erased."""
        try:
            return await self._background.responses.records.get(job.tenant, job.response_id)
        except NotFound:
            raise await self._dropped(job) from None

    async def _dropped(self, job: ResponseJob) -> JobGone:
        await self._background.forget_job(job.response_id)
        return JobGone(job.response_id)
