"""What extraction makes of a file: its text, what the text lacks, or the reason why there is none."""

from collections.abc import AsyncGenerator
from typing import Final

import pytest

from gateway.extract import Unreadable
from gateway.files.extraction import ExtractionLimits, extracted

LIMITS: Final = ExtractionLimits(memory_bytes=1 << 29, cpu_s=20, wall_s=240.0, text_bytes=1 << 24)


async def noted(
    raw: bytes, name: str, *, media_type: str = "", limits: ExtractionLimits = LIMITS
) -> tuple[str, list[str]]:
    """The text, and what it lacks."""

    async def source() -> AsyncGenerator[bytes]:
        for start in range(0, len(raw), 1 << 16):
            yield raw[start : start + (1 << 16)]

    notes = list[str]()
    blocks = extracted(source(), name=name, media_type=media_type, limits=limits, notes=notes)
    return b"".join([block async for block in blocks]).decode(), notes


async def text_of(raw: bytes, name: str, *, media_type: str = "", limits: ExtractionLimits = LIMITS) -> str:
    """The text alone."""
    return (await noted(raw, name, media_type=media_type, limits=limits))[0]


async def reason(raw: bytes, name: str, limits: ExtractionLimits = LIMITS) -> str:
    """Why the file has no text."""
    with pytest.raises(Unreadable) as refused:
        await text_of(raw, name, limits=limits)
    return str(refused.value)
