"""``memloop read`` of a folder of 20 mixed files with 500 pages, through the real API, worker and extraction.

One fact is planted in each of ten files. The client and the worker are killed in the middle; the read is resumed.
"""

import asyncio
import io
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import docx
import pytest
from docx.enum.text import WD_BREAK

from gateway.long_read.records import TERMINAL
from tests.fakes.job_engine import Body, last_text
from tests.fakes.processes import signalled
from tests.gateway.api_rig import Api, api
from tests.gateway.documents import pdf
from tests.gateway.rig import eventually
from tests.gateway.test_files import with_storage
from tests.gateway.worker_process import worker_process

PATIENCE_S = 200.0
"""Processes start, and twenty files are extracted by others."""
LINE = "The tide tables of the year list nothing of note for this day. "
PLANTED = re.compile(r"The keeper of station \d+ is named [A-Z][a-z]+ [A-Z][a-z]+\.")
NAMES = (
    *("Ada Marsh", "Ben Holt", "Cora Finch", "Dan Reed", "Eva Stone"),
    *("Finn Wood", "Gail Frost", "Hal Moor", "Ina Brook", "Jon Vale"),
)


def fact(number: int) -> str:
    return f"The keeper of station {number} is named {NAMES[number]}."


def page_texts(pages: int, planted: dict[int, int]) -> list[str]:
    """Pages, numbered from 1, with the facts that are planted in them."""
    return [f"{LINE * 3}{fact(planted[page]) if page in planted else ''} {LINE}" for page in range(1, pages + 1)]


def word_with(pages: list[str]) -> bytes:
    document, raw = docx.Document(), io.BytesIO()
    for number, text in enumerate(pages):
        paragraph = document.add_paragraph()
        if number:
            paragraph.add_run().add_break(WD_BREAK.PAGE)
        paragraph.add_run(text)
    document.save(raw)
    return raw.getvalue()


def _file(suffix: str, pages: list[str]) -> bytes:
    match suffix:
        case ".pdf":
            return pdf(*pages)
        case ".docx":
            return word_with(pages)
        case _:
            return "\f".join(pages).encode()


def make_folder(folder: Path) -> dict[str, tuple[str, int | None]]:
    """Write 20 files: 8 PDFs of 40 pages, 4 DOCX of 30, 4 texts of 15 with form feeds, 2 Markdown, 2 HTML.

    Returns where each fact is.
    """
    places: dict[str, tuple[str, int | None]] = {}
    planted_in: dict[str, dict[int, int]] = {
        "log-0.pdf": {1: 0}, "log-3.pdf": {17: 1}, "log-7.pdf": {40: 2}, "memo-0.docx": {2: 3}, "memo-3.docx": {30: 4},
        "list-0.txt": {1: 5}, "list-3.txt": {15: 6},
    }  # fmt: skip
    kinds = [(f"log-{n}.pdf", 40) for n in range(8)] + [(f"memo-{n}.docx", 30) for n in range(4)]
    kinds += [(f"list-{n}.txt", 15) for n in range(4)]
    folder.mkdir()
    for name, pages in kinds:
        texts = page_texts(pages, planted_in.get(name, {}))
        (folder / name).write_bytes(_file(Path(name).suffix, texts))
        places |= {fact(number): (name, page) for page, number in planted_in.get(name, {}).items()}
    for name, number in (("a.md", 7), ("b.md", None), ("c.html", 8), ("d.htm", 9)):
        told = LINE * 40 + (fact(number) if number is not None else "") + " " + LINE * 40
        (folder / name).write_text(f"# A\n\n{told}" if name.endswith("md") else f"<h1>A</h1><p>{told}</p>")
        places |= {fact(number): (name, None)} if number is not None else {}
    return places


def keep_all(body: Body) -> str:
    """A reader that keeps every planted sentence that it has seen, and answers with all of them."""
    return " ".join(dict.fromkeys(PLANTED.findall(last_text(body)))) or "Nothing yet."


async def memloop(it: Api, home: Path, *arguments: str) -> "asyncio.subprocess.Process":
    environment = {"PATH": os.environ["PATH"], "MEMLOOP_URL": it.gateway.url, "MEMLOOP_HOME": str(home)}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "memloop_cli", *arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def reads(it: Api) -> list[Any]:
    return (await it.get("/v1/long-read")).json["data"]


@pytest.mark.timeout(900)
async def test_a_folder_of_500_pages_is_read_with_file_and_page_though_client_and_worker_are_killed(
    redis_url: str, tmp_path: Path
) -> None:
    places = make_folder(tmp_path / "papers")
    command = ("read", str(tmp_path / "papers"), "Who keeps which station?", "--evidence", "--chunk-tokens", "2000")
    changes = with_storage(tmp_path / "storage", file_wait_s=PATIENCE_S)
    async with api(redis_url, keep_all, **changes) as it:
        it.rig.engine.hang_at = 20
        client = await memloop(it, tmp_path / "home", *command)
        async with worker_process(it.rig) as worker:
            async with asyncio.timeout(PATIENCE_S):
                await it.rig.engine.hanging.wait()
            await signalled(client, signal.SIGKILL)
            await worker.signalled(signal.SIGKILL)
        it.rig.engine.hang_at = None
        it.rig.engine.let_go.set()
        (begun,) = await reads(it)
        assert begun["status"] == "in_progress"
        asked_before = len(it.rig.engine.calls)

        resumed = await memloop(it, tmp_path / "home", "read", "--resume", "last", "--json")
        async with it.rig.working():
            output, errors = await asyncio.wait_for(resumed.communicate(), PATIENCE_S)
        assert resumed.returncode == 0, errors.decode()[-2000:]
        read = json.loads(output)
        chunks = read["progress"]["chunks_total"]
        assert (read["id"], read["status"]) == (begun["id"], "completed")
        assert len(it.rig.engine.calls) == chunks + 2  # every chunk once, the answer, and the call that was cut off
        assert len(it.rig.engine.calls) > asked_before
        await eventually(lambda: it.rig.engine.active == 0)
        assert read["status"] in TERMINAL
    found = {
        entry["statement"]: (entry["filename"], entry.get("page"))
        for entry in read["evidence"]
        if entry["source"] == "memory" and entry["supported"]
    }
    assert len(places) == 10
    assert found == places
