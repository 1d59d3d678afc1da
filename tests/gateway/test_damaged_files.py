"""Three hundred damaged files over HTTP: each is read or gets a sentence, and no process passes its limits."""

import asyncio
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.gateway.api_rig import api
from tests.gateway.bombs import BOMBS, HARMLESS
from tests.gateway.documents import PLACED, PLACELESS
from tests.gateway.file_uploads import processed, sent
from tests.gateway.test_files import with_storage

MEMORY_BYTES: Final = 512 << 20
TEXTS: Final = tuple(f"Text {number} of a file that is damaged on its way." for number in range(3))
MEMORY_LIMIT = re.compile(rf"Max address space\s+{MEMORY_BYTES}\s")
SENTENCE = re.compile(r"[A-Za-z][^\n]{5,600}")


def damaged(seed: int) -> Iterator[tuple[str, bytes]]:
    """Files of every format with flipped bits, cut off, with a hole, doubled, or under the name of another format."""
    chance, formats = random.Random(seed), {**PLACED, **PLACELESS}
    for name, made in formats.items():
        raw = made(*TEXTS)
        for bits in (1, 8, 64):
            flipped = bytearray(raw)
            for _ in range(bits):
                flipped[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
            yield name, bytes(flipped)
        cut = chance.randrange(1, len(raw))
        yield name, raw[:cut]
        yield name, raw[: len(raw) - 1 - cut // 20]
        hole = chance.randrange(len(raw))
        yield name, raw[:hole] + bytes(64) + raw[hole + 64 :]
        yield name, raw[: len(raw) // 2] + raw
        for other in chance.sample(sorted(formats), 4):
            yield other, raw
        yield name, raw[:8] + chance.randbytes(2_000)


class Watch:
    """The most memory that an extraction with our limit was seen to have."""

    def __init__(self) -> None:
        self.most_bytes = 0

    async def processes(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(0.02)

    def _look(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if MEMORY_LIMIT.search((process / "limits").read_text()):
                    found = re.search(r"VmSize:\s+(\d+) kB", (process / "status").read_text())
                    self.most_bytes = max(self.most_bytes, int(found[1]) * 1024 if found else 0)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("each", [pytest.param(5, id="a fifth"), pytest.param(1, id="all", marks=pytest.mark.slow)])
async def test_three_hundred_damaged_files_are_read_or_refused_in_a_sentence(
    each: int, redis_url: str, tmp_path: Path
) -> None:
    files = [*damaged(61), *((name, made()) for name, made, _ in {**BOMBS, **HARMLESS}.values())]
    assert len(files) >= 300
    files = files[::each]
    limits = {
        "extract_memory_bytes": MEMORY_BYTES,
        "extract_concurrency": 4,
        "extract_base_cpu_s": 2,
        "extract_cpu_s": 4,
    }
    storage, watch = with_storage(tmp_path, **limits), Watch()
    async with api(redis_url, lambda _: "x", **storage) as it, it.rig.working(), asyncio.TaskGroup() as group:
        watching = group.create_task(watch.processes())
        answers = [await sent(it.gateway, raw, name=name, media_type="") for name, raw in files]
        assert {answer.status for answer in answers} == {200}
        ended = [await processed(it.gateway, answer.json["id"]) for answer in answers]
        texts = [
            (await it.get(f"/v1/files/{file['id']}/content?form=text")).status
            for file in ended
            if file["status"] == "processed"
        ]
        watching.cancel()
    assert {file["status"] for file in ended} == {"processed", "error"}
    assert set(texts) == {200}
    reasons = [file["status_details"] for file in ended if file["status"] == "error"]
    assert [reason for reason in reasons if not SENTENCE.fullmatch(reason)] == []
    assert 0 < watch.most_bytes <= MEMORY_BYTES
