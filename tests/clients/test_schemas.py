"""Every answer of the three APIs against the zod schemas of Vercel's AI SDK. Run: ``make test-clients``."""

import asyncio
import json
import os
from pathlib import Path

import orjson

from tests.fakes.recall_store import FakeStore
from tests.fakes.streaming_engine import FakeEngine
from tests.gateway.running import Gateway
from tests.gateway.transcripts import transcripts

FOLDER = Path(__file__).parent
NODE = os.environ.get("NODE", "node")


async def test_all_that_is_sent_fits_the_schemas_of_the_ai_sdk(
    gateway: Gateway, engine: FakeEngine, store: FakeStore, tmp_path: Path
) -> None:
    sent = tmp_path / "sent.jsonl"
    with sent.open("wb") as file:
        async for one in transcripts(gateway, engine, store):
            for body in one.bodies:
                line = {"name": one.name, "api": one.api, "streamed": one.streamed, "body": body}
                file.write(orjson.dumps(line) + b"\n")
    process = await asyncio.create_subprocess_exec(
        *(NODE, "--no-warnings", FOLDER / "schemas.mjs", sent),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    found = json.loads(printed)
    print(
        f"\n{found['fields']} fields of {found['bodies']} bodies read by the schemas; {len(found['failures'])} failures"
    )
    assert found["failures"] == {}
    assert found["fields"] > 5_000
