"""Calls Memloop's own gateway: chat, long reads, files, memory, keys."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memloop.wire.base import OpenWire
from memloop.wire.chat import ChatMemory, Json, TokenCounts
from memloop.wire.files import FileObject
from memloop.wire.keys import KeyCreate, KeyPage, KeyRevoked, NewApiKey
from memloop.wire.long_read import Estimate, LongRead, LongReadRequest, ReadEvent
from memloop.wire.memory import Usage
from memloop.wire.rollouts import Rollout, RolloutChange, RolloutEnded, RolloutPage
from memloop_clients.gateway_memory import MemoryCalls, body_of, ended, once
from memloop_clients.http import parsed, segment


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of a streamed reply; ``reasoning`` is the model's thought before it."""

    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """A whole reply, stripped, the memory's part in it (None without memory), and the engine's count of tokens."""

    text: str
    memory: ChatMemory | None
    usage: Usage = Usage()


class _Delta(OpenWire):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class _Choice(OpenWire):
    delta: _Delta = _Delta()


class ChatChunk(OpenWire):
    """One event of a streamed reply."""

    choices: tuple[_Choice, ...] = ()
    memory: ChatMemory | None = None
    usage: TokenCounts | None = None

    def delta(self) -> ChatDelta:
        """Return the first choice's piece."""
        if not self.choices:
            return ChatDelta()
        delta = self.choices[0].delta
        return ChatDelta(delta.content or "", delta.reasoning or delta.reasoning_content or "")


