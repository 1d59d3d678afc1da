"""``Idempotency-Key``: a POST that changes state happens once, however often a client sends it.

A key belongs to a tenant and a route for 24 hours. One record is kept of it: a hash of the body, the user, the
ids in headers and the caller's scopes, who is at work until when, and in the end the answer.

* The first request with a key takes it and works; its answer is kept and replayed to every later one.
* The key with another body, for another user or agent or with other scopes is a conflict (409). So is the key while
  its first request is still at work (409 with ``Retry-After``): a wait would only hold a second connection open.
* A refusal (4xx) has changed nothing: it is not kept, and the key is free again.
* What fails (5xx), and a request whose client leaves or whose process dies, may have changed something. Its answer is
  not kept, but its *attempt* is: the next request with the key makes its ids of the same seed, so that what is
  already queued is not queued twice.
* Without the state nothing can be promised: a request with a key is refused (503), one without is not touched.
"""

import asyncio
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Protocol

from fastapi import Request, Response

from memloop.chores import renewed
from memloop.wire.errors import Conflict, DependencyError, InvalidRequest, MemloopError, Unavailable
from memloop.wire.memory import Namespace
from memloop_service.http import EventStream
from memloop_service.incoming import AGENT_HEADER, USER_HEADER
from memloop_state.lease import KEEP_MS as KEEP_MS
from memloop_state.lease import LEASE_MS, Once
from memloop_state.link import RETRY_AFTER_S, State
from memloop_state.steps import digest, id_at

KEY_HEADER: Final = "idempotency-key"


def refuse_key(request: Request, message: str, *, code: str | None = None) -> None:
    """Raises InvalidRequest when the request has a key."""
    if KEY_HEADER in request.headers:
        raise InvalidRequest(message, param=KEY_HEADER, code=code)


_KEYED: Final = frozenset(
    {
        "/v1/long-read",
        "/v1/memory/add",
        "/v1/memory/batch",  # refuses a key itself, with the reason
        "/v1/memory/buffers/flush",
        "/v3/memories/add",
    }
)
"""Our routes that look at the key. The routes of other APIs ignore one that they do not take."""
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH"})


def refuse_ignored_key(request: Request) -> None:
    """Raise InvalidRequest when the request has a key that its route would ignore: a repetition would work again."""
    if request.method in _CHANGING and request.scope["route"].path not in _KEYED:
        refuse_key(request, "This route takes no Idempotency-Key.", code="idempotency_key_not_taken")


def refuse_key_of_stream(request: Request) -> None:
    """Raises InvalidRequest when the request has a key: a stream cannot be replayed, and we promise nothing untrue."""
    refuse_key(request, "An Idempotency-Key is not served with stream: true.", code="idempotency_key_with_stream")


def subject_of_scope(user_id: str, scope: str) -> str:
    """The subject of answers that hold the data of one of a user's scopes."""
    return f"user:{user_id} {scope}"


def subject_of_response(response_id: str) -> str:
    """The subject of an answer that is a stored response."""
    return f"response:{response_id}"


def subject_of_read(read_id: str) -> str:
    """The subject of a long read's answer."""
    return f"read:{read_id}"


