"""A read is planned once."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from gateway.access.keys import Principal
from gateway.engine.models import Models
from gateway.long_read.admission import admitted_read, opened_read
from gateway.long_read.reading import Reading
from memloop.chunking import EstimatingSplitter
from memloop.wire.keys import ALL_SCOPES
from memloop.wire.long_read import LongReadRequest
from tests.gateway.long_reads import asked, reader
from tests.gateway.rig import rig

ANN = Principal("local", ALL_SCOPES)


class CountingSplitter(EstimatingSplitter):
    """Records how often each text was counted."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, text: str) -> int:
        self.counted[text] += 1
        return super().count(text)


@asynccontextmanager
async def counting(redis_url: str) -> AsyncGenerator[tuple[Reading, CountingSplitter]]:
    splitter = CountingSplitter()
    async with rig(redis_url, reader) as it:
        backend = it.work.reading.backend
        models = Models((), {})
        models.arrived(replace(backend.models.reader, splitter=splitter))
        yield replace(it.work.reading, backend=replace(backend, models=models)), splitter


async def test_a_read_is_planned_once(redis_url: str) -> None:
    async with counting(redis_url) as (reading, splitter):
        admitted = await admitted_read(LongReadRequest(**asked()), reading, ANN)
        record = await (await opened_read(admitted, reading)).run()
    assert record.status == "completed"
    assert splitter.counted["Where?"] == 1