def file_form(filename: str, content: bytes, boundary: str, *, expires_s: int | None = None) -> bytes:
    """Return the body of a file upload with OpenAI's purpose ``user_data``, deleted after ``expires_s`` seconds."""
    escaped = filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    fields = {"purpose": "user_data"}
    if expires_s is not None:
        fields |= {"expires_after[anchor]": "created_at", "expires_after[seconds]": str(expires_s)}
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ) + (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{escaped}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()


_DONE: Final = "[DONE]"


class GatewayClient(MemoryCalls):
    """Has one method per call, and never retries.

    Every method raises the error of ``memloop.wire.errors`` that matches the gateway's status, with the gateway's
    message and field; Unreachable when nothing listens at the URL, Unavailable when the connection is lost, Timeout,
    and DependencyError for an answer of another shape.

    A ``name`` makes a write idempotent: the gateway runs calls with one name and one body once.
    """

    async def models(self) -> tuple[str, ...]:
        return tuple(model.id for model in (await self._answer(_Models, "GET", "models")).data)

    async def chat(self, body: Json) -> AsyncGenerator[ChatDelta | ChatAnswer]:
        """Stream a chat completion: its pieces, then the whole. Closing the generator early aborts the reply."""
        streamed: Json = {**body, "stream": True, "stream_options": {"include_usage": True}}
        text: list[str] = []
        memory, usage = None, Usage()
        async with aclosing(self._stream("POST", "chat/completions", body=streamed)) as events:
            async for event in events:
                if event.data == _DONE:
                    break
                chunk = parsed(ChatChunk, event.data, peer="gateway")
                memory = chunk.memory or memory
                if (sent := chunk.usage) is not None:
                    usage = Usage(input_tokens=sent.prompt_tokens or 0, output_tokens=sent.completion_tokens or 0)
                delta = chunk.delta()
                text.append(delta.text)
                yield delta
        yield ChatAnswer("".join(text).strip(), memory, usage)

    async def stream_read(self, request: LongReadRequest) -> AsyncGenerator[ReadEvent]:
        """Have a document read and yield the read's events. Closing the generator early stops the read."""
        async with aclosing(self._stream("POST", "long-read", body={**body_of(request), "stream": True})) as events:
            async for event in events:
                yield parsed(ReadEvent, event.data, peer="gateway")

    async def queue_read(self, request: LongReadRequest, *, name: str | None = None) -> str:
        """Queue a read for the workers. Returns its id."""
        body = {**body_of(request), "background": True}
        return (await self._answer(LongRead, "POST", "long-read", body=body, headers=once(name))).id

    async def read(self, read_id: str) -> LongRead:
        """Return the present state of a queued read."""
        return await self._answer(LongRead, "GET", f"long-read/{segment(read_id)}")

    async def read_ended(self, read_id: str, *, wait_s: float) -> LongRead:
        """Wait for the end of a queued read and return it. Raises Timeout after ``wait_s`` seconds."""
        return await ended(lambda: self.read(read_id), what=f"the read {read_id}", wait_s=wait_s)

    async def reads(self, *, limit: int = 20) -> tuple[LongRead, ...]:
        """Return the tenant's newest reads."""
        return (await self._answer(_Reads, "GET", "long-read", params={"limit": str(limit)})).data

    async def read_events(self, read_id: str, *, starting_after: int = -1) -> AsyncGenerator[ReadEvent]:
        """Yield the events of a queued read after a sequence number, by default all, to its end."""
        path, params = f"long-read/{segment(read_id)}", {"stream": "true", "starting_after": str(starting_after)}
        async with aclosing(self._stream("GET", path, params=params)) as events:
            async for event in events:
                yield parsed(ReadEvent, event.data, peer="gateway")

    async def cancel_read(self, read_id: str) -> None:
        """Stop a read; has no effect once it has ended."""
        await self.json("POST", f"long-read/{segment(read_id)}/cancel")

    async def delete_read(self, read_id: str) -> None:
        """Stop a read, and delete it with its document."""
        await self.json("DELETE", f"long-read/{segment(read_id)}")

    async def estimate(self, request: LongReadRequest) -> Estimate:
        """Return the maximum cost of a read, and the profile that it would use."""
        return await self._answer(Estimate, "POST", "long-read/estimate", body=body_of(request))

    async def upload(self, document: Path) -> FileObject:
        """Upload a document, held in memory meanwhile. Its text is available once it is ``processed``."""
        return await self.upload_content(document.name, await asyncio.to_thread(document.read_bytes))

    async def upload_content(self, name: str, content: bytes, *, expires_s: int | None = None) -> FileObject:
        """Upload a document that is in memory; the gateway deletes it after ``expires_s`` seconds."""
        boundary = secrets.token_hex(16)
        body = file_form(name, content, boundary, expires_s=expires_s)
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        async with self.open("POST", "files", body=body, headers=headers) as response:
            await response.check()
            return parsed(FileObject, await response.read(), peer="gateway")

    async def fetch_url(self, url: str, *, expires_s: int | None = None) -> FileObject:
        """Have the gateway download a document. Raises NotSupported where the operator has not allowed it."""
        body: Json = {"url": url}
        if expires_s is not None:
            body["expires_after_s"] = expires_s
        return await self._answer(FileObject, "POST", "files/from-url", body=body)

    async def file(self, file_id: str) -> FileObject:
        """Return the present state of a file."""
        return await self._answer(FileObject, "GET", f"files/{segment(file_id)}")

    async def create_key(self, request: KeyCreate) -> NewApiKey:
        """Create a key. The answer alone holds its secret."""
        return await self._answer(NewApiKey, "POST", "admin/keys", body=body_of(request))

    async def keys(self, tenant: str | None, *, cursor: str | None, limit: int) -> KeyPage:
        """Return a page of a tenant's keys; None means the caller's own tenant."""
        params = {"limit": str(limit)} | ({"tenant": tenant} if tenant else {}) | ({"cursor": cursor} if cursor else {})
        return await self._answer(KeyPage, "GET", "admin/keys", params=params)

    async def rotate_key(self, key_id: str, *, overlap_s: int) -> NewApiKey:
        """Give a key a new secret; the old one works for ``overlap_s`` more seconds."""
        body: Json = {"overlap_s": overlap_s}
        return await self._answer(NewApiKey, "POST", f"admin/keys/{segment(key_id)}/rotate", body=body)

    async def revoke_key(self, key_id: str) -> KeyRevoked:
        return await self._answer(KeyRevoked, "DELETE", f"admin/keys/{segment(key_id)}")

    async def rollouts(self) -> tuple[Rollout, ...]:
        """Return the models of which a share of the requests goes to a candidate, with the calls of both."""
        return (await self._answer(RolloutPage, "GET", "admin/rollouts")).data

    async def change_rollout(self, change: RolloutChange) -> Rollout:
        """Begin a rollout, or change its share."""
        return await self._answer(Rollout, "PUT", "admin/rollouts", body=body_of(change))

    async def end_rollout(self, model: str) -> bool:
        """Give all requests back to the model. Returns False if it had no rollout."""
        return (await self._answer(RolloutEnded, "DELETE", "admin/rollouts", params={"model": model})).deleted


class _Listed(OpenWire):
    id: str


class _Models(OpenWire):
    data: tuple[_Listed, ...]


class _Reads(OpenWire):
    data: tuple[LongRead, ...]
