"""Files that cost more than they weigh end within the CPU time of their size, and beside other tenants' files."""

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.files.extraction import ExtractionLimits, ExtractionRules
from gateway.settings import WorkerSettings
from tests.gateway.api_rig import ALICE_KEY, BOB_KEY, TWO_TENANTS, api
from tests.gateway.bombs import BOMBS, HARMLESS, slow_pages
from tests.gateway.documents import paragraph, word
from tests.gateway.extracting import reason, text_of
from tests.gateway.file_uploads import FILES, processed, upload
from tests.gateway.rig import script

MOST = ExtractionLimits(memory_bytes=1 << 30, cpu_s=60, wall_s=600.0, text_bytes=1 << 28)
RULES = ExtractionRules(MOST, base_cpu_s=1, cpu_s_per_mib=1)


@pytest.mark.parametrize(("name", "made", "why"), BOMBS.values(), ids=BOMBS)
async def test_a_bomb_ends_within_the_cpu_time_of_its_size(name: str, made: Callable[[], bytes], why: str) -> None:
    raw = made()
    limits = RULES.for_size(len(raw))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    given = await reason(raw, name, limits)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = {"CPU": "of CPU time, the limit for its size", "unpacked": "the unpacked file is too large"}
    assert any(words.get(word, word) in given for word in why.split("|")), given
    assert "\n" not in given
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used_s < limits.cpu_s + 1


@pytest.mark.parametrize(("name", "made", "text"), HARMLESS.values(), ids=HARMLESS)
async def test_what_slowed_other_readers_is_read_at_once(name: str, made: Callable[[], bytes], text: str) -> None:
    assert text in await text_of(made(), name, limits=replace(RULES.for_size(0), cpu_s=5))


@pytest.mark.parametrize(
    ("size_bytes", "cpu_s"), [(0, 5), (867, 6), (1 << 20, 15), (4 << 20, 45), (100 << 20, 120), (512 << 20, 120)]
)
def test_cpu_time_grows_with_the_size_up_to_the_most(size_bytes: int, cpu_s: int) -> None:
    settings = WorkerSettings()
    most = ExtractionLimits(memory_bytes=1, cpu_s=settings.extract_cpu_s, wall_s=1.0, text_bytes=1)
    rules = ExtractionRules(most, settings.extract_base_cpu_s, settings.extract_cpu_s_per_mib)
    assert rules.for_size(size_bytes).cpu_s == cpu_s


async def test_an_honest_file_is_far_from_the_limit_of_its_size() -> None:
    raw = word("".join(paragraph(f"Paragraph {number} of a long and honest document.") for number in range(2_000)))
    text = await text_of(raw, "a.docx", limits=ExtractionRules(MOST, 5, 10).for_size(len(raw)))
    assert text.count("honest") == 2_000


async def test_a_small_file_does_not_wait_for_the_bombs_of_another_tenant(redis_url: str, tmp_path: Path) -> None:
    """The bombs may compute for two minutes, so that the order alone decides."""
    patient: dict[str, Any] = {"extract_concurrency": 2, "extract_base_cpu_s": 120, "stop_wait_s": 0.0}
    storage = tmp_path.as_uri()
    async with (
        api(redis_url, script("x"), storage_url=storage, api_keys=TWO_TENANTS, **patient) as it,
        it.rig.working(),
    ):
        bombs = [
            await upload(it.gateway, slow_pages(60_000 + number), name="a.pdf", key=ALICE_KEY) for number in range(4)
        ]
        for text in (b"Tea at five.", b"Tea at six."):
            small = await upload(it.gateway, text, key=BOB_KEY)
            assert (await processed(it.gateway, small["id"], key=BOB_KEY))["status"] == "processed"
        headers = {"Authorization": f"Bearer {ALICE_KEY}"}
        left = [(await it.gateway.get(f"{FILES}/{bomb['id']}", headers=headers)).json["status"] for bomb in bombs]
        assert left == ["uploaded"] * 4


async def test_a_bomb_costs_its_tenant_seconds_and_says_why(redis_url: str, tmp_path: Path) -> None:
    storage = tmp_path.as_uri()
    async with api(redis_url, script("x"), storage_url=storage, extract_base_cpu_s=1) as it, it.rig.working():
        bomb = await upload(it.gateway, slow_pages(20_000), name="a.pdf")
        file = await processed(it.gateway, bomb["id"])
    assert (file["status"], file["status_details"]) == (
        "error",
        "the file needs more than 3 s of CPU time, the limit for its size",
    )
