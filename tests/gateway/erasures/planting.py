"""Says a marker on every public way that stores something of a user.

``PLANTED`` has a function for each route that does; ``STORES_NOTHING`` names the others that take a body.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import orjson

from gateway.long_read.documents import SHORT_CHARS
from gateway.webhooks.deliveries import delivery_id
from tests.fakes.job_engine import Body, Reply, add_memory, tool_call
from tests.fakes.processes import PATIENCE_S
from tests.gateway.rig import eventually
from tests.gateway.running import Answer, Gateway

WEBHOOKS: Final = {
    "webhook_secret": "whsec_" + "AAAA" * 11 + "AA==",
    "webhook_allow_http": True,
    "webhook_allow_networks": "127.0.0.0/8",
    "webhook_retry_s": 3600.0,
}
_MARKER: Final = re.compile(r"mark-[a-z0-9-]+")
NO_RECEIVER: Final = "http://127.0.0.1:9"
"""A webhook that waits for its next attempt."""


def marker_in(body: Body) -> str:
    """The last marker of a request to the engine."""
    return next(iter(_MARKER.findall(orjson.dumps(body).decode())[::-1]), "")


def answer(body: Body) -> Reply:
    """Repeats what it was told last, in every form in which a model answers here."""
    raw, marker = orjson.dumps(body).decode(), marker_in(body)
    if "DIE" in raw:
        return 400
    if "tools" not in body:
        return rf"\boxed{{You said {marker} .}}"
    return tool_call("buffer_memory", reason=f"half a thought {marker}") if "BUFFER" in raw else add_memory(marker)


@dataclass
class Planter:
    """Says ``marker`` as a user, of an agent and a run where ``ids`` name them."""

    gateway: Gateway
    marker: str
    ids: Mapping[str, str]
    items: list[str] = field(default_factory=list[str])
    keys: int = 0

    @property
    def text(self) -> str:
        """A sentence with the marker."""
        return f"Remember {self.marker} please."

    @property
    def headers(self) -> dict[str, str]:
        """The headers that name user and agent, and the media type."""
        agent = {"X-Memory-Agent-Id": self.ids["agent_id"]} if "agent_id" in self.ids else {}
        return {"Content-Type": "application/json", "X-Memory-User-Id": self.ids["user_id"], **agent}

    async def send(
        self, method: str, path: str, body: object, *, once: bool = False, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send JSON, with an idempotency key of its own if ``once``; the answer is 2xx."""
        self.keys += 1
        key = {"Idempotency-Key": f"{self.marker}-{self.keys}"} if once else {}
        sent = {"Content-Type": "application/json", **key, **(headers or {})}
        async with self.gateway.http.request(
            method, self.gateway.url + path, data=orjson.dumps(body), headers=sent
        ) as response:
            found = Answer(response.status, response.headers, await response.read())
        assert 200 <= found.status < 300, (method, path, found.raw)
        return found

    def said(self, text: str | None = None, **fields: object) -> dict[str, object]:
        """The body of an add."""
        return {"messages": [{"role": "user", "content": text or self.text}], **self.ids, **fields}

    async def add(self) -> None:
        """Add: as said, and decided."""
        made = await self.send("POST", "/v1/memory/add", self.said(infer=False, metadata={"n": self.text}), once=True)
        self.items.append(made.json["memories"][0]["item"]["id"])
        assert (await self.send("POST", "/v1/memory/add", self.said(sync=True), once=True)).json["memories"]

    async def buffer(self) -> None:
        """Leave half a thought, which the next write of the user would take along."""
        queued = (await self.send("POST", "/v1/memory/add", self.said(f"BUFFER {self.text}"))).json["event_id"]
        await self.gateway.memory.queue.events.wait("local", queued, timeout_s=PATIENCE_S)

    async def give_up(self) -> None:
        """Leave a write that the engine refuses."""
        event = (await self.send("POST", "/v1/memory/add", self.said(f"DIE {self.text}", sync=True))).json
        assert event["status"] == "kept_verbatim", event

    async def wait(self) -> None:
        """Leave in the queues: a write, a read, a read with a long document, a response."""
        await self.send("POST", "/v1/memory/add", self.said())
        saves = {"save_to_memory": self.ids, "background": True}
        await self.send("POST", "/v1/long-read", self.asked(**saves), once=True)
        long = {"document": {"text": f"{self.text} " * (SHORT_CHARS // len(self.text) + 1)}}
        await self.send("POST", "/v1/long-read", self.asked(**saves, **long))
        await self.respond(background=True)

    async def batch(self) -> None:
        """Add in a batch."""
        await self.send("POST", "/v1/memory/batch", {"adds": [self.said(f"Batch. {self.text}")]})

    async def edit(self) -> None:
        """Edit a memory, judge it, delete it, recover it."""
        path = f"/v1/memory/{self.items[0]}"
        await self.send("PATCH", path, {"memory": f"Edited. {self.text}"})

    async def judge(self) -> None:
        """Give feedback with a reason."""
        body = {"feedback": "wrong", "reason": f"Because {self.marker}"}
        await self.send("POST", f"/v1/memory/{self.items[0]}/feedback", body)

    async def carry(self) -> None:
        """Export and import again."""
        lines = (await self.send("POST", "/v1/memory/export", {**self.ids, "include_raw": True})).raw
        assert self.marker.encode() in lines
        headers = {"Content-Type": "application/jsonl"}
        changed = lines.replace(b"Batch", b"Twice")
        async with self.gateway.http.post(
            f"{self.gateway.url}/v1/memory/import", data=changed, headers=headers
        ) as response:
            assert response.status == 200, await response.read()

    async def set_policy(self) -> None:
        """Set the user's own policy, and the operator's for the user."""
        query = "&".join(f"{name}={value}" for name, value in self.ids.items() if name == "user_id")
        policy = {"instructions": f"Mind {self.marker} ."}
        if len(self.ids) == 1:  # a policy is a whole user's, not an agent's part
            await self.send("PUT", f"/v1/admin/memory-policy?{query}", policy)
            await self.send("PUT", f"/v1/memory/policy?{query}", policy)

    async def chat(self) -> None:
        """Chat with memory: as OpenAI's and as Anthropic's API have it."""
        messages = [{"role": "user", "content": self.text}]
        chat = {"model": "m", "messages": messages, "memory": {**self.ids}}
        await self.send("POST", "/v1/chat/completions", chat, once=True)

    async def message(self) -> None:
        """Chat as Anthropic's API has it."""
        body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": self.text}]}
        await self.send("POST", "/v1/messages", body, once=True, headers=self.headers)

    async def respond(self, **fields: object) -> str:
        """Make a stored response."""
        body = {"model": "m", "input": self.text, "metadata": dict(self.ids), **fields}
        return (await self.send("POST", "/v1/responses", body, once=True)).json["id"]

    async def responses(self) -> None:
        """Make stored responses: one at once, one that continues it, one in the background."""
        first = await self.respond()
        await self.respond(previous_response_id=first)
        background = await self.respond(background=True)

        async def over() -> bool:
            return (await self.gateway.get(f"/v1/responses/{background}")).json["status"] == "completed"

        await eventually(over)

    async def converse(self) -> None:
        """Make a conversation with items, and a response that continues it."""
        item = {"type": "message", "role": "user", "content": self.text}
        made = await self.send("POST", "/v1/conversations", {"items": [item], "metadata": {**self.ids}})
        path = f"/v1/conversations/{made.json['id']}"
        await self.send("POST", f"{path}/items", {"items": [item]}, headers=self.headers)
        await self.send("POST", path, {"metadata": {"note": self.marker}})
        await self.respond(conversation=made.json["id"], store=False)

    def asked(self, **fields: object) -> dict[str, object]:
        """A long read of a text."""
        document = {"text": f"{self.text} " * 12}
        return {"model": "m", "question": f"What {self.marker} ?", "document": document, "chunk_tokens": 80, **fields}

    async def read(self) -> None:
        """Read at once and in the background, with evidence, a webhook and the memory saved."""
        saves = {"save_to_memory": self.ids, "evidence": True}
        await self.send("POST", "/v1/long-read", self.asked(**saves), once=True)
        hook = {"webhook": {"url": f"{NO_RECEIVER}/{self.marker}"}, "background": True}
        made = (await self.send("POST", "/v1/long-read", self.asked(**saves, **hook), once=True)).json
        await self.ended(made["id"])
        job = f"memloop:{{q0}}:job:{delivery_id(made['id'])}"
        await eventually(lambda: self._has(job))
        if len(self.ids) < 3:  # a run cannot be named in a header
            await self.send("POST", "/v1/long-read", self.asked(), once=True, headers=self.headers)

    async def ended(self, read_id: str) -> None:
        """Wait until a read is completed."""

        async def over() -> bool:
            return (await self.gateway.get(f"/v1/long-read/{read_id}")).json["status"] == "completed"

        await eventually(over)

    async def _has(self, key: str) -> bool:
        return bool(await self.gateway.redis.exists(key))

    async def upload(self) -> None:
        """Upload a file, read it, and search it in a vector store."""
        form = aiohttp.FormData()
        form.add_field("purpose", "user_data")
        form.add_field("file", f"{self.text} In a file.".encode(), filename=f"{self.marker}.txt")
        headers = {name: value for name, value in self.headers.items() if name != "Content-Type"}
        async with self.gateway.http.post(f"{self.gateway.url}/v1/files", data=form, headers=headers) as response:
            file_id = orjson.loads(await response.read())["id"]

        async def processed() -> bool:
            return (await self.gateway.get(f"/v1/files/{file_id}")).json["status"] == "processed"

        await eventually(processed, timeout_s=240.0)
        await self.send("POST", "/v1/long-read", self.asked(document={"file_id": file_id}), once=True)
        body = {"name": self.marker, "file_ids": [file_id], "metadata": {"user_id": self.ids["user_id"]}}
        headers = {"X-Memory-Agent-Id": self.ids["agent_id"]} if "agent_id" in self.ids else {}
        made = (await self.send("POST", "/v1/vector_stores", body, headers=headers)).json

        async def indexed() -> bool:
            return (await self.gateway.get(f"/v1/vector_stores/{made['id']}")).json["status"] == "completed"

        await eventually(indexed)
        path = f"/v1/vector_stores/{made['id']}"
        await self.send("POST", path, {"name": f"Renamed {self.marker}"})
        await self.send("POST", f"{path}/files/{file_id}", {"attributes": {"note": self.marker}})
        batch = {"files": [{"file_id": file_id, "attributes": {"note": self.marker}}]}
        await self.send("POST", f"{path}/file_batches", batch)
        await eventually(indexed)
        search = await self.send("POST", f"{path}/search", {"query": self.marker})
        assert self.marker.encode() in search.raw

    async def mem0(self) -> None:
        """Add as mem0's client does."""
        await self.send("POST", "/v3/memories/add", self.said(f"Mem0. {self.text}", infer=False), once=True)

    async def mcp(self) -> None:
        """Add and read as an MCP client does."""
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        add = {"name": "memory_add", "arguments": {"text": f"MCP. {self.text}", "infer": False, **self.ids}}
        read = {"question": f"What {self.marker} ?", "text": self.text, "save_to_memory": self.ids}
        for number, call in enumerate((add, {"name": "long_read", "arguments": read})):
            body = {"jsonrpc": "2.0", "id": number + 1, "method": "tools/call", "params": call}
            told = await self.send("POST", "/mcp", body, headers=headers)
            assert b'"isError":true' not in told.raw.replace(b" ", b""), told.raw

    async def nothing(self) -> None:
        """The route was used on the way of another one."""
        await asyncio.sleep(0)


Plant = Callable[[Planter], Awaitable[None]]

PLANTED: Final[Mapping[str, Plant]] = {
    "POST /v1/memory/add": Planter.add,
    "POST /v1/memory/batch": Planter.batch,
    "PATCH /v1/memory/{item_id}": Planter.edit,
    "POST /v1/memory/{item_id}/feedback": Planter.judge,
    "POST /v1/memory/export": Planter.nothing,
    "POST /v1/memory/import": Planter.carry,
    "PUT /v1/admin/memory-policy": Planter.set_policy,
    "PUT /v1/memory/policy": Planter.nothing,
    "POST /v1/chat/completions": Planter.chat,
    "POST /v1/messages": Planter.message,
    "POST /v1/responses": Planter.responses,
    "POST /v1/conversations": Planter.converse,
    "POST /v1/conversations/{conversation_id}": Planter.nothing,
    "POST /v1/conversations/{conversation_id}/items": Planter.nothing,
    "POST /v1/long-read": Planter.read,
    "POST /v1/files": Planter.upload,
    "POST /v1/vector_stores": Planter.nothing,
    "POST /v1/vector_stores/{vector_store_id}": Planter.nothing,
    "POST /v1/vector_stores/{vector_store_id}/files": Planter.nothing,
    "POST /v1/vector_stores/{vector_store_id}/file_batches": Planter.nothing,
    "POST /v1/vector_stores/{vector_store_id}/files/{file_id}": Planter.nothing,
    "POST /v1/vector_stores/{vector_store_id}/search": Planter.nothing,
    "POST /v3/memories/add": Planter.mem0,
    "POST /mcp": Planter.mcp,
    "POST /v1/admin/dead-letters/{job_id}/requeue": Planter.give_up,
}
"""By route; ``nothing`` where another row's plant uses it."""

STORES_NOTHING: Final = frozenset(
    {
        "POST /v1/messages/count_tokens",
        "POST /v1/responses/input_tokens",
        "POST /v1/responses/{response_id}/cancel",
        "POST /v1/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel",
        "POST /v1/embeddings",
        "POST /v1/completions",
        "PUT /v1/admin/rollouts",
        "POST /v1/long-read/estimate",
        "POST /v1/long-read/{read_id}/cancel",
        "POST /v1/files/from-url",  # as an upload
        "POST /v1/memory/policy/check",
        "POST /v1/memory/redaction/check",
        "POST /v1/admin/memory-webhooks",  # the tenant's own: it reports the erasure
        "POST /v1/memory/search",
        "POST /v1/memory/events/{event_id}/retry",
        "POST /v1/memory/events/{event_id}/redecide",
        "POST /v1/memory/redecide",
        "POST /v1/memory/buffers/flush",
        "POST /v1/memory/{item_id}/recover",
        "POST /v1/admin/keys",
        "POST /v1/admin/keys/{key_id}/rotate",
        "PUT /v1/admin/trace-settings",
        "POST /v3/memories/search",
        "POST /v3/memories",
        "PUT /v1/memories/{memory_id}",  # as an edit
        "PUT /v1/batch",
        "POST /v1/feedback",
    }
)


async def plant_all(planter: Planter) -> None:
    """Use every route of ``PLANTED``, with a worker at work."""
    for plant in PLANTED.values():
        await plant(planter)
    await planter.buffer()


def routes_with_bodies(document: Mapping[str, Any]) -> set[str]:
    """The routes of an OpenAPI document that may store something."""
    methods = ("post", "put", "patch")
    return {
        f"{method.upper()} {path}" for path, has in document["paths"].items() for method in methods if method in has
    }
