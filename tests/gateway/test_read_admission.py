"""A read is planned once."""

from collections import Counter
from dataclasses import replace

from gateway.access.keys import Principal
from gateway.engine.models import Models
from gateway.long_read.admission import admitted_read, opened_read
from memloop.chunking import EstimatingSplitter
from memloop.wire.keys import ALL_SCOPES
from memloop.wire.long_read import LongReadRequest
from tests.gateway.long_reads import asked, reader
from tests.gateway.rig import rig


class CountingSplitter(EstimatingSplitter):
    """Records how often each text was counted."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def count(self, text: str) -> int:
        self.counted[text] += 1
        return super().count(text)


async def test_a_read_is_planned_once(redis_url: str) -> None:
    splitter = CountingSplitter()
    async with rig(redis_url, reader) as it:
        backend, models = it.work.reading.backend, Models((), {})
        models.arrived(replace(backend.models.reader, splitter=splitter))
        reading = replace(it.work.reading, backend=replace(backend, models=models))
        admitted = await admitted_read(LongReadRequest(**asked()), reading, Principal("local", ALL_SCOPES))
        record = await (await opened_read(admitted, reading)).run()
    assert record.status == "completed"
    assert splitter.counted["Where?"] == 1
