"""What is left in Redis after a mixed day: each key has an expiry, or is one of the few that are meant to stay."""

import re
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest
from openai import AsyncOpenAI

from memloop_state.steps import digest
from tests.fakes.job_engine import Body, Reply, add_memory
from tests.gateway.api_rig import ALICE_KEY
from tests.gateway.file_uploads import processed, upload
from tests.gateway.long_reads import asked, reader
from tests.gateway.redis_view import command, connected, keys
from tests.gateway.rig import eventually
from tests.gateway.running import CHAT, Answer, Gateway, question
from tests.gateway.whole import whole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
TEXT: Final = b"The key hangs in the shed."
_HERE: Final = r"memloop:\{q0\}:"
STAY: Final[Mapping[str, str]] = {
    rf"{_HERE}fence": "the counter of fencing tokens",
    rf"{_HERE}(gate|service):edge-[0-9a-f]{{16}}": "the state of a store's collections",
    rf"{_HERE}changes-state:({digest('a')}|{digest('files:a')})": "the end of a tenant's feed, for who resumes it",
    rf"{_HERE}(reads|indexing|background):a": "a tenant's list of jobs, cut when it is long",
    rf"{_HERE}blob-bytes:a": "the counter of a tenant's bytes",
    rf"{_HERE}blob:a:{sha256(TEXT).hexdigest()}": "a content, until its holders are checked",
    rf"{_HERE}blobs:holders": "the times of these checks",
}
"""Names of keys without an expiry, and why they have none. None of them is of a user, so their number is bounded."""


def decider(body: Body) -> Reply:
    return add_memory("Ann drinks green tea.") if "tools" in body else reader(body)


@dataclass(frozen=True)
class Day:
    """The calls of a user's day."""

    gateway: Gateway
    sdk: AsyncOpenAI
    user: str

    async def call(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        sent = {"Authorization": f"Bearer {ALICE_KEY}", **headers}
        url = self.gateway.url + path
        async with self.gateway.http.request(method, url, json=body, headers=sent) as response:
            answer = Answer(response.status, response.headers, await response.read())
        assert answer.status < 300, (path, answer.raw)
        return answer

    async def chats_and_memories(self) -> None:
        of_user = {"user_id": self.user}
        once = {"Idempotency-Key": f"chat-{self.user}"}
        for _ in range(2):
            await self.call("POST", CHAT, question(memory={**of_user, "agent_id": "a"}), **once)
        message = [{"role": "user", "content": "I like tea."}]
        stored = await self.call("POST", "/v1/memory/add", {"messages": message, **of_user, "infer": False})
        item = stored.json["memories"][0]["item"]["id"]
        await self.call("POST", f"/v1/memory/{item}/feedback", {"feedback": "helpful"})
        await self.call("POST", "/v1/memory/search", {"query": "tea", **of_user})
        await self.call("DELETE", f"/v1/memory/{item}")
        await self.call("POST", "/v1/memory/add", {"messages": message, **of_user, "sync": True})

    async def reads_and_files(self) -> None:
        file = (await upload(self.gateway, TEXT, key=ALICE_KEY))["id"]
        await processed(self.gateway, file, key=ALICE_KEY)
        await self.call("POST", "/v1/long-read", asked(stream=False))
        read = await self.call("POST", "/v1/long-read", asked(document={"file_id": file}, background=True))
        path = f"/v1/long-read/{read.json['id']}"

        async def over() -> bool:
            return (await self.call("GET", path)).json["status"] == "completed"

        await eventually(over)
        await self.call("DELETE", path)
        store = await self.sdk.vector_stores.create(name="notes", metadata={"user_id": self.user})
        await self.sdk.vector_stores.files.create_and_poll(file, vector_store_id=store.id, poll_interval_ms=20)
        await self.sdk.vector_stores.delete(store.id)
        await self.sdk.files.delete(file)

    async def responses(self) -> None:
        conversation = await self.sdk.conversations.create()
        await self.sdk.responses.create(model="m", input="Hi.", conversation=conversation.id)
        first = await self.sdk.responses.create(model="m", input="Hi.")
        later = await self.sdk.responses.create(model="m", input="And?", background=True)

        async def over() -> bool:
            return (await self.sdk.responses.retrieve(later.id)).status == "completed"

        await eventually(over)
        await self.sdk.responses.delete(first.id)
        await self.sdk.conversations.delete(conversation.id)


@asynccontextmanager
async def days(redis_url: str, folder: Path, *users: str) -> AsyncGenerator[list[Day]]:
    here = folder / uuid.uuid4().hex
    async with (
        whole(redis_url, here / "store", decider, storage_url=(here / "objects").as_uri()) as it,
        AsyncOpenAI(base_url=it.gateway.url + "/v1", api_key=ALICE_KEY, max_retries=0) as sdk,
    ):
        own = [sdk.with_options(default_headers={"X-Memory-User-Id": user}) for user in users]
        yield [Day(it.gateway, mine, user) for mine, user in zip(own, users, strict=True)]


async def lasting(redis_url: str) -> list[str]:
    """The keys without an expiry that are not meant to stay."""
    async with connected(redis_url) as redis:
        ends = {key: await command(redis, "TTL", key) for key in await keys(redis)}
    return [key for key, seconds in ends.items() if seconds == -1 and not any(re.fullmatch(name, key) for name in STAY)]


async def test_whatever_is_left_expires_of_users_who_stay_and_of_erased_ones(redis_url: str, tmp_path: Path) -> None:
    async with days(redis_url, tmp_path, "ann", "bob") as (ann, bob):
        for day in (ann, bob):
            await day.chats_and_memories()
            await day.reads_and_files()
            await day.responses()
        await bob.call("PUT", "/v1/memory/policy?user_id=bob", {"instructions": "Be brief."})
        await bob.call("DELETE", "/v1/memory?user_id=bob")

        left: list[str] = []

        async def nothing_lasts() -> bool:
            left[:] = await lasting(redis_url)
            return not left

        with suppress(AssertionError):  # what is under way ends first
            await eventually(nothing_lasts)
        assert left == []
