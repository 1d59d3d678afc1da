"""What the tests of long reads ask for, and how they wait for it."""

from typing import Any

from gateway.long_read.records import TERMINAL
from tests.fakes.job_engine import Body, Reply, last_text
from tests.gateway.api_rig import Api, events_of
from tests.gateway.rig import eventually

PATH = "/v1/long-read"
DOCUMENT = "one two three four. " * 12


def reader(body: Body) -> Reply:
    """Reads anything, and answers."""
    return r"\boxed{In Rome.}" if "boxed" in last_text(body) else "a memory"


def asked(**fields: object) -> dict[str, Any]:
    """A read of two chunks: three calls."""
    return {"model": "m", "question": "Where?", "document": {"text": DOCUMENT}, "chunk_tokens": 80, **fields}


async def ended(it: Api, read_id: str) -> Any:
    """The read once it is over."""
    read: Any = None

    async def over() -> bool:
        nonlocal read
        read = (await it.get(f"{PATH}/{read_id}")).json
        return read["status"] in TERMINAL

    await eventually(over)
    return read


async def queued(it: Api, **fields: object) -> str:
    answer = await it.post(PATH, asked(background=True, **fields))
    assert (answer.status, answer.json["status"]) == (202, "queued")
    return answer.json["id"]


async def followed(it: Api, read_id: str, starting_after: int | None = None) -> list[tuple[str, Any]]:
    after = "" if starting_after is None else f"&starting_after={starting_after}"
    return events_of(await it.get(f"{PATH}/{read_id}?stream=true{after}"))
