"""Several files in one read: labels with names and pages, shared chunks, evidence by file and page."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memloop_state.steps import id_at
from tests.fakes.job_engine import Body, Reply, last_text
from tests.gateway.api_rig import Api, api
from tests.gateway.documents import pdf
from tests.gateway.file_uploads import upload
from tests.gateway.long_reads import PATH, asked
from tests.gateway.test_files import with_storage

TEA = "The tea of the station is called Lapsang. It comes from the hills. "
FILLER = "Nothing of note was written down on that day by anyone. "


def finder(pattern: str) -> Callable[[Body], Reply]:
    """A reader that keeps every sentence that matches, and answers with all of them."""

    def answer(body: Body) -> Reply:
        found = dict.fromkeys(re.findall(pattern, last_text(body)))
        return " ".join(found) or "Nothing yet."

    return answer


async def uploaded(it: Api, files: dict[str, bytes]) -> list[str]:
    return [(await upload(it.gateway, raw, name=name))["id"] for name, raw in files.items()]


async def read(it: Api, files: dict[str, bytes], **fields: Any) -> Any:
    ids = await uploaded(it, files)
    answer = await it.post(PATH, asked(document={"file_ids": ids}, evidence=True, **fields))
    assert answer.status == 200, answer.raw
    return answer.json | {"ids": ids}


async def test_evidence_names_file_page_and_place_in_the_files_text(redis_url: str, tmp_path: Path) -> None:
    files = {
        "notes.md": (FILLER * 20).encode(),
        "report.pdf": pdf("Nothing here.", "", "The locker of Marta is 482."),
        "plain.txt": ("First page.\fSecond page.\f" + TEA).encode(),
    }
    answer = finder(r"The locker of Marta is 482\.|The tea of the station is called Lapsang\.")
    async with api(redis_url, answer, **with_storage(tmp_path)) as it, it.rig.working():
        done = await read(it, files, chunk_tokens=200)
        text = (await it.get(f"/v1/files/{done['ids'][1]}/content?form=text")).raw.decode()
    memory = [entry for entry in done["evidence"] if entry["source"] == "memory" and entry["supported"]]
    assert [(entry["filename"], entry["page"]) for entry in memory] == [("report.pdf", 3), ("plain.txt", 3)]
    locker = memory[0]
    assert locker["file_id"] == done["ids"][1]
    assert text[locker["start"] : locker["end"]] == locker["text"] == "The locker of Marta is 482."


async def test_small_files_share_a_chunk_in_which_each_has_its_name(redis_url: str, tmp_path: Path) -> None:
    files = {f"note-{number}.md": f"Note {number} is short.".encode() for number in range(6)}
    async with api(redis_url, finder("x"), **with_storage(tmp_path)) as it, it.rig.working():
        done = await read(it, files, chunk_tokens=300)
        prompts = [last_text(body) for body in it.rig.engine.calls]
    assert done["progress"]["chunks_total"] == 1
    assert all(f"[note-{number}.md]\n\nNote {number} is short." in prompts[0] for number in range(6))


async def test_every_chunk_fits_and_begins_with_the_name_and_page_of_its_text(redis_url: str, tmp_path: Path) -> None:
    files = {"a.txt": (FILLER * 30 + "\f" + FILLER * 30).encode(), "b.txt": (FILLER * 3).encode()}
    async with api(redis_url, finder("x"), **with_storage(tmp_path)) as it, it.rig.working():
        done = await read(it, files, chunk_tokens=200)
        document = {"file_ids": done["ids"]}
        estimate = (await it.post(f"{PATH}/estimate", asked(document=document, chunk_tokens=200))).json
        prompts = [last_text(body) for body in it.rig.engine.calls][: done["progress"]["chunks_total"]]
    labels = [re.findall(r"\[[ab]\.txt(?:, page \d)?\]", prompt) for prompt in prompts]
    assert labels[0] == ["[a.txt, page 1]"]
    assert labels[-1][-1] == "[b.txt]"
    assert estimate["chunks"] == len(prompts)
    assert estimate["document_tokens"] <= 200 * estimate["chunks"]


async def test_a_sentence_across_two_chunks_is_found(redis_url: str, tmp_path: Path) -> None:
    told = "The lamp of the harbour was lit by Ada Brennick in the winter of 1911 with oil from the north."
    files = {f"{number}.txt": (FILLER * number + told).encode() for number in range(3, 12)}
    async with api(redis_url, finder(re.escape(told[:20])), **with_storage(tmp_path)) as it, it.rig.working():
        it.rig.engine.answer = lambda body: told
        done = await read(it, files, chunk_tokens=120)
    found = [entry for entry in done["evidence"] if entry["source"] == "memory"]
    assert [entry["text"] for entry in found] == [told] * 3  # the first three places


@pytest.mark.parametrize(
    ("document", "status", "param"),
    [
        ({"file_ids": []}, 422, "document.file_ids"),
        ({"file_ids": ["file-1"] * 201}, 422, "document.file_ids"),
        ({"file_ids": ["file-1"], "text": "A text."}, 422, "document"),
        ({"file_ids": [id_at("file-", "local", "0" * 32)]}, 404, "file_id"),
    ],
    ids=["none", "too many", "with a text", "unknown"],
)
async def test_bad_collections_are_refused(
    redis_url: str, tmp_path: Path, document: dict[str, Any], status: int, param: str
) -> None:
    async with api(redis_url, finder("x"), **with_storage(tmp_path)) as it:
        refused = await it.post(PATH, asked(document=document))
    assert (refused.status, refused.error["param"]) == (status, param)


async def test_names_that_leave_no_room_in_a_chunk_are_refused(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, finder("x"), **with_storage(tmp_path)) as it, it.rig.working():
        ids = await uploaded(it, {"n" * 90 + ".txt": b"One.", "b.txt": b"Two."})
        refused = await it.post(PATH, asked(document={"file_ids": ids}, chunk_tokens=40))
    assert (refused.status, refused.error["param"]) == (422, "chunk_tokens")


async def test_a_file_without_text_is_named(redis_url: str, tmp_path: Path) -> None:
    async with api(redis_url, finder("x"), **with_storage(tmp_path)) as it, it.rig.working():
        ids = await uploaded(it, {"a.txt": b"One.", "scan.pdf": pdf("", "")})
        refused = await it.post(PATH, asked(document={"file_ids": ids}))
    assert (refused.status, refused.error["code"]) == (422, "file_unreadable")
    assert "scan.pdf" in refused.error["message"]