REPLAYED_HEADER: Final = "idempotent-replayed"
_BIG_BODY_BYTES = 1024 * 1024
_KEY = re.compile(r"[\x20-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a request. Every try under the same idempotency key has the same seed, and so makes the same ids."""

    seed: str

    def id_of(self, part: str = "") -> str:
        """Return 32 hex digits that cannot be guessed, different for each part of the work."""
        return hashlib.sha256(f"{self.seed}\0{part}".encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def event_id(self, namespace: Namespace, part: str = "") -> str:
        """Return the id of a memory write in that namespace."""
        return id_at("evt_", namespace.lane(), self.id_of(part))


Work = Callable[[Attempt], Awaitable[Response]]
Subject = str | Callable[[Attempt], str]
"""What an answer holds beside its owners' data, or a function that names it from the attempt."""


class Asker(Protocol):
    """Who sends a request, and with which rights."""

    @property
    def tenant(self) -> str:
        """Bounds what the request may see."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """Decide what its answer shows."""
        ...


class Idempotency:
    """The records of requests. An answer longer than ``max_bytes`` is not kept: its repetition is a conflict."""

    def __init__(self, state: State, *, max_bytes: int) -> None:
        self._once = Once(state)
        self._max_bytes = max_bytes

    async def once(
        self, request: Request, asker: Asker, work: Work, *, owners: Sequence[Namespace] = (), also: Subject = ""
    ) -> Response:
        """The answer of ``work``, or the one that it gave to the same request before.

        The request's body must have been read. ``owners`` are those whose data the answer holds, for ``forget_owner``;
        user and agent may stand outside the body, so a request for another one is another request. So is one with other
        scopes. ``also`` names a further subject, for ``forget``.
        Raises Conflict, Unavailable, InvalidRequest, and what ``work`` raises.
        """
        key = request.headers.get(KEY_HEADER)
        if key is None:
            return await work(Attempt(secrets.token_hex(16)))
        if not _KEY.fullmatch(key):
            raise InvalidRequest(
                "An Idempotency-Key has 1 to 255 printable ASCII characters.", param=KEY_HEADER, code="invalid_header"
            )
        record = digest(asker.tenant, request.scope["route"].path, key)
        taken = record, secrets.token_hex(16)
        of_scopes = [subject_of_scope(owner.user_id, scope) for owner in owners for scope in owner.scopes()]
        for_whom = digest(
            *of_scopes,
            *sorted(asker.scopes),
            *[f"{name}: {request.headers[name]}" for name in (USER_HEADER, AGENT_HEADER) if request.headers.get(name)],
        )
        body = await request.body()
        hashed = hashlib.sha256(for_whom.encode())
        if len(body) < _BIG_BODY_BYTES:
            hashed.update(body)
        else:
            await asyncio.to_thread(hashed.update, body)
        seed, kept = await self._taken(*taken, hashed.hexdigest())
        if kept is not None:
            return kept
        attempt = Attempt(seed)
        further = also if isinstance(also, str) else also(attempt)
        for subject in filter(None, (*of_scopes, further)):
            try:
                await self._once.note(digest(asker.tenant, subject), record)
            except DependencyError:
                await self._released(taken, "free")
                raise
        try:
            async with renewed(partial(self._once.extend, *taken), every_s=LEASE_MS / 3000):
                answer = await work(attempt)
        except BaseException as error:
            is_free = isinstance(error, MemloopError) and error.http_status < 500
            await asyncio.shield(self._released(taken, "free" if is_free else "again"))
            raise
        if isinstance(answer, EventStream):  # of an engine that streams unasked
            await self._released(taken, "again")
        else:
            raw = bytes(answer.body)
            short = len(raw) <= self._max_bytes
            status, kind = answer.status_code if short else 0, answer.media_type or "application/json"
            with suppress(DependencyError):  # the client gets the answer all the same
                answered = raw.decode() if short else ""
                await self._once.keep(*taken, status=status, media_type=kind, answer=answered)
        return answer

    async def forget_owner(self, namespace: Namespace) -> int:
        """Delete the kept answers that hold the namespace's data, as ``forget`` does."""
        subject = subject_of_scope(namespace.user_id, namespace.scopes()[-1])
        return await self._once.forget(digest(namespace.tenant, subject))

    async def forget(self, tenant: str, subject: str) -> int:
        """Delete the kept answers that hold the subject's data; how many records. Raises Unavailable.

        The answers of requests that are at work are not kept.
        """
        return await self._once.forget(digest(tenant, subject))

    async def _taken(self, record: str, name: str, body: str) -> tuple[str, Response | None]:
        """The seed, when the key is ours now, or the answer that is there."""
        try:
            outcome, rest = await self._once.take(record, body, name)
        except DependencyError as error:
            raise Unavailable(
                "The state is gone, and without it an Idempotency-Key promises nothing.", retry_after_s=RETRY_AFTER_S
            ) from error
        if outcome == "other":
            raise Conflict(
                "This Idempotency-Key was used for another request.", param=KEY_HEADER, code="idempotency_key_reused"
            )
        if outcome == "busy":
            raise Conflict(
                "The first request with this Idempotency-Key is still at work.",
                param=KEY_HEADER,
                code="idempotency_key_in_use",
                retry_after_s=1.0,
            )
        if outcome != "done":
            return rest[0], None
        status, kind, answer = rest
        if status == "0":
            raise Conflict(
                "This request was done before; its answer was too long to be kept.",
                param=KEY_HEADER,
                code="idempotency_answer_not_kept",
            )
        return "", Response(answer, status_code=int(status), media_type=kind, headers={REPLAYED_HEADER: "true"})

    async def _released(self, taken: tuple[str, str], how: Literal["free", "again"]) -> None:
        with suppress(DependencyError):
            await self._once.release(*taken, how)
